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

class ClassSteps {
 public:
  static constexpr std::int64_t kLanes = 8;
  using Lanes = std::array<double, kLanes>;

  explicit ClassSteps(std::int64_t classes)
      : K_(classes), way_(classes * kLanes), far_(classes * kLanes + kWidth) {}

  // Every expert's scores become probabilities, none of which is less than e⁻²⁰ times its largest.
  void softmax(double* p) const {
    for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
      const std::int64_t end = K_ * kLanes;
      Four top = four(p + lane), sum{};
      for (std::int64_t at = lane; at < end; at += kLanes) top = top < four(p + at) ? four(p + at) : top;
      for (std::int64_t at = lane; at < end; at += kLanes) {
        Four power = four(p + at) - top;
        power = power < kFarthest ? Four{} + kFarthest : power;
        exp_four(power);
        sum += four(p + at) = power;
      }
      const Four per = 1.0 / sum;
      for (std::int64_t at = lane; at < end; at += kLanes) four(p + at) *= per;
    }
  }

  // How far the score of each class moves: its log odds, all other scores being what they are, follow the
  // logistic loss on a path whose length is that of the expert. Classes that are hardly possible are left
  // alone.
  const double* take(const double* p, std::int64_t label, const Lanes& length) {
    const double least = 1.0 / (kPassed * static_cast<double>(K_));
    std::int64_t far = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
      for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
        const std::int64_t at = k * kLanes + lane;
        const Four its = four(p + at), other = 1.0 - its;
        const Four wrong = k != label ? its : other < kCertain ? Four{} + kCertain : other;
        const Four whole = BankLoss::kLogisticPace * four(length.data() + lane) * wrong;
        const Four u = its < (k == label ? 0.0 : least) ? Four{} : whole;
        four(&way_[at]) = u;
        shorten(four(&way_[at]), wrong);
        if (k != label) four(&way_[at]) = -four(&way_[at]);
        for (int i = 0; i < kWidth; ++i) {
          far_[far] = at + i;
          far += u[i] >= kShort;
        }
      }
    }
    for (std::int64_t i = far; i % kWidth != 0; ++i) far_[i] = far_[far - 1];
    for (std::int64_t i = 0; i < far; i += kWidth) go(&far_[i], p, label, length);
    return way_.data();
  }

 private:
  static constexpr int kWidth = 4;
  static constexpr double kFarthest = -20;
  static constexpr double kPassed = 1e4;    // a class with less than its even share over this is left alone
  static constexpr double kCertain = 1e-9;  // what is left of a probability at least
  static constexpr double kShort = 0x1p-6;
  static constexpr double kLongest = 1e300;

  // The way on a short path, u = length·s, s the probability of being wrong, by Taylor's series, whose next
  // term is of sixth order.
  static void shorten(Four& u, const Four& s) {
    const Four fourth = 6.0 - s * (20.0 - 15.0 * s), fifth = 24.0 - s * (130.0 - s * (210.0 - 105.0 * s));
    const Four later = (2.0 - 3.0 * s) * (1.0 / 6) - u * (fourth * (1.0 / 24) - u * fifth * (1.0 / 120));
    u = u * (1.0 - (1.0 - s) * u * (0.5 - u * later));
  }

  // Four paths that are not short: m + e^m grows by the length, m the margin.
  void go(const std::int64_t* at, const double* p, std::int64_t label, const Lanes& length) {
    Four wrong, right, z, sign, near;
    for (int i = 0; i < kWidth; ++i) {
      const bool came = at[i] / kLanes == label;
      const double its = p[at[i]], other = std::max(1.0 - its, kCertain);
      wrong[i] = came ? other : its;
      right[i] = came ? its : other;  // not 1 − wrong, which has no digits left of a tiny one
      z[i] = BankLoss::kLogisticPace * length[at[i] % kLanes];
      sign[i] = came ? 1.0 : -1.0;
      near[i] = way_[at[i]] * sign[i];
    }
    const Four start = right / wrong, bend = z * wrong;
    Four from = start;
    log_four(from);
    z += from + start;
    z = z > kLongest ? Four{} + kLongest : z;
    Four m = z;
    guess(m);
    m = bend < 0.5 ? from + near : m;
    for (int round = 0; round < 2; ++round) {  // of fourth order: a tenth becomes 10⁻⁵, then 10⁻²⁰
      Four power = m;
      exp_four(power);
      const Four per = 1.0 / (1.0 + power), s = power * per, step = (z - m - power) * per;
      m += step * (1.0 - s * step * (0.5 - step * (3.0 * s - 1.0) * (1.0 / 6)));
    }
    m = m < from ? from : m;
    for (int i = 0; i < kWidth; ++i) way_[at[i]] = sign[i] * (m[i] - from[i]);
  }

  // About the m with m + e^m = z, less than an eighth away: z where e^m is small, Taylor's series at z = 1,
  // and ln(z − ln z + ln z/z) where it is large.
  static void guess(Four& z) {
    const Four by = z - 1.0, middle = by * (0.5 - by * (1.0 / 16));
    Four log = z;
    rough_log(log);
    Four large = z - log + log / z;
    rough_log(large);
    z = z > 2.0 ? large : z < -2.0 ? z : middle;
  }

  // Logarithms of numbers above 1 within .03: the bits of a number are about that of base 2.
  static void rough_log(Four& x) {
    const Four bits = reinterpret_cast<Four>((reinterpret_cast<FourBits>(x) >> 20) | 0x4330000000000000);
    x = (bits - (0x1p52 + 1022.957 * 0x1p32)) * (0.6931471805599453 * 0x1p-32);
  }

  std::int64_t K_;
  std::vector<double> way_;
  std::vector<std::int64_t> far_;  // numbers of classes × kLanes whose paths are not short
};

}  // namespace skn
