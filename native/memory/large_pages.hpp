// Pages of 2 MB, where the system has them. A table of a gigabyte has 512 of them, which a processor knows by
// heart; of small ones it has 262,144, and nearly every feature then asks for the place of its page, too. They
// are for memory that is in use: a feature here and there would take 2 MB each.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#endif

namespace skn {

inline constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;

// For memory that is used from its beginning on.
inline void prefer_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (start + kLargePage - 1) / kLargePage * kLargePage,
                       last = (start + bytes) / kLargePage * kLargePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

// For memory that is used here and there: where so many of the 512 small pages of a large one are in use, they
// become one. What could not be done now is left as it is.
inline void gather_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                         [[maybe_unused]] std::ptrdiff_t least) {
#ifdef __linux__
  constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which not all headers know
  constexpr std::size_t kSmallPage = 4096;
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kSmallPage)) return;
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  for (std::uintptr_t at = (start + kLargePage - 1) / kLargePage * kLargePage; at + kLargePage <= start + bytes;
       at += kLargePage) {
    unsigned char used[kLargePage / kSmallPage];
    void* const page = reinterpret_cast<void*>(at);
    if (mincore(page, kLargePage, used) != 0) return;
    const auto count = std::count_if(used, used + sizeof used, [](unsigned char b) { return (b & 1) != 0; });
    if (count >= least && madvise(page, kLargePage, kCollapse) != 0 && errno == EINVAL) return;
  }
#endif
}

}  // namespace skn
