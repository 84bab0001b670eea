// What the experts of a bank (bank.hpp) say together, if labels are classes: stacking (Wolpert 1992).
//
// The rule that weighs experts soon trusts one of them alone, though several that err on different rows are
// better together, and it takes predictions for as sure as they say. So there is a second opinion: log odds
// θᵀz, where z has the log odds of what the rule would play and the experts' predictions, by Bayesian
// logistic regression, θ ~ N((1, 0, …), I) at first, with the covariance C of what is known of θ. The rule
// then weighs the two of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/losses.hpp"
#include "core/small_matrix.hpp"
#include "learners/aggregate.hpp"
#include "learners/bank_loss.hpp"

namespace skn {

class BankStack {
 public:
  static constexpr std::int64_t kInputs = 12;  // at most, a multiple of four
  enum { kTheta = kInputs, kShares, kRows };   // of the state, kRows × kInputs: after C

  // Predictions of the logistic loss are within ±clip.
  BankStack(const BankLoss& loss, double clip, double* state)
      : aggregate_{loss},
        largest_(loss.logistic() ? std::min(clip, BankLoss::kLargestLogit) : BankLoss::kLargestLogit),
        s_(state) {}

  // The inputs: `first` experts, and `more` others.
  void look(double played, const double* p, std::int64_t first, const double* others, std::int64_t more) {
    n_ = padded4(1 + first + more);
    z_[0] = aggregate_.of.logistic() ? played : log_odds(played);
    std::copy_n(p, first, &z_[1]);
    std::copy_n(others, more, &z_[1 + first]);
    std::fill(z_.begin() + 1 + first + more, z_.begin() + n_, 0.0);
    odds_ = held(dot(row(kTheta), z_.data(), n_));
    p_ = {played, aggregate_.of.logistic() ? odds_ : std::tanh(0.5 * odds_)};
  }

  // What is played in place of what the rule would play.
  double play() { return aggregate_.mix_two(p_.data(), row(kShares), up_.data(), down_.data()); }

  // The label y = ±1 of the row that was looked at, of weight h, with which there have been `clock` rows.
  // The part of the shares that is dealt out falls so fast that all of them together cost no more than ln 2.
  void learn(double y, double h, double clock) {
    const double share = 1.0 / ((clock + 1.0) * (clock + 1.0));
    double rate = 0, gaps = 0;  // of losses that are not mixable
    aggregate_.charge(p_.data(), y, h, share, row(kShares), 2, up_.data(), down_.data(), {rate, gaps});
    h = std::min(h, kHeaviest);
    std::array<double, kInputs> u;
    for (std::int64_t i = 0; i < n_; ++i) u[i] = dot(row(i), z_.data(), n_);
    const double q = dot(u.data(), z_.data(), n_);
    if (!(q > 0)) return;
    const double way = BankLoss::travel_odds(odds_, y, h * q / BankLoss::kLogisticPace);
    const double c = h * std::max(sigmoid(odds_) * sigmoid(-odds_), kLeastCurvature);
    double* const theta = row(kTheta);
    for (std::int64_t i = 0; i < n_; ++i) {
      theta[i] = std::clamp(theta[i] + way / q * u[i], -kLargest, kLargest);
      axpy(-c / (1.0 + c * q) * u[i], u.data(), row(i), n_);
    }
  }

 private:
  static constexpr double kHeaviest = 100.0;  // row that teaches
  static constexpr double kLeastCurvature = 1e-4;
  static constexpr double kLargest = 1e6;  // of θ, far beyond what is learned

  double* row(std::int64_t i) const { return s_ + i * kInputs; }
  double held(double odds) const { return std::clamp(odds, -largest_, largest_); }
  double log_odds(double p) const { return held(std::log((1.0 + p) / (1.0 - p))); }

  Aggregate aggregate_;
  double largest_;  // log odds
  double* s_;
  std::int64_t n_ = 0;  // inputs, padded
  std::array<double, kInputs> z_{};
  double odds_ = 0;
  std::array<double, 2> p_{}, up_{}, down_{};
};

}  // namespace skn
