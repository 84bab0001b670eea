// A row of a bank of classes (class_bank.hpp) and its features' rows of the table: scaled, summed up, moved.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_state.hpp"
#include "learners/class_steps.hpp"

namespace skn {

template <class T>
class ClassRow {
  using State = BankState<T>;
  static constexpr std::int64_t kLanes = ClassSteps<T>::kLanes;

 public:
  ClassRow(const BankState<T>& state, const Table<T>& table, std::int64_t experts)
      : s_(state), table_(table) {
    for (std::int64_t e = 0; e < kLanes; ++e) {
      const bool rare = e < experts && s_.expert[e].sees(kRare);
      rare_[e] = T(rare);
      plain_[e] = T(!rare);
    }
  }

  T* x() { return x_.data(); }                     // scaled
  const T* sizes() const { return mean_.data(); }  // mean|x| of its features
  double xx() const { return xx_; }                // ‖x‖² with the constant, scaled
  double seen_xx() const { return seen_xx_; }      // that of the features that were seen before
  double rare_xx() const { return rare_xx_; }      // Σ x²√(T/n)

  // Brings features up to date. Which need it is found out without a branch, so that many rows of the table
  // can be on their way from memory at once.
  void fetch(const Row& row, BankSketch<T>& sketch) {
    const std::int64_t n = row.size();
    rows_.resize(static_cast<std::size_t>(n));
    behind_.resize(static_cast<std::size_t>(n + 1));
    T **rows = rows_.data(), **late = behind_.data();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const Bits now = std::bit_cast<Bits>(static_cast<T>(sketch.now()));
    std::int64_t behind = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      rows[i] = table_.packed_row(row.index()[i]);
      late[behind] = rows[i];
      behind += std::bit_cast<Bits>(tail_of(rows[i])[State::kEpoch]) < now;  // negative: large as bits
    }
    for (std::int64_t i = 0; i < behind; ++i) sketch.settle(late[i]);
  }

  // The same on copies: nothing is changed.
  void peek(const std::int64_t* index, std::int64_t n, BankSketch<T>& sketch) {
    rows_.resize(static_cast<std::size_t>(n));
    std::size_t late = 0;
    const auto now = static_cast<T>(sketch.now());
    for (std::int64_t i = 0; i < n; ++i) {
      rows_[i] = table_.packed_row(index[i]);
      const T epoch = tail_of(rows_[i])[State::kEpoch];
      late += epoch >= T(0) && epoch < now;
    }
    copies_.resize(late * static_cast<std::size_t>(table_.stride));
    T* copy = copies_.data();
    for (std::int64_t i = 0; i < n && late > 0; ++i) {
      const T epoch = tail_of(rows_[i])[State::kEpoch];
      if (!(epoch >= T(0) && epoch < now)) continue;
      std::copy_n(rows_[i], table_.stride, copy);
      sketch.settle(copy);
      rows_[i] = copy;
      copy += table_.stride;
    }
  }

