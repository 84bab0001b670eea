// A logistic regression of one score: log odds slope·s + shift of a score s in [−1, 1], with the covariance P
// of slope and shift. Least squares tell classes apart well, but how sure they are of it has to be learned,
// and changes while they learn: it remembers about half of the rows so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/losses.hpp"
#include "learners/bank_loss.hpp"

namespace skn {

class ScoreOdds {
 public:
  enum { kSlope, kShift, kPss, kPsc, kPcc, kNumbers };  // of an expert, in this order

  static void start(double* its, bool intercept) {
    std::fill_n(its, std::int64_t{kNumbers}, 0.0);
    its[kSlope] = kFirstSlope;
    its[kPss] = 1.0;
    its[kPcc] = intercept ? 1.0 : 0.0;
  }

  static double of(const double* its, double s) { return its[kSlope] * s + its[kShift]; }

  // A step, along a path that does not overshoot: the label y = ±1 of a row of weight h, after `rows` others.
  static void learn(double* its, double s, double y, double h, double rows) {
    const double now = of(its, s);
    const double us = its[kPss] * s + its[kPsc], uc = its[kPsc] * s + its[kPcc];
    const double q = s * us + uc;
    if (!(q > 0)) return;
    const double way = BankLoss::travel_odds(now, y, h * q / BankLoss::kLogisticPace);
    its[kSlope] += way / q * us;
    its[kShift] += way / q * uc;
    const double p = sigmoid(now), c = h * std::max(p * (1.0 - p), kLeastCurvature);
    // P − c uuᵀ/(1 + cq) as a sum, which rounding leaves positive whatever the weight of the row.
    const double gone = 1.0 / (1.0 + c * q);
    const double rest = c * std::max(0.0, its[kPss] * its[kPcc] - its[kPsc] * its[kPsc]);
    its[kPss] = gone * (its[kPss] + rest);
    its[kPsc] = gone * (its[kPsc] - rest * s);
    its[kPcc] = gone * (its[kPcc] + rest * s * s);
    const double most = std::max({its[kPss], its[kPcc], std::numeric_limits<double>::min()});
    const double grow = std::max(1.0, std::min(1.0 + 2.0 * h / (rows + kUnsure), 1.0 / most));
    for (int entry : {kPss, kPsc, kPcc}) its[entry] *= grow;
  }

 private:
  static constexpr double kFirstSlope = 2.0, kLeastCurvature = 1e-4;
  static constexpr double kUnsure = 20;  // rows in which the first guess of how sure scores are counts
};

}  // namespace skn
