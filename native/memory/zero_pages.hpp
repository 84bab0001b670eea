// Memory full of zeros of which only those pages take room that somebody writes to.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define SKN_HAS_MAPPINGS 1
#endif

namespace skn {

// A table of 2³⁰ hashed features is larger than the memory of most machines, and almost all of it stays zero.
// Systems that refuse so much at once give it as a mapping without a promise that it could all be used.
class ZeroPages {
 public:
  explicit ZeroPages(std::size_t bytes) {
    data_ = std::calloc(bytes, 1);
    if (data_ != nullptr) return;
#ifdef SKN_HAS_MAPPINGS
    if (bytes > kLargest) throw std::bad_alloc();
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    mapped_ = bytes;
#ifdef MADV_NOHUGEPAGE
    madvise(data_, bytes, MADV_NOHUGEPAGE);  // a feature here and there: pages of 2 MB would fill the machine
#endif
#else
    throw std::bad_alloc();
#endif
  }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  ~ZeroPages() {
#ifdef SKN_HAS_MAPPINGS
    if (mapped_ > 0) {
      munmap(data_, mapped_);
      return;
    }
#endif
    std::free(data_);
  }

  void* data() const { return data_; }

 private:
  static constexpr std::size_t kLargest = std::size_t{1} << 40;

  void* data_ = nullptr;
#ifdef SKN_HAS_MAPPINGS
  std::size_t mapped_ = 0;  // bytes, unless they came from calloc
#endif
};

}  // namespace skn
