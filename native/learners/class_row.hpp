// A row of a bank of classes (class_bank.hpp): what its features add up to, and the steps of its experts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "learners/bank_row.hpp"
#include "learners/bank_state.hpp"
#include "learners/class_steps.hpp"

namespace skn {

template <class T>
class ClassRow : public BankRow<T> {
  using Base = BankRow<T>;
  using Base::padded_, Base::rare_x_, Base::rows_, Base::size_, Base::table_, Base::x_;
  using Steps = ClassSteps<T>;
  using Vector = typename Steps::Vector;
  static constexpr std::int64_t kWidth = Steps::kWidth;

 public:
  ClassRow(const BankState<T>& state, const Table<T>& table, std::int64_t classes, std::int64_t experts)
      : Base(state, table), classes_(classes) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const std::int64_t e = i % Steps::kLanes;
      rare_[i] = T(e < experts && state.expert[e].sees(kRare));
    }
  }

  // Σ x_i row_i of so many columns, or a few more: short sums in T, long ones in double. As many columns at
  // once as there are registers for.
  void gather(double* sums, std::int64_t columns) const {
    const std::int64_t most = table_.stride / kWidth, needed = (columns + 4 * kWidth - 1) / (4 * kWidth) * 4;
    const std::int64_t end = std::min(needed, most);
    std::int64_t v = 0;
    for (; v + 12 <= end; v += 12) gather_vectors<12>(v * kWidth, sums + v * kWidth);
    if (v + 8 <= end) gather_vectors<8>(v * kWidth, sums + v * kWidth), v += 8;
    if (v + 4 <= end) gather_vectors<4>(v * kWidth, sums + v * kWidth), v += 4;
    if (v < end) gather_vectors<2>(v * kWidth, sums + v * kWidth);
  }

  // The experts' steps, and the row's scales, which become those of its features. What is 0 for all classes
  // of a vector is left out.
  void scatter(const T* step) {
    for (std::int64_t i = 0; i < size_; ++i) this->note(i);
    const std::int64_t whole = classes_ / Steps::kTogether * kWidth, end = classes_ * Steps::kLanes;
    stepped_.clear();
    for (std::int64_t at = 0; at < whole; at += kWidth)
      if (!std::all_of(step + at, step + at + kWidth, [](T s) { return s == T(0); })) stepped_.push_back(at);
    for (std::size_t v = 0; v < stepped_.size();) {
      std::size_t end = v + 1;  // of a few that follow one another
      while (end < stepped_.size() && end < v + kMost && stepped_[end] == stepped_[end - 1] + kWidth) ++end;
      scatter_run(stepped_[v], end - v, step);
      v = end;
    }
    for (std::int64_t at = whole; at < end; ++at)  // half a vector
      scatter_column(at, step[at], rare_[at - whole] > T(0));
  }

 private:
  static_assert(Table<T>::padded(17) % (2 * kWidth) == 0);

  void scatter_column(std::int64_t c, T step, bool rarely) const {
    const T* const x = rarely ? rare_x_.data() : x_.data();
    for (std::int64_t i = 0; i < size_; ++i) rows_[i][c] += x[i] * step;
  }

  template <int count>
  void gather_vectors(std::int64_t first, double* sums) const {
    constexpr std::int64_t kRun = 32;
    const T* const x = x_.data();
    T* const* const rows = rows_.data();
    if (padded_ == 0) std::fill_n(sums, count * kWidth, 0.0);
    for (std::int64_t start = 0; start < padded_; start += kRun) {
      const std::int64_t stop = std::min(start + kRun, padded_);
      Vector sum[count] = {};
      for (std::int64_t i = start; i < stop; i += 2)
        for (std::int64_t j = i; j < i + 2; ++j) {
          const T* its = rows[j] + first;
          one_address(its);
          for (int c = 0; c < count; ++c) sum[c] += x[j] * Steps::vector(its + c * kWidth);
        }
      for (int c = 0; c < count; ++c) add(sum[c], start == 0, sums + c * kWidth);
    }
  }

  // Compilers would keep an address for each column.
  template <class Pointer>
  [[gnu::always_inline]] static void one_address(Pointer& p) {
    asm("" : "+r"(p));
  }

  [[gnu::always_inline]] static void add(const Vector& part, bool first, double* sums) {
    if constexpr (sizeof(T) == 4) {
      using Half = typename FourOf<T>::Vector;
      const Half low = {part[0], part[1], part[2], part[3]}, high = {part[4], part[5], part[6], part[7]};
      four(sums) = __builtin_convertvector(low, Four) + (first ? Four{} : four(sums));
      four(sums + 4) = __builtin_convertvector(high, Four) + (first ? Four{} : four(sums + 4));
    } else {
      four(sums) = part + (first ? Four{} : four(sums));
    }
  }

  static constexpr std::size_t kMost = 10;  // vectors whose steps are in registers at once

  void scatter_run(std::int64_t at, std::size_t count, const T* step) const {
    if (count == kMost) return scatter_vectors<kMost>(at, step);
    if (count >= 5) scatter_vectors<5>(at, step), at += 5 * kWidth, count -= 5;
    if (count >= 3) scatter_vectors<3>(at, step), at += 3 * kWidth, count -= 3;
    for (; count > 0; --count, at += kWidth) scatter_vectors<1>(at, step);
  }

  template <int count>
  void scatter_vectors(std::int64_t at, const T* steps) const {
    Vector step[count];
    for (int v = 0; v < count; ++v) step[v] = Steps::vector(steps + at + v * kWidth);
    const auto rarely = rare_ > T(0);
    const T *const plain_x = x_.data(), *const rare_x = rare_x_.data();
    T* const* const rows = rows_.data();
    for (std::int64_t i = 0, n = size_; i < n; ++i) {
      const Vector plain = Vector{} + plain_x[i], rare = Vector{} + rare_x[i], x = rarely ? rare : plain;
      T* to = rows[i] + at;
      one_address(to);
      for (int v = 0; v < count; ++v) Steps::vector(to + v * kWidth) += x * step[v];
    }
  }

  std::int64_t classes_;
  Vector rare_;                        // 1 for experts of that kind, else 0
  std::vector<std::int64_t> stepped_;  // vectors whose steps are not all 0
};

}  // namespace skn
