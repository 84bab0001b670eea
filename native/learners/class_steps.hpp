// What all experts of a bank of classes do at once (class_bank.hpp): probabilities of their scores, and how
// far their steps move them. Numbers of a class stand side by side, one per expert: kLanes of them. A vector
// has those of kTogether classes; arrays are padded to whole vectors.
#pragma once

#include <algorithm>
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
  using Path = OddsPath<Wide<T>>;

 public:
  using Vector = typename Wide<T>::Vector;
  static constexpr std::int64_t kLanes = 4, kWidth = sizeof(Vector) / sizeof(T), kTogether = kWidth / kLanes;

  explicit ClassSteps(std::int64_t classes)
      : K_(classes), vectors_((classes + kTogether - 1) / kTogether), way_(vectors_ * kWidth) {
    for (std::int64_t i = 0; i < kWidth; ++i) in_last_[i] = T((vectors_ - 1) * kWidth + i < K_ * kLanes);
  }

  std::int64_t vectors() const { return vectors_; }

  static const Vector& vector(const T* p) { return *reinterpret_cast<const Vector*>(p); }
  static Vector& vector(T* p) { return *reinterpret_cast<Vector*>(p); }

  // Every expert's scores become probabilities, none of which is less than e⁻²⁰ times its largest; 0 where
  // there is no class. `top` has the largest scores.
  void softmax(const double* scores, const Four& top, T* p) const {
    for (std::int64_t at = 0; at < K_ * kLanes; at += kLanes) narrow(four(scores + at) - top, p + at);
    const std::int64_t last = (vectors_ - 1) * kWidth;
    Vector sum{};
    for (std::int64_t at = 0; at <= last; at += kWidth) {
      Vector power = vector(p + at);
      power = power < kFarthest ? Vector{} + kFarthest : power;
      exp_of<Wide<T>>(power);
      if (at == last) power *= in_last_;
      sum += vector(p + at) = power;
    }
    fold(sum);
    const Vector per = T(1) / sum;
    for (std::int64_t at = 0; at <= last; at += kWidth) vector(p + at) *= per;
  }

  // How far the score of each class moves: its log odds, all other scores being what they are, follow the
  // logistic loss on a path whose length is that of the expert. Classes that are hardly possible are left
  // alone. meanwhile(v) is called for each vector v.
  template <class Meanwhile>
  const T* take(const T* p, std::int64_t label, const Four& length, Meanwhile meanwhile) {
    const T least = static_cast<T>(1.0 / (kPassed * static_cast<double>(K_)));
    const std::int64_t end = vectors_ * kWidth;
    Vector whole, rest{};
    for (std::int64_t i = 0; i < kWidth; ++i)
      whole[i] = static_cast<T>(std::min(BankLoss::kLogisticPace * length[i % kLanes], Path::kLongest));
    // What all others have if one has more than half: 1 − p has no digits left of a tiny number.
    for (std::int64_t at = 0; at < end; at += kWidth)
      rest += vector(p + at) > T(0.5) ? Vector{} : vector(p + at);
    fold(rest);
    for (std::int64_t at = 0; at < end; at += kWidth) {
      meanwhile(at / kWidth);
      const Vector its = vector(p + at), other = its > T(0.5) ? rest : T(1) - its;
      Vector way;
      if (at / kWidth != label / kTogether) {
        Path::go(its < least ? Vector{} : whole, its, other, way);
        vector(&way_[at]) = -way;
        continue;
      }
      Vector came{};
      for (std::int64_t e = 0; e < kLanes; ++e) came[label * kLanes - at + e] = T(1);
      const auto up = came > T(0);
      Path::go(((!up) & (its < least)) ? Vector{} : whole, up ? other : its, up ? its : other, way);
      vector(&way_[at]) = up ? way : -way;
    }
    return way_.data();
  }

 private:
  static constexpr T kFarthest = -20;
  static constexpr double kPassed = 1e4;  // a class with less than its even share over this is left alone

  // Sums over the classes of a vector, in all of its places.
  static void fold(Vector& sum) {
    if constexpr (kTogether == 2) {
      Vector other;
      for (std::int64_t i = 0; i < kWidth; ++i) other[i] = sum[(i + kLanes) % kWidth];
      sum += other;
    }
  }

  std::int64_t K_, vectors_;
  Vector in_last_;  // 1 where the last vector has a class, else 0
  std::vector<T> way_;
};

}  // namespace skn
