// Pages of 2 MB, where the system has them. A table of a gigabyte has 512 of them, which a processor knows by
// heart; of small ones it has 262,144, and nearly every feature then asks for the place of its page, too.
// They are for memory that is in use: a feature here and there would take 2 MB each.
//
// What they cost depends on the machine: as a rule they are cleared in a fifth of the time of small ones. A
// virtual machine that gives back free memory has to ask for each again, which takes 6 ms. So time is taken.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#endif

namespace skn {

#ifdef __linux__
class LargePages {
 public:
  static constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21, kSmall = 1 << 12;

  // Those within so many bytes; none where the system's small pages are not of the usual size.
  LargePages(void* data, std::size_t bytes)
      : first_((reinterpret_cast<std::uintptr_t>(data) + kLarge - 1) / kLarge * kLarge),
        last_((reinterpret_cast<std::uintptr_t>(data) + bytes) / kLarge * kLarge) {
    if (sysconf(_SC_PAGESIZE) != static_cast<long>(kSmall) || first_ > last_) last_ = first_;
  }

  // Where a quarter of the small pages of a large one are in use, they become one. What cannot be done is
  // left as it is. False: it takes too long, and so was not done, unless there is no `hurry`.
  bool collapse(bool hurry) const {
    constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which not all headers know
    int tried = 0;
    for (std::uintptr_t at = first_; at < last_; at += kLarge) {
      unsigned char used[kLarge / kSmall];
      void* const page = reinterpret_cast<void*>(at);
      if (mincore(page, kLarge, used) != 0) return true;
      const auto count =
          std::count_if(used, used + sizeof used, [](unsigned char b) { return (b & 1) != 0; });
      if (4 * count < static_cast<std::ptrdiff_t>(sizeof used)) continue;
      const double start = now();
      if (madvise(page, kLarge, kCollapse) != 0 && errno == EINVAL) return true;
      if (hurry && tried++ < kProbes && slow(start)) return false;
    }
    return true;
  }

  // Pages that nobody has touched yet will be large ones. In a hurry, a few of them at a time, as long as the
  // first of these is quickly there.
  void prefer(bool hurry) const {
#ifdef MADV_HUGEPAGE
    const std::uintptr_t step = hurry ? kProbes * kLarge : last_ - first_;
    for (std::uintptr_t at = first_; at < last_; at += step) {
      void* const page = reinterpret_cast<void*>(at);
      const double start = now();
      if (madvise(page, kLarge, MADV_HUGEPAGE) != 0) return;
      volatile char* const byte = static_cast<volatile char*>(page);
      *byte = *byte;  // whatever is there stays
      if (hurry && slow(start)) return;
      madvise(page, std::min(at + step, last_) - at, MADV_HUGEPAGE);
    }
#else
    static_cast<void>(hurry);
#endif
  }

 private:
  static constexpr int kProbes = 16;

  // Of this thread's work, which others on the same processor do not lengthen.
  static double now() {
    timespec time;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0
               ? static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)
               : 0.0;
  }
  static bool slow(double start) { return now() - start > 2e-3; }

  std::uintptr_t first_, last_;
};
#endif

// Pages in use become large ones. False: not yet, since it takes long; without `hurry` it is done anyway.
inline bool use_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                            [[maybe_unused]] bool hurry) {
#ifdef __linux__
  return LargePages(data, bytes).collapse(hurry);
#else
  return true;
#endif
}

// Pages that are about to be used become large ones; in a hurry, unless that takes long.
inline void prefer_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                               [[maybe_unused]] bool hurry) {
#ifdef __linux__
  LargePages(data, bytes).prefer(hurry);
#endif
}

}  // namespace skn
