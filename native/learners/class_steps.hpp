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

namespace skn {

// In the precision T of the table.
template <class T>
class ClassSteps {
  using Vector = typename Wide<T>::Vector;
  using Bits = typename Wide<T>::Bits;
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
        exp_wide<T>(power);
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
        whole[i] = static_cast<T>(std::min(BankLoss::kLogisticPace * length[lane + i], kLongest));
      // What all others have if one has more than half: 1 − p has no digits left of a tiny number.
      for (std::int64_t at = lane; at < end; at += kLanes)
        rest += vector(p + at) > T(0.5) ? Vector{} : vector(p + at);
      for (std::int64_t at = lane; at < end; at += kLanes) {
        meanwhile(at / kLanes);
        const bool came = at / kLanes == label;
        const Vector its = vector(p + at), other = its > T(0.5) ? rest : T(1) - its;
        if (came) {
          go(whole, other, its, vector(&way_[at]));
        } else {
          go(its < least ? Vector{} : whole, its, other, vector(&way_[at]));
          vector(&way_[at]) = -vector(&way_[at]);
        }
      }
    }
    return way_.data();
  }

 private:
  static constexpr T kFarthest = -20;
  static constexpr double kPassed = 1e4;  // a class with less than its even share over this is left alone
  static constexpr T kShort = 0x1p-6;
  static constexpr int kRounds = sizeof(T) == 4 ? 1 : 2;  // of fourth order: a tenth becomes 10⁻⁵, then 10⁻²⁰
  static constexpr double kLongest = sizeof(T) == 4 ? 1e25 : 1e290;

  static const Vector& vector(const T* p) { return *reinterpret_cast<const Vector*>(p); }
  static Vector& vector(T* p) { return *reinterpret_cast<Vector*>(p); }
  static const Doubles& doubles(const double* p) { return *reinterpret_cast<const Doubles*>(p); }

  // The way d on a path, w and r the probabilities of being wrong and right when it starts: the margin m has
  // m + e^m grow by the length, so that wd + r(e^d − 1) = w·length.
  static void go(const Vector& length, const Vector& w, const Vector& r, Vector& d) {
    const Vector u = length * w;
    d = u;
    shorten(d, w);
    if (!any(u >= kShort)) return;
    Vector far;
    guess(length, w, r, far);
    d = u < T(0.5) ? d : far;
    for (int round = 0; round < kRounds; ++round) {
      Vector scale, rest;
      split_power<T>(d, scale, rest);
      const Vector power = r * ((scale - T(1)) + scale * rest), per = T(1) / (T(1) + power);
      const Vector s = (power + r) * per, step = (u - w * d - power) * per;
      d += step * (T(1) - s * step * (T(0.5) - step * (T(3) * s - T(1)) * T(1.0 / 6)));
    }
  }

  template <class Mask>
  static bool any(const Mask& mask) {
    const FourBits bits = reinterpret_cast<FourBits>(mask);
    return ((bits[0] | bits[1]) | (bits[2] | bits[3])) != 0;
  }

  // The way on a short path, u = length·s, s the probability of being wrong, by Taylor's series, whose next
  // term is of sixth order.
  static void shorten(Vector& u, const Vector& s) {
    const Vector fourth = T(6) - s * (T(20) - T(15) * s),
                 fifth = T(24) - s * (T(130) - s * (T(210) - T(105) * s));
    const Vector later =
        (T(2) - T(3) * s) * T(1.0 / 6) - u * (fourth * T(1.0 / 24) - u * fifth * T(1.0 / 120));
    u = u * (T(1) - (T(1) - s) * u * (T(0.5) - u * later));
  }

  // About the way on a path that is not short, less than a sixth away. The margin m + e^m = z is about z
  // where e^m is small, Taylor's series at z = 1, and ln(z − ln z + ln z/z) where it is large.
  static void guess(const Vector& length, const Vector& w, const Vector& r, Vector& d) {
    const Vector start = r / w;
    Vector from = start;
    rough_log(from);
    const Vector z = from + start + length, by = z - T(1), middle = by * (T(0.5) - by * T(1.0 / 16));
    Vector log = z;
    rough_log(log);
    Vector large = z - log + log / z;
    rough_log(large);
    d = (z > T(2) ? large : z < T(-2) ? z : middle) - from;
    d = d < T(0) ? Vector{} : d;
  }

  // Logarithms within .03: the bits of a number are about that of base 2.
  static void rough_log(Vector& x) {
    const Bits bits = reinterpret_cast<Bits>(x);
    if constexpr (sizeof(T) == 4) {
      using Whole [[gnu::vector_size(32)]] = std::int32_t;
      const Vector near = __builtin_convertvector(reinterpret_cast<Whole>(bits), Vector);
      x = (near - 126.957F * 0x1p23F) * (0.6931471805599453F * 0x1p-23F);
    } else {
      const Vector near = reinterpret_cast<Vector>((bits >> 20) | 0x4330000000000000);
      x = (near - (0x1p52 + 1022.957 * 0x1p32)) * (0.6931471805599453 * 0x1p-32);
    }
  }

  std::int64_t K_;
  std::vector<T> way_;
};

}  // namespace skn
