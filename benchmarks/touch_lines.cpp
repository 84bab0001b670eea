// What memory alone takes: a loop that reads and writes one number of each line of a table, row after row, in
// the order in which a learner comes by, with the rows to come prefetched. Reads features of rows, 60 numbers
// of 8 bytes each, from standard input. `touch_lines FEATURES BYTES_PER_ROW large|small packed|plain`
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kWidth = 60, kLarge = std::size_t{1} << 21;

double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

char* memory(std::size_t bytes, bool large) {
  void* const all = mmap(nullptr, bytes + kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) std::exit(1);
  char* const start =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(all) + kLarge - 1) / kLarge * kLarge);
  madvise(start, bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(start, 1, bytes);
  return start;
}

// Nanoseconds per feature, the best of some passes: others use the machine, too.
template <class Touch>
double best(std::size_t rows, Touch touch) {
  double least = 1e9;
  for (int pass = 0; pass < 9; ++pass) {
    const double start = now();
    for (std::size_t r = 0; r < rows; ++r) touch(r);
    least = std::min(least, now() - start);
  }
  return 1e9 * least / static_cast<double>(rows * kWidth);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const std::size_t features = std::strtoull(words[1], nullptr, 10),
                    bytes = std::strtoull(words[2], nullptr, 10);
  const bool large = std::strcmp(words[3], "large") == 0, packed = std::strcmp(words[4], "packed") == 0;
  std::vector<std::int64_t> index;
  std::int64_t one[kWidth];
  while (std::fread(one, sizeof one, 1, stdin) == 1) index.insert(index.end(), one, one + kWidth);
  for (std::int64_t& i : index)
    i = std::min(std::max<std::int64_t>(i, 0), static_cast<std::int64_t>(features) - 1);
  char* const table = memory(features * bytes, large);
  auto* const places = reinterpret_cast<std::int32_t*>(memory(features * 4, large));
  for (std::size_t i = 0; i < features; ++i)
    places[i] = static_cast<std::int32_t>(i * 2654435761U % features);
  if (index.size() < 4 * kWidth) return 1;
  const std::size_t rows = index.size() / kWidth - 2;
  const auto at = [&](std::size_t r, std::size_t k) {
    const std::int64_t i = index[r * kWidth + k];
    return table + static_cast<std::size_t>(packed ? places[i] : i) * bytes;
  };
  std::uint32_t sum = 0;
  const auto touch = [](const void* place) {
    __builtin_prefetch(place);
    asm volatile("" : : "r"(place));  // else GCC sees a function without effects, and leaves out calls of it
  };
  const auto ask =
      [&](std::size_t r) {  // as learners do: two rows early, or places so early and rows one early
        for (std::size_t k = 0; packed && k < kWidth; ++k) touch(places + index[(r + 2) * kWidth + k]);
        for (std::size_t k = 0; k < kWidth; ++k) touch(at(r + (packed ? 1 : 2), k));
      };
  const double reads = best(rows, [&](std::size_t r) {
    ask(r);
    for (std::size_t k = 0; k < kWidth; ++k) sum += *reinterpret_cast<std::uint32_t*>(at(r, k));
  });
  const double writes = best(rows, [&](std::size_t r) {
    ask(r);
    for (std::size_t k = 0; k < kWidth; ++k) sum += *reinterpret_cast<std::uint32_t*>(at(r, k));
    const std::uint32_t step = sum;  // known when all have been read, as a learner's step is
    for (std::size_t k = 0; k < kWidth; ++k) *reinterpret_cast<std::uint32_t*>(at(r, k)) += step;
  });
  std::printf("%.3f %.3f %u\n", reads, writes, sum);
}
