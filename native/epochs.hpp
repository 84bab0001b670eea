// Linear maps that every feature must go through, applied to a feature only when it is needed.
//
// At the end of an epoch the sketch changes its basis: each feature's weight and sketch coordinates become
// w + rᵀz and Nz, and gradients of the epoch join them. Doing that for the whole table would cost its size;
// instead a feature carries the number of maps it has gone through, and the rest are made up for when it is
// touched. Epochs form groups of kGroup. Features touched in a group go through its maps when it is closed;
// for all others the group is one map. Products of runs of closed groups are kept on levels of groups of
// groups, so that making up for any delay takes a few small matrix–vector products.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace skn {

// One map as rows of `width` numbers: row k < q is (r_k, N_0k, …, N_{q−1,k}), what z_k contributes to (w, z);
// the m rows after them are what the gradients of an epoch contribute.
struct EpochShape {
  std::int64_t q, m, width;
  std::int64_t small() const { return q * width; }
  std::int64_t whole() const { return (q + m) * width; }
};

template <class T>
struct EpochState {
  static constexpr std::int64_t kGroup = 16, kLevels = 3;
  std::int64_t* items;  // epochs; closed groups; groups of groups closed, twice
  T* open;    // kGroup whole maps: from epoch i of the open group, its gradients included, up to now
  T* suffix;  // kLevels × kGroup maps: from item i of the level's open group up to the last one closed
  std::array<T*, kLevels - 1> archive;  // per level: from an item up to the end of its own, closed group

  static constexpr std::int64_t groups() { return kGroup * kGroup * kGroup; }
  static constexpr std::int64_t archived(std::int64_t level) {
    std::int64_t n = groups();
    for (; level > 0; --level) n /= kGroup;
    return n;
  }
};

template <class T>
class EpochMaps {
 public:
  EpochMaps(const EpochShape& shape, const EpochState<T>& state)
      : shape_(shape), s_(state), sum_(shape.width) {}

  std::int64_t now() const { return s_.items[0]; }
  std::int64_t group_start() const { return s_.items[1] * kGroup; }
  bool group_is_full() const { return now() - group_start() == kGroup; }
  bool full() const { return s_.items[1] + 1 >= EpochState<T>::groups(); }

  void push(const T* map) {
    const std::int64_t count = now() - group_start();
    for (std::int64_t i = 0; i < count; ++i) compose(map, open(i), shape_.q + shape_.m);
    std::copy_n(map, shape_.whole(), open(count));
    ++s_.items[0];
  }

  // Features touched in the group must have gone through its maps before.
  void close_group() { push(0, open(0)); }

  void restart() { std::fill(s_.items, s_.items + 1 + kLevels, 0); }

  // Brings (w, z) from the start of a closed group to that of the open one.
  void wake(std::int64_t since, T& w, T* z) {
    std::int64_t item = since / kGroup, level = 0;
    // Up: to the end of the item's group, as long as that group is closed.
    while (level + 1 < kLevels && item / kGroup < items(level) / kGroup) {
      if (item % kGroup != 0) {
        multiply(s_.archive[level] + item * shape_.small(), w, z);
        ++(item /= kGroup);
      } else {
        item /= kGroup;
      }
      ++level;
    }
    // Down: through the open groups.
    if (item < items(level)) multiply(suffix(level, item % kGroup), w, z);
    while (--level >= 0)
      if (items(level) % kGroup != 0) multiply(suffix(level, 0), w, z);
  }

  // From epoch `since` of the open group up to now, and `count` gradients of epoch `joined`, from `first` on.
  void catch_up(std::int64_t since, std::int64_t joined, std::int64_t first, const T* gradients,
                std::int64_t count, T& w, T* z) {
    const T* gains = count > 0 ? open(joined - group_start()) + (shape_.q + first) * shape_.width : nullptr;
    through(open(since - group_start()), gains, gradients, count, w, z);
  }

  // The map from the start of the open group up to now.
  const T* since_group_start() const { return open(0); }

 private:
  static constexpr std::int64_t kGroup = EpochState<T>::kGroup, kLevels = EpochState<T>::kLevels;

  std::int64_t& items(std::int64_t level) const { return s_.items[1 + level]; }
  T* open(std::int64_t i) const { return s_.open + i * shape_.whole(); }
  T* suffix(std::int64_t level, std::int64_t i) const {
    return s_.suffix + (level * kGroup + i) * shape_.small();
  }

  void push(std::int64_t level, const T* map) {
    const std::int64_t count = items(level) % kGroup, size = shape_.small();
    for (std::int64_t i = 0; i < count; ++i) compose(map, suffix(level, i), shape_.q);
    std::copy_n(map, size, suffix(level, count));
    ++items(level);
    if (count + 1 < kGroup || level + 1 == kLevels) return;
    std::copy_n(suffix(level, 0), kGroup * size, s_.archive[level] + (items(level) - kGroup) * size);
    push(level + 1, suffix(level, 0));
  }

  void compose(const T* later, T* earlier, std::int64_t rows) {  // earlier ← later ∘ earlier
    for (std::int64_t k = 0; k < rows; ++k, earlier += shape_.width) multiply(later, earlier[0], earlier + 1);
  }

  void multiply(const T* map, T& w, T* z) { through(map, nullptr, nullptr, 0, w, z); }

  // (w, z) ← (w, 0) + Σ_k z_k row_k + Σ_b g_b gain_b. Usual widths are known to the compiler, which then
  // keeps the sum in registers.
  void through(const T* rows, const T* gains, const T* g, std::int64_t m, T& w, T* z) {
    switch (shape_.width) {
      case 4:
        return through<4>(rows, gains, g, m, w, z);
      case 8:
        return through<8>(rows, gains, g, m, w, z);
      case 12:
        return through<12>(rows, gains, g, m, w, z);
      case 16:
        return through<16>(rows, gains, g, m, w, z);
      case 20:
        return through<20>(rows, gains, g, m, w, z);
      case 24:
        return through<24>(rows, gains, g, m, w, z);
      default:
        return through<0>(rows, gains, g, m, w, z);
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

  EpochShape shape_;
  EpochState<T> s_;
  std::vector<T> sum_;
};

}  // namespace skn
