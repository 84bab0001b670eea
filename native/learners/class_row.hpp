// A row of a bank of classes (class_bank.hpp): the steps of its experts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/table.hpp"
#include "learners/bank_row.hpp"
#include "learners/bank_state.hpp"
#include "learners/class_steps.hpp"

namespace skn {

template <class T>
class ClassRow : public BankRow<T> {
  using Base = BankRow<T>;
  using Base::rare_x_, Base::rows_, Base::size_, Base::x_;
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

  // The experts' steps, and the row's scales, which become those of its features. What is 0 for all classes
  // of a vector is left out.
  void scatter(const T* step) {
    for (std::int64_t i = 0; i < size_; ++i) this->note(i);
    const std::int64_t whole = classes_ / Steps::kTogether * kWidth, end = classes_ * Steps::kLanes;
    moved_.clear();
    for (std::int64_t at = 0; at < whole; at += kWidth)
      if (!std::all_of(step + at, step + at + kWidth, [](T s) { return s == T(0); })) moved_.push_back(at);
    std::size_t v = 0;
    for (; v + kMost <= moved_.size(); v += kMost) scatter_vectors<kMost>(&moved_[v], step);
    if (v + 4 <= moved_.size()) scatter_vectors<4>(&moved_[v], step), v += 4;
    if (v + 2 <= moved_.size()) scatter_vectors<2>(&moved_[v], step), v += 2;
    if (v < moved_.size()) scatter_vectors<1>(&moved_[v], step);
    for (std::int64_t at = whole; at < end; ++at)  // half a vector
      this->scatter_column(at, step[at], rare_[at - whole] > T(0));
  }

 private:
  static constexpr std::size_t kMost = 8;  // vectors whose steps are in registers at once

  template <std::size_t count>
  void scatter_vectors(const std::int64_t* at, const T* steps) {
    Vector step[count];
    for (std::size_t v = 0; v < count; ++v) step[v] = Steps::vector(steps + at[v]);
    const auto rarely = rare_ > T(0);
    for (std::int64_t i = 0; i < size_; ++i) {
      const Vector plain = Vector{} + x_[i], rare = Vector{} + rare_x_[i], x = rarely ? rare : plain;
      T* const to = rows_[i];
      for (std::size_t v = 0; v < count; ++v) Steps::vector(to + at[v]) += x * step[v];
    }
  }

  std::int64_t classes_;
  Vector rare_;                      // 1 for experts of that kind, else 0
  std::vector<std::int64_t> moved_;  // vectors whose steps are not all 0
};

}  // namespace skn
