// What the experts of a bank (bank.hpp) say together, if labels are classes: stacking (Wolpert 1992).
//
// The rule that weighs experts (aggregate.hpp) soon trusts one of them alone, though several that err on
// different rows are better together, and it takes them for as sure as they say. So there is a second
// opinion, the log odds θᵀz, where z has the log odds of what the rule would play and the experts'
// predictions. They are learned by Bayesian logistic regression, θ ~ N((1, 0, …, 0), I) at first; C is the
// covariance of what is known of θ.
//
// What is played is the mean of both opinions, weighted by their losses: for the squared loss at the rate ⅛,
// at which it is exp-concave on [−1, 1], for the logistic loss as probabilities at the rate 1.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/small_matrix.hpp"
#include "learners/bank_loss.hpp"

namespace skn {

class BankStack {
 public:
  static constexpr std::int64_t kInputs = 12;  // at most
  enum { kTheta = kInputs, kShares, kRows };   // of the state, kRows × kInputs: after C

  // Log odds that are predictions lie within ±clip.
  BankStack(const BankLoss& loss, double clip, double* state)
      : logistic_(loss.logistic()),
        largest_(logistic_ ? std::min(clip, BankLoss::kLargestLogit) : BankLoss::kLargestLogit),
        s_(state) {}

  // What is played where the rule would play P: p are the predictions of `steps` experts, `whole` those of
  // as many others as there are.
  double play(double P, const double* p, std::int64_t steps, const double* whole, std::int64_t more) {
    z_[0] = logistic_ ? P : held(std::log((1.0 + P) / (1.0 - P)));
    double* end = std::copy_n(whole, more, std::copy_n(p, steps, z_.data() + 1));
    n_ = end - z_.data() <= kUsual ? kUsual : kInputs;
    std::fill(end, z_.data() + n_, 0.0);
    const double odds = held(dot(row(kTheta), z_.data(), n_));
    own_ = Chances(odds);
    const double* v = row(kShares);
    if (!logistic_) {
      own_p_ = own_.up - own_.down;
      rule_p_ = P;
      return v[0] * P + v[1] * own_p_;
    }
    rule_ = Chances(P);
    const double both = std::log((v[0] * rule_.up + v[1] * own_.up) / (v[0] * rule_.down + v[1] * own_.down));
    return std::clamp(both, std::min(P, odds), std::max(P, odds));
  }

  // The label y = ±1 of the row that was played for, of weight h, with which there have been `clock` rows.
  void learn(double y, double h, double clock) {
    charge(y, h, 1.0 / ((clock + 1.0) * (clock + 1.0)));
    h = std::min(h, kHeaviest);
    const double slope = h * (y > 0 ? own_.down : -own_.up), curvature = h * own_.up * own_.down;
    if (n_ == kUsual) return step<kUsual>(slope, curvature, h);
    step<kInputs>(slope, curvature, h);
  }

 private:
  static constexpr std::int64_t kUsual = 8;  // inputs, while there are no experts with whole matrices
  static constexpr double kRate = 0.125;
  static constexpr double kHeaviest = 100.0;  // row that θ learns: of heavier ones rounding leaves no C
  static constexpr double kLargest = 1e6;     // of θ, far beyond what is learned

  struct Chances {  // of +1 and −1
    double up = 0.5, down = 0.5;

    Chances() = default;
    explicit Chances(double odds) {
      const double e = std::exp(-std::abs(odds)), large = 1.0 / (1.0 + e), small = e * large;
      up = odds >= 0 ? large : small;
      down = odds >= 0 ? small : large;
    }
  };

  double* row(std::int64_t i) const { return s_ + i * kInputs; }
  double held(double odds) const { return std::clamp(odds, -largest_, largest_); }

  // The opinion that was worse loses weight; a part of all is then dealt out, which falls so fast that it
  // costs no more than ln 2 in all.
  void charge(double y, double h, double dealt) {
    double* v = row(kShares);
    double lead, lag;  // by how much the second is better, and what the other keeps of its weight
    if (logistic_) {
      const double rule = y > 0 ? rule_.up : rule_.down, own = y > 0 ? own_.up : own_.down;
      lead = own - rule;
      lag = std::min(rule, own) / std::max(rule, own);
      if (h != 1.0) lag = std::pow(lag, h);
    } else {
      lead = (rule_p_ - own_p_) * (rule_p_ + own_p_ - 2.0 * y);
      lag = std::exp(-kRate * h * std::abs(lead));
    }
    v[lead > 0 ? 0 : 1] *= lag;
    if (!(v[0] + v[1] > 0)) v[lead > 0 ? 1 : 0] = 1.0;  // the one that was right had no weight at all
    const double kept = (1.0 - dealt) / (v[0] + v[1]);
    for (int k : {0, 1}) v[k] = kept * v[k] + 0.5 * dealt;
  }

  // Newton's step, with Böhning's bound of the curvature, ¼, along the way: it never goes farther than to
  // the least of the row's loss and ½ δᵀC⁻¹δ.
  template <std::int64_t n>
  void step(double slope, double curvature, double h) {
    std::array<double, n> u{};
    for (std::int64_t i = 0; i < n; ++i) axpy(z_[i], row(i), u.data(), n);
    const double q = dot(u.data(), z_.data(), n);
    if (!(q > 0)) return;
    const double by = slope / (1.0 + 0.25 * h * q), less = -curvature / (1.0 + curvature * q);
    double* const theta = row(kTheta);
    for (std::int64_t i = 0; i < n; ++i) {
      theta[i] = std::clamp(theta[i] + by * u[i], -kLargest, kLargest);
      axpy(less * u[i], u.data(), row(i), n);
    }
  }

  bool logistic_;
  double largest_;  // log odds
  double* s_;
  std::int64_t n_ = 0;  // inputs, padded
  std::array<double, kInputs> z_{};
  Chances rule_, own_;  // of both opinions
  double rule_p_ = 0, own_p_ = 0;
};

}  // namespace skn