  // x_i divided by mean|x_i| (n/T)^¼, as in bank.hpp.
  void scale(const double* value) {
    const std::int64_t n = size();
    for (auto* array : {&x_, &count_, &mean_, &rarity_}) array->resize(static_cast<std::size_t>(n));
    const T rows = static_cast<T>(s_.bank_counts[State::kLearned] + 1);
    T* __restrict x = x_.data();
    T* __restrict count = count_.data();
    T* __restrict mean = mean_.data();
    T* __restrict rarity = rarity_.data();
    for (std::int64_t i = 0; i < n; ++i) {
      const T* const tail = tail_of(rows_[i]);
      x[i] = static_cast<T>(value[i]);
      count[i] = tail[State::kCount];
      mean[i] = tail[State::kMean];
    }
    std::int32_t met = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      met += count[i] > T(0);
      count[i] += T(1);
      mean[i] += (std::abs(x[i]) - mean[i]) / count[i];
      mean[i] = std::max(mean[i], std::numeric_limits<T>::min());
      rarity[i] = std::sqrt(rows / count[i]);
      x[i] = x[i] / mean[i] * std::sqrt(rarity[i]);
    }
    fresh_ = met < n;
    Four all{}, rare{}, seen{};
    const auto add = [&](const Four& its, const Four& rarely, const Four& times) {
      const Four square = its * its;
      all += square;
      rare += square * rarely;
      seen += times > 1.0 ? square : Four{};
    };
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      Four its, rarely, times;
      widen(x + i, its);
      widen(rarity + i, rarely);
      widen(count + i, times);
      add(its, rarely, times);
    }
    Four its{}, rarely{}, times{};
    for (; i < n; ++i) {
      its[i % 4] = static_cast<double>(x[i]);
      rarely[i % 4] = static_cast<double>(rarity[i]);
      times[i % 4] = static_cast<double>(count[i]);
    }
    add(its, rarely, times);
    const double one = s_.intercept ? 1.0 : 0.0;
    xx_ = one + total(all);
    rare_xx_ = one + total(rare);
    seen_xx_ = one + total(seen);
  }

  // Σ x_i row_i of so many columns, or a few more: short sums in T, long ones in double.
  void gather(double* sums, std::int64_t columns) const {
    const std::int64_t used = std::min(columns + 15, table_.stride) / 16 * 16;
    std::int64_t c = 0;
    for (; c + 64 <= used; c += 64) gather_columns<64>(c, sums + c);
    for (; c + 32 <= used; c += 32) gather_columns<32>(c, sums + c);
    for (; c < used; c += 16) gather_columns<16>(c, sums + c);
  }

  // Features met for the first time get a place.
  void enter(const Row& row) {
    ++s_.bank_counts[State::kLearned];
    s_.bank_counts[State::kTouched] += row.size();
    const std::int64_t* index = row.index();
    for (std::int64_t i = 0, n = fresh_ ? row.size() : 0; i < n; ++i) {
      if (count_[i] > T(1)) continue;
      rows_[i] = table_.row(table_.activate_packed(index[i], s_.counts[State::kActive]));
      T* tail = tail_of(rows_[i]);
      tail[State::kCount] = T(1);
      tail[State::kEpoch] = T(-1);
    }
    if (row.size() > 0 && index[row.size() - 1] >= s_.counts[State::kDimension])
      s_.counts[State::kDimension] = index[row.size() - 1] + 1;
  }

  // The experts' steps, and the row's scales, which become those of its features.
  void scatter(const T* step, std::int64_t classes) {
    const std::int64_t n = size();
    seen_x_.resize(static_cast<std::size_t>(n * kLanes));
    for (std::int64_t i = 0; i < n; ++i) {
      Lanes<T, kLanes> x;
      x.zero();
      x.add(x_[i], plain_.data());
      x.add(x_[i] * rarity_[i], rare_.data());
      x.store(&seen_x_[i * kLanes]);
      T* const tail = tail_of(rows_[i]);
      tail[State::kCount] = count_[i];
      tail[State::kMean] = mean_[i];
    }
    std::int64_t k = 0;
    for (; k + kTogether <= classes; k += kTogether)
      scatter_classes<kTogether>(k * kLanes, step + k * kLanes);
    for (; k < classes; ++k) scatter_classes<1>(k * kLanes, step + k * kLanes);
  }

 private:
  static constexpr int kTogether = 4;  // classes whose steps are in registers at once

  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  T* tail_of(T* row) const { return row + table_.stride - State::kTail; }

  template <int width>
  void gather_columns(std::int64_t first, double* sums) const {
    constexpr std::int64_t kRun = 32;
    const std::int64_t n = size();
    std::fill_n(sums, width, 0.0);
    for (std::int64_t start = 0; start < n; start += kRun) {
      const std::int64_t stop = std::min(start + kRun, n);
      Lanes<T, width> sum;
      sum.zero();
      for (std::int64_t i = start; i < stop; ++i) sum.add(x_[i], rows_[i] + first);
      T part[width];
      sum.store(part);
      for (std::int64_t j = 0; j < width; ++j) sums[j] += static_cast<double>(part[j]);
    }
  }

  // The steps of a few classes, which stay in registers, unless all of them are 0.
  template <int count>
  void scatter_classes(std::int64_t first, const T* its) {
    if (std::all_of(its, its + count * kLanes, [](T step) { return step == T(0); })) return;
    Lanes<T, kLanes> step[count];
    for (int k = 0; k < count; ++k) step[k].load(its + k * kLanes);
    for (std::int64_t i = 0; i < size(); ++i) {
      T* const to = rows_[i] + first;
      Lanes<T, kLanes> x, w;
      x.load(&seen_x_[i * kLanes]);
      for (int k = 0; k < count; ++k) {
        w.load(to + k * kLanes);
        w.add(x, step[k]);
        w.store(to + k * kLanes);
      }
    }
  }

  BankState<T> s_;
  Table<T> table_;
  std::array<T, kLanes> plain_, rare_;  // 1 for experts of that kind, else 0
  std::vector<T*> rows_, behind_;       // of the table
  std::vector<T> x_, count_, mean_, rarity_, copies_;
  std::vector<T> seen_x_;  // features × kLanes: x as each expert sees it
  bool fresh_ = false;     // has the row features that were never seen before?
  double xx_ = 0, seen_xx_ = 0, rare_xx_ = 0;
};

}  // namespace skn
