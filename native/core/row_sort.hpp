// The features of a row in the order of their indices. Hashed names come in any order, so that all rows of
// words and categories are sorted before they are learned or predicted.
#pragma once

#include <algorithm>
#include <array>
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
    const auto size = static_cast<std::size_t>(n);
    if (entries_.size() < size) entries_.resize(size);
    Entry* const entries = entries_.data();
    std::int64_t all = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      entries[k] = {index[k], value[k]};
      all |= index[k];
    }
    if (all > std::numeric_limits<std::int32_t>::max()) {
      std::stable_sort(entries, entries + n, before);
    } else {
      sort(entries, n);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      index[k] = entries[k].index;
      value[k] = entries[k].value;
    }
  }

 private:
  struct Entry {
    std::int64_t index;
    double value;
  };
  static constexpr std::int64_t kRun = 128, kVector = 16;  // a run is some vectors long

  static bool before(const Entry& a, const Entry& b) { return a.index < b.index; }

  static void sort(Entry* entries, std::int64_t n) {
    if (n <= kRun) return sort_run(entries, n);
    const std::int64_t half = n / 2;
    sort(entries, half);
    sort(entries + half, n - half);
    std::inplace_merge(entries, entries + half, entries + n, before);
  }

  static void sort_run(Entry* entries, std::int64_t n) {
    std::array<std::int32_t, kRun> key, place;
    std::array<Entry, kRun> was;
    const std::int64_t padded = (n + kVector - 1) / kVector * kVector;
    for (std::int64_t k = 0; k < n; ++k) {
      was[k] = entries[k];
      key[k] = static_cast<std::int32_t>(was[k].index);
      entries[k].index = kFree;
    }
    for (std::int64_t k = n; k < padded; ++k) key[k] = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int32_t smaller = 0;
      for (std::int64_t k = 0; k < padded; ++k) smaller += key[k] < key[i];
      place[i] = smaller;
    }
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t at = place[k];
      while (entries[at].index != kFree) ++at;  // others of this index came before
      entries[at] = was[k];
    }
  }

  static constexpr std::int64_t kFree = -1;

  std::vector<Entry> entries_;
};

}  // namespace skn
