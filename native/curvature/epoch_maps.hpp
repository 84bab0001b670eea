// Linear maps that every feature must go through, applied to a feature only when it is needed.
//
// At the end of an epoch the sketch changes its basis: each feature's weight and sketch coordinates become
// w + rᵀz and Nz, and gradients of the epoch join them. Doing that for the whole table would cost its size;
// instead a feature carries the number of maps it has gone through, and the rest are made up for when it is
// touched. Epochs form groups of kGroup. Features touched in a group go through its maps when it is closed;
// for all others the group is one map. Products of runs of closed groups are kept on levels of groups of
// groups, so that making up for any delay takes a few small matrix–vector products: one, as a rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/simd.hpp"

namespace skn {

// One map as rows that look like those of the table, `width` numbers each: row k < q has r_k in the place of
// the weight and N_0k, …, N_{q−1,k} in that of z, from column kHead on: what z_k contributes to (w, z). The m
// rows after them are what the gradients of an epoch contribute.
struct EpochShape {
  static constexpr std::int64_t kHead = 5;
  std::int64_t q, m, width;
  std::int64_t small() const { return q * width; }
  std::int64_t whole() const { return (q + m) * width; }
};

template <class T>
struct EpochState {
  static constexpr std::int64_t kGroup = 16, kFan = 64;  // epochs of a group; groups of a large one
  std::int64_t* items;                                   // epochs; closed groups; closed groups of groups
  T* open;     // kGroup whole maps: from epoch i of the open group, its gradients included, up to now
  T* suffix;   // 2 × kFan maps: from item i of the level's open group up to the last one closed
  T* archive;  // kFan² maps: from a group up to the end of its own, closed group of groups
};

// One row of the table through one map, and `value` times one gain.
template <class T>
struct Move {
  const T *map, *gain;
  T* row;
  T value;
};

template <class T>
struct Moves {
  std::vector<Move<T>> list;
  std::int64_t count = 0;

  void start(std::int64_t most) {
    count = 0;
    if (static_cast<std::int64_t>(list.size()) <= most) list.resize(static_cast<std::size_t>(most + 1));
  }
  void add(const Move<T>& move, bool needed) {
    list[count] = move;
    count += needed;
  }
};

template <class T>
class EpochMaps {
 public:
  EpochMaps(const EpochShape& shape, const EpochState<T>& state)
      : shape_(shape), s_(state), kernels_(kernels_of(shape)) {}

  std::int64_t now() const { return s_.items[0]; }
  std::int64_t group_start() const { return s_.items[1] * kGroup; }
  bool group_is_full() const { return now() - group_start() == kGroup; }
  bool full() const { return s_.items[1] + 1 >= kFan * kFan; }

  void push(const T* map) {
    const std::int64_t count = now() - group_start();
    compose(map, open(0), count * (shape_.q + shape_.m));
    std::copy_n(map, shape_.whole(), open(count));
    ++s_.items[0];
  }

  // Features touched in the group must have gone through its maps before.
  void close_group() {
    push(0, open(0));
    if (s_.items[1] % kFan != 0) return;
    std::copy_n(suffix(0, 0), kFan * shape_.small(), archive(s_.items[1] - kFan));
    push(1, suffix(0, 0));
  }

  void restart() { std::fill(s_.items, s_.items + 3, 0); }

  // Brings a row of the table from the start of a closed group to that of the open one: what is to be done
  // for it joins `moves`.
  void wake(std::int64_t since, T* row, Moves<T>& moves) const {
    const auto add = [&](const T* map) { moves.add({map, map, row, T(0)}, true); };
    std::int64_t group = since / kGroup;
    if (group / kFan == s_.items[2]) return add(suffix(0, group % kFan));
    if (group % kFan != 0) {  // to the end of its group of groups
      add(archive(group));
      group += kFan - group % kFan;
    }
    if (group / kFan < s_.items[2]) add(suffix(1, group / kFan));
    if (s_.items[1] % kFan != 0) add(suffix(0, 0));
  }

  // From epoch `since` of the open group up to now, and `value` times the gain that starts at `gain`.
  void catch_up(std::int64_t since, std::int64_t gain, T value, T* row, Moves<T>& moves) const {
    moves.add({open(since - group_start()), s_.open + gain, row, value}, since < now());
  }

  void run(const Moves<T>& moves) const { (this->*kernels_.run)(moves.list.data(), moves.count); }

  // The same with all gradients of the epoch, at once.
  void catch_up(std::int64_t since, std::int64_t gain, const T* gradients, T* row) const {
    (this->*kernels_.through)(open(since - group_start()), s_.open + gain, gradients, shape_.m, row);
  }

  // Where the gain of a gradient of an epoch of the open group starts, the epoch counted from the group's
  // start.
  std::int64_t gain(std::int64_t epoch, std::int64_t gradient) const {
    return epoch * shape_.whole() + (shape_.q + gradient) * shape_.width;
  }

