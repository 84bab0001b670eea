// Feature indices in their order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace skn {

// Sorts indices that are not negative, byte by byte from the lowest up: a processor cannot foresee how the
// comparisons of other methods end.
inline void sort_indices(std::int64_t* first, std::int64_t* last) {
  constexpr std::int64_t kValues = 256;
  const std::int64_t n = last - first;
  if (n < kValues) return std::sort(first, last);
  std::uint64_t bits = 0;
  for (std::int64_t k = 0; k < n; ++k) bits |= static_cast<std::uint64_t>(first[k]);
  std::vector<std::int64_t> spare(static_cast<std::size_t>(n));
  std::int64_t *from = first, *to = spare.data();
  for (int shift = 0; shift < 64 && bits >> shift > 0; shift += 8, std::swap(from, to)) {
    const auto byte = [shift](std::int64_t index) {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(index) >> shift & (kValues - 1));
    };
    std::array<std::int64_t, kValues> place{};
    for (std::int64_t k = 0; k < n; ++k) ++place[byte(from[k])];
    std::int64_t sum = 0;
    for (std::int64_t& next : place) sum += std::exchange(next, sum);
    for (std::int64_t k = 0; k < n; ++k) to[place[byte(from[k])]++] = from[k];
  }
  if (from != first) std::copy_n(from, n, first);
}

}  // namespace skn
