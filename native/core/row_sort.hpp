// The features of a row in the order of their indices. Hashed names come in any order, so that all rows of
// words and categories are sorted before they are learned or predicted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace skn {

// Sorts by index, which must not be negative; entries of one index stay in their order.
//
// A feature's place is the number of smaller indices. To count them is quadratic, but it is done in vectors,
// and never waits: a processor cannot foresee how the comparisons of other methods end. Long rows are merged
// of runs.
class RowSort {
 public:
  void operator()(std::int64_t* index, double* value, std::int64_t n) {
    std::int64_t all = 0;
    for (std::int64_t k = 0; k < n; ++k) all |= index[k];
    if (all <= std::numeric_limits<std::int32_t>::max()) return sort(index, value, n);
    make_room(n);
    for (std::int64_t k = 0; k < n; ++k) entries_[k] = {index[k], value[k]};
    std::stable_sort(entries_.begin(), entries_.begin() + n,
                     [](const Entry& a, const Entry& b) { return a.index < b.index; });
    for (std::int64_t k = 0; k < n; ++k) {
      index[k] = entries_[k].index;
      value[k] = entries_[k].value;
    }
  }

 private:
  struct Entry {
    std::int64_t index;
    double value;
  };
  static constexpr std::int64_t kRun = 128;  // some vectors
#ifdef __AVX2__
  static constexpr std::int64_t kVector = 8;
  using Keys [[gnu::vector_size(32), gnu::may_alias]] = std::int32_t;
  static constexpr Keys kLanes = {0, 1, 2, 3, 4, 5, 6, 7};
#else
  static constexpr std::int64_t kVector = 4;
  using Keys [[gnu::vector_size(16), gnu::may_alias]] = std::int32_t;
  static constexpr Keys kLanes = {0, 1, 2, 3};
#endif

  void make_room(std::int64_t n) {
    if (entries_.size() < static_cast<std::size_t>(n)) entries_.resize(static_cast<std::size_t>(n));
  }

  void sort(std::int64_t* index, double* value, std::int64_t n) {
    if (n <= kRun) return sort_run(index, value, n);
    const std::int64_t half = n / 2;
    sort(index, value, half);
    sort(index + half, value + half, n - half);
    merge(index, value, half, n);
  }

  // The first `half` entries, which are sorted, with the others, which are, too.
  void merge(std::int64_t* index, double* value, std::int64_t half, std::int64_t n) {
    make_room(half);
    for (std::int64_t k = 0; k < half; ++k) entries_[k] = {index[k], value[k]};
    std::int64_t at = 0;
    for (std::int64_t i = 0, j = half; i < half; ++at) {
      const bool other = j < n && index[j] < entries_[i].index;
      index[at] = other ? index[j] : entries_[i].index;
      value[at] = other ? value[j] : entries_[i].value;
      j += other;
      i += !other;
    }
  }

  static void sort_run(std::int64_t* index, double* value, std::int64_t n) {
    alignas(Keys) std::int32_t key[kRun], place[kRun];
    double was[kRun];
    for (std::int64_t k = 0; k < n; ++k) {
      key[k] = static_cast<std::int32_t>(index[k]);
      was[k] = value[k];
    }
    const std::int64_t padded = (n + kVector - 1) / kVector * kVector;
    for (std::int64_t k = n; k < padded; ++k) key[k] = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t at = 0; at < padded; at += kVector) {
      const Keys mine = *reinterpret_cast<const Keys*>(key + at);
      // True is −1. As if all before were smaller, but for those that are larger.
      Keys smaller = Keys{} + static_cast<std::int32_t>(at);
      for (std::int64_t from = 0; from < at; from += kVector)
        for (int k = 0; k < kVector; ++k) smaller += mine < Keys{} + key[from + k];
      for (int k = 0; k < kVector; ++k) {
        const Keys other = Keys{} + key[at + k];
        smaller -= (other < mine) | ((other == mine) & (kLanes > k));
      }
      for (std::int64_t from = at + kVector; from < padded; from += kVector)
        for (int k = 0; k < kVector; ++k) smaller -= Keys{} + key[from + k] < mine;
      *reinterpret_cast<Keys*>(place + at) = smaller;
    }
    for (std::int64_t k = 0; k < n; ++k) {
      index[place[k]] = key[k];
      value[place[k]] = was[k];
    }
  }

  std::vector<Entry> entries_;
};

}  // namespace skn