  // The map from the start of the open group up to now.
  const T* since_group_start() const { return open(0); }

 private:
  static constexpr std::int64_t kGroup = EpochState<T>::kGroup, kFan = EpochState<T>::kFan;
  static constexpr std::int64_t kHead = EpochShape::kHead;

  T* open(std::int64_t i) const { return s_.open + i * shape_.whole(); }
  T* archive(std::int64_t i) const { return s_.archive + i * shape_.small(); }
  T* suffix(std::int64_t level, std::int64_t i) const {
    return s_.suffix + (level * kFan + i) * shape_.small();
  }

  void push(std::int64_t level, const T* map) {
    const std::int64_t count = s_.items[1 + level] % kFan;
    compose(map, suffix(level, 0), count * shape_.q);
    std::copy_n(map, shape_.small(), suffix(level, count));
    ++s_.items[1 + level];
  }

  void compose(const T* later, T* earlier, std::int64_t rows) const {  // earlier ← later ∘ earlier
    (this->*kernels_.compose)(later, earlier, rows);
  }

  // Usual sizes are known to the compiler, which then keeps sums in registers. All of them:
  // (w, z) ← (w, 0) + Σ_k z_k row_k + Σ_b g_b gain_b.
  struct Kernels {
    void (EpochMaps::*run)(const Move<T>*, std::int64_t) const;
    void (EpochMaps::*compose)(const T*, T*, std::int64_t) const;
    void (EpochMaps::*through)(const T*, const T*, const T*, std::int64_t, T*) const;
  };

  template <int W, int Q>
  void run_known(const Move<T>* moves, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i)
      through<W, Q>(moves[i].map, moves[i].gain, &moves[i].value, 1, moves[i].row);
  }

  template <int W, int Q>
  void compose_known(const T* later, T* earlier, std::int64_t rows) const {
    for (std::int64_t k = 0; k < rows; ++k) through<W, Q>(later, nullptr, nullptr, 0, earlier + k * W);
  }

  template <int W, int Q>
  [[gnu::always_inline]] void through(const T* map, const T* gains, const T* g, std::int64_t count,
                                      T* row) const {
    const std::int64_t q = Q > 0 ? Q : shape_.q;
    Lanes<T, W> sum;
    sum.load(row);
    sum.template keep<kHead>();
    const T* z = row + kHead;
#pragma GCC unroll 12
    for (std::int64_t k = 0; k < q; ++k) sum.add(z[k], map + k * W);
    for (std::int64_t b = 0; b < count; ++b) sum.add(g[b], gains + b * W);
    sum.template restore<1, kHead>(row);  // what a feature waits for is not a number: infinity · 0 is NaN
    sum.store(row);
  }

  template <int W, int Q>
  void through_known(const T* map, const T* gains, const T* g, std::int64_t count, T* row) const {
    through<W, Q>(map, gains, g, count, row);
  }

  void run_wide(const Move<T>* moves, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i)
      through_wide(moves[i].map, moves[i].gain, &moves[i].value, 1, moves[i].row);
  }

  void compose_wide(const T* later, T* earlier, std::int64_t rows) const {
    for (std::int64_t k = 0; k < rows; ++k)
      through_wide(later, nullptr, nullptr, 0, earlier + k * shape_.width);
  }

  void through_wide(const T* map, const T* gains, const T* g, std::int64_t count, T* row) const {
    const std::int64_t width = shape_.width;
    std::vector<T> z(row + kHead, row + kHead + shape_.q), sum(row, row + width);
    std::fill(sum.begin() + kHead, sum.end(), T(0));
    for (std::int64_t k = 0; k < shape_.q; ++k, map += width)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += z[k] * map[c];
    for (std::int64_t b = 0; b < count; ++b, gains += width)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += g[b] * gains[c];
    row[0] = sum[0];  // what a feature waits for, until kHead, is not a number
    std::copy(sum.begin() + kHead, sum.end(), row + kHead);
  }

  template <int W, int Q>
  static Kernels known() {
    return {&EpochMaps::run_known<W, Q>, &EpochMaps::compose_known<W, Q>, &EpochMaps::through_known<W, Q>};
  }

  static Kernels kernels_of(const EpochShape& shape) {
    if (shape.width == 8) return shape.q == 1 ? known<8, 1>() : known<8, 0>();
    if (shape.width == 32) return known<32, 0>();
    if (shape.width != 16) return {&EpochMaps::run_wide, &EpochMaps::compose_wide, &EpochMaps::through_wide};
    switch (shape.q) {
      case 4:
        return known<16, 4>();
      case 7:
        return known<16, 7>();
      case 9:
        return known<16, 9>();
      default:
        return known<16, 0>();
    }
  }

  EpochShape shape_;
  EpochState<T> s_;
  Kernels kernels_;
};

}  // namespace skn
