// A row of a bank of classes (class_bank.hpp): the steps of its experts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/simd.hpp"
#include "core/table.hpp"
#include "learners/bank_row.hpp"
#include "learners/bank_state.hpp"
#include "learners/class_steps.hpp"

namespace skn {

template <class T>
class ClassRow : public BankRow<T> {
  using Base = BankRow<T>;
  using Base::rare_x_, Base::rows_, Base::size_, Base::x_;
  static constexpr std::int64_t kLanes = ClassSteps<T>::kLanes;

 public:
  ClassRow(const BankState<T>& state, const Table<T>& table, std::int64_t experts) : Base(state, table) {
    for (std::int64_t e = 0; e < kLanes; ++e) {
      const bool rare = e < experts && state.expert[e].sees(kRare);
      rare_[e] = T(rare);
      plain_[e] = T(!rare);
    }
  }

  // The experts' steps, and the row's scales, which become those of its features.
  void scatter(const T* step, std::int64_t classes) {
    const std::int64_t n = size_;
    seen_x_.resize(static_cast<std::size_t>(n * kLanes));
    for (std::int64_t i = 0; i < n; ++i) {
      Lanes<T, kLanes> x;
      x.zero();
      x.add(x_[i], plain_.data());
      x.add(rare_x_[i], rare_.data());
      x.store(&seen_x_[i * kLanes]);
      this->note(i);
    }
    std::int64_t k = 0;
    for (; k + kTogether <= classes; k += kTogether)
      scatter_classes<kTogether>(k * kLanes, step + k * kLanes);
    for (; k < classes; ++k) scatter_classes<1>(k * kLanes, step + k * kLanes);
  }

 private:
  static constexpr int kTogether = 4;  // classes whose steps are in registers at once

  // The steps of a few classes, which stay in registers, unless all of them are 0.
  template <int count>
  void scatter_classes(std::int64_t first, const T* its) {
    if (std::all_of(its, its + count * kLanes, [](T step) { return step == T(0); })) return;
    Lanes<T, kLanes> step[count];
    for (int k = 0; k < count; ++k) step[k].load(its + k * kLanes);
    for (std::int64_t i = 0; i < size_; ++i) {
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

  std::array<T, kLanes> plain_, rare_;  // 1 for experts of that kind, else 0
  std::vector<T> seen_x_;               // features × kLanes: x as each expert sees it
};

}  // namespace skn
