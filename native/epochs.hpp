// Linear maps that every feature must go through, applied to a feature only when it is needed.
//
// At the end of an epoch the sketch changes its basis: each feature's weight and sketch coordinates become
// w + rᵀz and Nz, and gradients of the epoch that the feature took part in join them. Doing that for the whole
// table would cost its size; instead a feature carries the number of maps it has gone through, and the rest
// are made up for when it is touched. Products of runs of maps are kept on levels of groups of kGroup, so that
// making up for any delay takes a few small matrix–vector products.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace skn {

// One map as q + m rows of `width` numbers: row k is (r_k, N_0k, …, N_{q−1,k}), what z_k contributes to (w, z);
// then what the m gradients of the epoch contribute. Products of epochs that begin later than the first have
// no use for the gradients' rows.
struct EpochShape {
  std::int64_t q, m, width;
  std::int64_t small() const { return q * width; }
  std::int64_t whole() const { return (q + m) * width; }
};

template <class T>
struct EpochState {
  static constexpr std::int64_t kGroup = 16, kLevels = 4;  // of which small tables of maps use only three
  std::int64_t levels;
  std::int64_t* items;  // per level: groups completed below it (level 0: maps)
  T* suffix;            // levels × kGroup whole maps: from item i of the open group up to now
  // Per level: from an item up to the end of its own, closed group. Whole maps on level 0.
  std::array<T*, kLevels - 1> archive;

  std::int64_t capacity() const { return archived(0); }
  std::int64_t archived(std::int64_t level) const {
    std::int64_t n = 1;
    for (; level < levels; ++level) n *= kGroup;
    return n;
  }
};

template <class T>
class EpochMaps {
 public:
  EpochMaps(const EpochShape& shape, const EpochState<T>& state)
      : shape_(shape), s_(state), sum_(shape.width) {}

  std::int64_t now() const { return s_.items[0]; }
  bool full() const { return now() + 1 >= s_.capacity(); }

  void push(const T* map) { push(0, map); }

  void restart() {
    for (std::int64_t l = 0; l < s_.levels; ++l) s_.items[l] = 0;
  }

  // Brings (w, z) from `since` maps to all of them, with `value` of gradient number `gradient` of that epoch
  // (none if it is negative).
  void apply(std::int64_t since, std::int64_t gradient, T value, T& w, T* z) {
    std::int64_t item = since, level = 0;
    const bool joins = gradient >= 0;
    // Up: to the end of the item's group, as long as that group is closed.
    while (item / kGroup < s_.items[level] / kGroup && level + 1 < s_.levels) {
      if (level == 0 ? joins || item % kGroup != 0 : item % kGroup != 0) {
        const std::int64_t size = level == 0 ? shape_.whole() : shape_.small();
        multiply(s_.archive[level] + item * size, level == 0 ? gradient : -1, value, w, z);
        ++(item /= kGroup);
      } else {
        item /= kGroup;
      }
      ++level;
    }
    // Down: through the open groups.
    if (item < s_.items[level])
      multiply(suffix(level, item % kGroup), level == 0 ? gradient : -1, value, w, z);
    while (--level >= 0)
      if (s_.items[level] % kGroup != 0) multiply(suffix(level, 0), w, z);
  }

  // (w, z) through one map, with all of its gradients.
  void multiply(const T* map, const T* gradients, T& w, T* z) {
    through(map, map + shape_.small(), gradients, shape_.m, w, z);
  }

 private:
  static constexpr std::int64_t kGroup = EpochState<T>::kGroup, kLevels = EpochState<T>::kLevels;

  void multiply(const T* map, std::int64_t gradient, T value, T& w, T* z) {
    if (gradient < 0) return multiply(map, w, z);
    through(map, map + (shape_.q + gradient) * shape_.width, &value, 1, w, z);
  }

  void multiply(const T* map, T& w, T* z) { through(map, nullptr, nullptr, 0, w, z); }

  // (w, z) ← (w, 0) + Σ_k z_k row_k + Σ_b g_b gain_b. Usual widths are known to the compiler, which then keeps
  // the sum in registers.
  void through(const T* rows, const T* gains, const T* g, std::int64_t m, T& w, T* z) {
    switch (shape_.width) {
      case 4: return through<4>(rows, gains, g, m, w, z);
      case 8: return through<8>(rows, gains, g, m, w, z);
      case 12: return through<12>(rows, gains, g, m, w, z);
      case 16: return through<16>(rows, gains, g, m, w, z);
      case 20: return through<20>(rows, gains, g, m, w, z);
      case 24: return through<24>(rows, gains, g, m, w, z);
      default: return through<0>(rows, gains, g, m, w, z);
    }
  }

  template <int W>
  void through(const T* __restrict rows, const T* __restrict gains, const T* g, std::int64_t m, T& w, T* z) {
    const std::int64_t width = W > 0 ? W : shape_.width;
    T registers[W > 0 ? W : 1];
    T* __restrict sum = W > 0 ? registers : sum_.data();
    for (std::int64_t c = 0; c < width; ++c) sum[c] = T(0);
    for (std::int64_t k = 0; k < shape_.q; ++k, rows += width) {
      const T zk = z[k];
      for (std::int64_t c = 0; c < width; ++c) sum[c] += zk * rows[c];
    }
    for (std::int64_t b = 0; b < m; ++b, gains += width) {
      const T gb = g[b];
      for (std::int64_t c = 0; c < width; ++c) sum[c] += gb * gains[c];
    }
    w += sum[0];
    for (std::int64_t k = 0; k < shape_.q; ++k) z[k] = sum[1 + k];
  }

  T* suffix(std::int64_t level, std::int64_t i) const {
    return s_.suffix + (level * kGroup + i) * shape_.whole();
  }

  void push(std::int64_t level, const T* map) {
    const std::int64_t count = s_.items[level] % kGroup;
    const std::int64_t rows = level == 0 ? shape_.q + shape_.m : shape_.q, size = rows * shape_.width;
    for (std::int64_t i = 0; i < count; ++i) {  // earlier ← later ∘ earlier
      T* row = suffix(level, i);
      for (std::int64_t k = 0; k < rows; ++k, row += shape_.width)
        multiply(map, row[0], row + 1);
    }
    std::copy_n(map, size, suffix(level, count));
    ++s_.items[level];
    if (count + 1 < kGroup || level + 1 == s_.levels) return;
    for (std::int64_t i = 0; i < kGroup; ++i)
      std::copy_n(suffix(level, i), size, s_.archive[level] + (s_.items[level] - kGroup + i) * size);
    push(level + 1, suffix(level, 0));
  }

  EpochShape shape_;
  EpochState<T> s_;
  std::vector<T> sum_;
};

}  // namespace skn
