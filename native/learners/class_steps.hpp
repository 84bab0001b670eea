// What all experts of a bank of classes do at once (class_bank.hpp): probabilities of their scores, and how
// far their steps move them. Numbers of a class stand side by side, one per expert: kLanes of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"
#include "core/small_matrix.hpp"
#include "learners/bank_loss.hpp"
#include "learners/odds_path.hpp"

namespace skn {

// In the precision T of the table.
template <class T>
class ClassSteps {
  using Vector = typename Wide<T>::Vector;
  using Path = OddsPath<Wide<T>>;
  static constexpr std::int64_t kWidth = sizeof(Vector) / sizeof(T);
  using Doubles [[gnu::vector_size(8 * kWidth), gnu::may_alias, gnu::aligned(8)]] = double;

 public:
  static constexpr std::int64_t kLanes = 8;
  using Lanes = std::array<double, kLanes>;

  explicit ClassSteps(std::int64_t classes) : K_(classes), way_(classes * kLanes) {}

  // Every expert's scores become probabilities, none of which is less than e⁻²⁰ times its largest. `top` has
  // the largest scores.
  void softmax(const double* scores, const Lanes& top, T* p) const {
    const std::int64_t end = K_ * kLanes;
    for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
      const Doubles largest = doubles(&top[lane]);
      Vector sum{};
      for (std::int64_t at = lane; at < end; at += kLanes) {
        const Doubles below = doubles(scores + at) - largest;
        Vector power = __builtin_convertvector(below, Vector);
        power = power < kFarthest ? Vector{} + kFarthest : power;
        exp_of<Wide<T>>(power);
        sum += vector(p + at) = power;
      }
      const Vector per = T(1) / sum;
      for (std::int64_t at = lane; at < end; at += kLanes) vector(p + at) *= per;
    }
  }

  // How far the score of each class moves: its log odds, all other scores being what they are, follow the
  // logistic loss on a path whose length is that of the expert. Classes that are hardly possible are left
  // alone. meanwhile(k) is called for each class k, in T = double twice.
  template <class Meanwhile>
  const T* take(const T* p, std::int64_t label, const Lanes& length, Meanwhile meanwhile) {
    const T least = static_cast<T>(1.0 / (kPassed * static_cast<double>(K_)));
    const std::int64_t end = K_ * kLanes;
    for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
      Vector whole, rest{};
      for (std::int64_t i = 0; i < kWidth; ++i)
        whole[i] = static_cast<T>(std::min(BankLoss::kLogisticPace * length[lane + i], Path::kLongest));
      // What all others have if one has more than half: 1 − p has no digits left of a tiny number.
      for (std::int64_t at = lane; at < end; at += kLanes)
        rest += vector(p + at) > T(0.5) ? Vector{} : vector(p + at);
      for (std::int64_t at = lane; at < end; at += kLanes) {
        meanwhile(at / kLanes);
        const bool came = at / kLanes == label;
        const Vector its = vector(p + at), other = its > T(0.5) ? rest : T(1) - its;
        if (came) {
          Path::go(whole, other, its, vector(&way_[at]));
        } else {
          Path::go(its < least ? Vector{} : whole, its, other, vector(&way_[at]));
          vector(&way_[at]) = -vector(&way_[at]);
        }
      }
    }
    return way_.data();
  }

 private:
  static constexpr T kFarthest = -20;
  static constexpr double kPassed = 1e4;  // a class with less than its even share over this is left alone

  static const Vector& vector(const T* p) { return *reinterpret_cast<const Vector*>(p); }
  static Vector& vector(T* p) { return *reinterpret_cast<Vector*>(p); }
  static const Doubles& doubles(const double* p) { return *reinterpret_cast<const Doubles*>(p); }

  std::int64_t K_;
  std::vector<T> way_;
};

}  // namespace skn
