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

#include "core/elementary.hpp"
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

  // A row for which the rule would play P: p are the predictions of `steps` experts, `whole` those of as many
  // others as there are. It waits: no expert needs what is played, so that it can be found while the next row
  // has to wait for its own numbers.
  void wait(double P, const double* p, std::int64_t steps, const double* whole, std::int64_t more) {
    rule_p_ = P;
    if (logistic_) rule_ = Sigmoids(P);
    z_[0] = logistic_ ? P : held(log_one((1.0 + P) / (1.0 - P)));
    double* end = z_.data() + 1;
    for (std::int64_t k = 0; k < steps + more; ++k) {
      double its = k < steps ? p[k] : whole[k - steps];
      apart(its);
      *end++ = its;
    }
    n_ = end - z_.data() <= kUsual ? kUsual : kInputs;
    std::fill(end, z_.data() + n_, 0.0);
    y_ = 0;
  }
  // Its label y = ±1, of weight h, with which there have been `clock` rows.
  void teach(double y, double h, double clock) {
    y_ = y;
    h_ = h;
    clock_ = clock;
  }

  // What is played for it; if it has a label, that is learned.
  double play() { return n_ == kUsual ? play<kUsual>() : play<kInputs>(); }

 private:
  static constexpr std::int64_t kUsual = 8;  // inputs, while there are no experts with whole matrices
  static constexpr double kRate = 0.125;
  static constexpr double kHeaviest = 100.0;  // row that θ learns: of heavier ones rounding leaves no C
  static constexpr double kLargest = 1e6;     // of θ, far beyond what is learned

  double* row(std::int64_t i) const { return s_ + i * kInputs; }
  double held(double odds) const { return std::clamp(odds, -largest_, largest_); }

  template <std::int64_t n>
  double play() {
    Four sum{};
    for (std::int64_t j = 0; j < n; j += 4) sum += four(z_.data() + j) * four(row(kTheta) + j);
    const double odds = held(total(sum)), *v = row(kShares);
    own_ = Sigmoids(odds);
    own_p_ = own_.up - own_.down;
    double played = v[0] * rule_p_ + v[1] * own_p_;
    if (logistic_) {
      const double both =
          log_one((v[0] * rule_.up + v[1] * own_.up) / (v[0] * rule_.down + v[1] * own_.down));
      played = std::clamp(both, std::min(rule_p_, odds), std::max(rule_p_, odds));
    }
    if (y_ != 0) learn<n>();
    return played;
  }

  template <std::int64_t n>
  void learn() {
    charge(y_, h_, 1.0 / ((clock_ + 1.0) * (clock_ + 1.0)));
    const double h = std::min(h_, kHeaviest);
    step<n>(h * if_above(y_, 0.0, own_.down, -own_.up), h * own_.up * own_.down, h);
  }

  // The opinion that was worse loses weight; a part of all is then dealt out, which falls so fast that it
  // costs no more than ln 2 in all.
  void charge(double y, double h, double dealt) {
    double* v = row(kShares);
    double lead, lag;  // by how much the second is better, and what the other keeps of its weight
    if (logistic_) {
      const double first = if_above(y, 0.0, rule_.up, rule_.down),
                   second = if_above(y, 0.0, own_.up, own_.down);
      lead = second - first;
      lag = std::min(first, second) / std::max(first, second);
      if (h != 1.0) lag = std::pow(lag, h);
    } else {
      lead = (rule_p_ - own_p_) * (rule_p_ + own_p_ - 2.0 * y);
      lag = exp_one(-kRate * h * std::abs(lead));
    }
    double rule = v[0] * if_above(lead, 0.0, lag, 1.0), own = v[1] * if_above(lead, 0.0, 1.0, lag);
    if (!(rule + own > 0)) {  // the one that was right had no weight at all
      rule = lead > 0 ? 0.0 : 1.0;
      own = 1.0 - rule;
    }
    const double kept = (1.0 - dealt) / (rule + own);
    v[0] = kept * rule + 0.5 * dealt;
    v[1] = kept * own + 0.5 * dealt;
  }

  // Newton's step, with Böhning's bound of the curvature, ¼, along the way: it never goes farther than to
  // the least of the row's loss and ½ δᵀC⁻¹δ.
  template <std::int64_t n>
  void step(double slope, double curvature, double h) {
    Four u[n / 4] = {}, sum{};
    for (std::int64_t i = 0; i < n; ++i)
      for (int j = 0; j < n / 4; ++j) u[j] += z_[i] * four(row(i) + 4 * j);
    for (int j = 0; j < n / 4; ++j) sum += u[j] * four(z_.data() + 4 * j);
    const double q = total(sum);
    if (!(q > 0)) return;
    const double by = slope / (1.0 + 0.25 * h * q), less = -curvature / (1.0 + curvature * q);
    for (int j = 0; j < n / 4; ++j) {
      Four& theta = four(row(kTheta) + 4 * j);
      const Four moved = theta + by * u[j], held = moved > kLargest ? Four{} + kLargest : moved;
      theta = held < -kLargest ? Four{} - kLargest : held;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const double times = less * u[i / 4][i % 4];
      for (int j = 0; j < n / 4; ++j) four(row(i) + 4 * j) += times * u[j];
    }
  }

  bool logistic_;
  double largest_;  // log odds
  double* s_;
  // The row that waits: its inputs, padded, their number, what the rule would play, and its label, or 0.
  std::array<double, kInputs> z_{};
  std::int64_t n_ = kUsual;
  double rule_p_ = 0, y_ = 0, h_ = 0, clock_ = 0;
  Sigmoids rule_, own_;  // both opinions
  double own_p_ = 0;
};

}  // namespace skn
