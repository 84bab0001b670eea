// What a bank's experts with whole matrices (bank_full.hpp) regress on where least squares of the labels is
// not what the loss asks for.
//
// The working response of a generalised linear model (Nelder and Wedderburn 1972): with the loss's slope ℓ'
// and curvature ℓ'' at the prediction p, least squares of z = p − ℓ'/ℓ'' with the weight ℓ'' takes Newton's
// step. Any prediction will do that is not too far off, so it is what the bank plays.
//
//   counts      z = p + (y − e^p)/e^p, weight e^p/(φ + ȳ/64): φ tells how much counts vary, ȳ is their mean,
//               beside which a φ of rows that happen to be alike does not count
//   quantile τ  z = p + (τ − [y < p])/f, f the density of the residuals y − p at 0: the curvature of the
//               expected loss. [y < p] rises from 0 to 1 within a window ±b, which closes as n^−⅕, and f is
//               measured in the same (smoothed quantile regression: Fernandes, Guerre and Horta 2021)
//   absolute    τ = ½
//   others      the label, weight 1
//
// While there are few rows for each weight, predictions are far off, and what follows from them would be
// remembered: for quantiles z is the label then, plus (2τ − 1) times the mean |y − p|.
#pragma once

#include <algorithm>
#include <cmath>

#include "learners/bank_loss.hpp"

namespace skn {

struct WorkingResponse {
  double target, weight;

  // `miss` as in BankLoss.
  static WorkingResponse of_count(double p, double y, double miss, double usual) {
    const double mean = std::max(std::exp(p), kLeast);
    return {p + std::min((y - mean) / mean, kMost), mean / (miss + kAlike * std::max(usual, kLeast))};
  }

  // After `rows` rows, for weights at so many `places`; `near` is Σ h[|r| ≤ b], `windows` Σ 2hb.
  static WorkingResponse of(const BankLoss& loss, double p, double y, double h, double miss, double rows,
                            double places, double& near, double& windows) {
    const double tau = loss.tau(), r = y - p;
    const double b = miss * std::max(1.0, kWindow * tau * (1.0 - tau)) / std::pow(std::max(rows, 1.0), 0.2);
    near += std::abs(r) <= b ? h : 0.0;
    windows += 2.0 * b * h;
    if (rows < kFew * places) return {y + (2.0 * tau - 1.0) * miss, 1.0};
    const double density = std::max(tau * (1.0 - tau) / miss, near / windows);
    return {p + (tau - std::clamp(0.5 - 0.5 * r / b, 0.0, 1.0)) / density, 1.0};
  }

 private:
  static constexpr double kFew = 8;      // rows for each weight
  static constexpr double kWindow = 12;  // mean sizes of residuals, times τ(1 − τ)
  static constexpr double kAlike = 1.0 / 64;
  static constexpr double kLeast = 1e-100, kMost = 1e100;  // counts, and residuals in units of them
};

}  // namespace skn
