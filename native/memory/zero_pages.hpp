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
  explicit ZeroPages(std::size_t bytes) : bytes_(bytes) {
    data_ = std::calloc(bytes, 1);
    if (data_ != nullptr) return;
#ifdef SKN_HAS_MAPPINGS
    if (bytes > kLargest) throw std::bad_alloc();
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mapped_ = data_ != MAP_FAILED;
    if (!mapped_) throw std::bad_alloc();
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
    if (mapped_) {
      munmap(data_, bytes_);
      return;
    }
#endif
    std::free(data_);
  }

  void* data() const { return data_; }

 private:
  static constexpr std::size_t kLargest = std::size_t{1} << 40;

  void* data_ = nullptr;
  std::size_t bytes_;
  bool mapped_ = false;
};

}  // namespace skn
