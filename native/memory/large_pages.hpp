// Pages of 2 MB, where the system has them. A table of a gigabyte has 512 of them, which a processor knows by
// heart; of small ones it has 262,144, and nearly every feature then asks for the place of its page, too.
// They are for memory that is in use: a feature here and there would take 2 MB each.
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

// Where a quarter of the small pages of a large one are in use, they become one. What cannot be done is left
// as it is.
inline void use_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which not all headers know
  constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21, kSmall = 1 << 12;
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (start + kLarge - 1) / kLarge * kLarge,
                       last = (start + bytes) / kLarge * kLarge;
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kSmall) || first >= last) return;
  for (std::uintptr_t at = first; at < last; at += kLarge) {
    unsigned char used[kLarge / kSmall];
    void* const page = reinterpret_cast<void*>(at);
    if (mincore(page, kLarge, used) != 0) return;
    const auto count = std::count_if(used, used + sizeof used, [](unsigned char b) { return (b & 1) != 0; });
    if (4 * count >= static_cast<std::ptrdiff_t>(sizeof used) && madvise(page, kLarge, kCollapse) != 0 &&
        errno == EINVAL)
      return;
  }
#endif
}

}  // namespace skn
