// Linear maps that every feature must go through one day, applied to a feature only when it is needed: the
// simplest form, in which a feature may stand at any map. (epochs.hpp is faster for features that come back
// soon, but asks for lists of those that have moved within a group of maps.)
//
// A feature carries the number of maps it has gone through. Products of runs of maps are kept on `levels` of
// groups of kGroup, so that making up for any delay takes a few small matrix–vector products.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/simd.hpp"

namespace skn {

// One map as q rows of `width` numbers: row k is (R_0k, …, N_0k, …, N_{q−1,k}), what z_k contributes to (w,
// z), where w is `weights` numbers.
struct MapShape {
  std::int64_t q, width, weights = 1;
  // If z follows w: how many numbers there are from w on, which may be read and written.
  std::int64_t row = 0;
  std::int64_t size() const { return q * width; }
};

template <class T>
struct MapState {
  static constexpr std::int64_t kGroup = 16, kLevels = 4;
  std::int64_t* items;                  // per level: groups completed below it (level 0: maps)
  T* suffix;                            // kLevels × kGroup maps: from item i of the open group up to now
  std::array<T*, kLevels - 1> archive;  // per level: from an item up to the end of its own, closed group
  std::int64_t limit = capacity();      // maps that there is room for

  static constexpr std::int64_t capacity() { return kGroup * kGroup * kGroup * kGroup; }
  static constexpr std::int64_t archived(std::int64_t level) {
    std::int64_t n = capacity();
    for (; level > 0; --level) n /= kGroup;
    return n;
  }
};

template <class T>
class DelayedMaps {
 public:
  DelayedMaps(const MapShape& shape, const MapState<T>& state)
      : shape_(shape), s_(state), product_(shape.size()), sum_(shape.width) {}

  std::int64_t now() const { return s_.items[0]; }
  bool full() const { return now() + 1 >= s_.limit; }

  void push(const T* map) { push(0, map); }

  void restart() {
    for (std::int64_t l = 0; l < kLevels; ++l) s_.items[l] = 0;
  }

  // Brings (w, z) from `since` maps to all of them.
  void apply(std::int64_t since, T* w, T* z) {
    if (since < 0 || since >= now()) return;  // the number may come from a file
    std::int64_t item = since, level = 0;
    // Up: to the end of the item's group, as long as that group is closed.
    while (item / kGroup < s_.items[level] / kGroup && level + 1 < kLevels) {
      if (item % kGroup != 0) {
        multiply(s_.archive[level] + item * shape_.size(), w, z);
        ++(item /= kGroup);
      } else {
        item /= kGroup;
      }
      ++level;
    }
    // Down: through the open groups.
    if (item < s_.items[level]) multiply(suffix(level, item % kGroup), w, z);
    while (--level >= 0)
      if (s_.items[level] % kGroup != 0) multiply(suffix(level, 0), w, z);
  }

  // (w, z) through one map.
  void multiply(const T* map, T* w, T* z) {
    if (shape_.width == 16 && shape_.row >= 16) return multiply_row<16>(map, w);
    if (shape_.width == 16) return multiply_in_registers<16>(map, w, z);
    T* const sum = product_.data();
    std::int64_t c = 0;
    for (; c + kWide <= shape_.width; c += kWide) multiply_columns<kWide>(map + c, z, sum + c);
    for (; c + 8 <= shape_.width; c += 8) multiply_columns<8>(map + c, z, sum + c);
    for (; c < shape_.width; ++c) {
      sum[c] = T(0);
      for (std::int64_t k = 0; k < shape_.q; ++k) sum[c] += z[k] * map[k * shape_.width + c];
    }
    take(sum, w, z);
  }

 private:
  static constexpr std::int64_t kGroup = MapState<T>::kGroup, kLevels = MapState<T>::kLevels;

  template <int W>
  void multiply_row(const T* map, T* row) const {
    Lanes<T, W> sum;
    sum.zero();
    const T* const z = row + shape_.weights;
    for (std::int64_t k = 0; k < shape_.q; ++k) sum.add(z[k], map + k * W);
    sum.join(row, shape_.weights, shape_.weights + shape_.q);
  }

  // So many columns, whose sums stay in registers.
  static constexpr int kWide = 256 / sizeof(T);
  template <int W>
  void multiply_columns(const T* map, const T* z, T* sum) const {
    Lanes<T, W> its;
    its.zero();
    for (std::int64_t k = 0; k < shape_.q; ++k) its.add(z[k], map + k * shape_.width);
    its.store(sum);
  }

  template <int W>
  void multiply_in_registers(const T* map, T* w, T* z) {
    T sum[W] = {};
    for (std::int64_t k = 0; k < shape_.q; ++k)
      for (int c = 0; c < W; ++c) sum[c] += z[k] * map[k * W + c];
    take(sum, w, z);
  }

  void take(const T* sum, T* w, T* z) const {
    for (std::int64_t k = 0; k < shape_.weights; ++k) w[k] += sum[k];
    for (std::int64_t k = 0; k < shape_.q; ++k) z[k] = sum[shape_.weights + k];
  }

  T* suffix(std::int64_t level, std::int64_t i) const {
    return s_.suffix + (level * kGroup + i) * shape_.size();
  }

  void push(std::int64_t level, const T* map) {
    const std::int64_t count = s_.items[level] % kGroup, size = shape_.size();
    for (std::int64_t i = 0; i < count; ++i) compose(map, suffix(level, i));
    std::copy_n(map, size, suffix(level, count));
    ++s_.items[level];
    if (count + 1 < kGroup || level + 1 == kLevels) return;
    std::copy_n(suffix(level, 0), kGroup * size, s_.archive[level] + (s_.items[level] - kGroup) * size);
    push(level + 1, suffix(level, 0));
  }

  // earlier ← later ∘ earlier
  void compose(const T* later, T* earlier) {
    for (std::int64_t k = 0; k < shape_.q; ++k) {
      T* row = earlier + k * shape_.width;
      std::vector<double>& sum = sum_;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::int64_t c = 0; c < shape_.weights; ++c) sum[c] = static_cast<double>(row[c]);
      for (std::int64_t j = 0; j < shape_.q; ++j) {
        const auto n = static_cast<double>(row[shape_.weights + j]);
        if (n == 0) continue;
        const T* image = later + j * shape_.width;
        for (std::int64_t c = 0; c < shape_.width; ++c) sum[c] += n * static_cast<double>(image[c]);
      }
      for (std::int64_t c = 0; c < shape_.width; ++c) row[c] = static_cast<T>(sum[c]);
    }
  }

  MapShape shape_;
  MapState<T> s_;
  std::vector<T> product_;
  std::vector<double> sum_;
};

}  // namespace skn
