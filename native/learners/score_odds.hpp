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
    learn<1>(its, kNumbers, &s, y, h, rows);
  }

  // The same for several scores of the row, whose numbers are `stride` apart.
  template <int n>
  static void learn(double* its, std::int64_t stride, const double* s, double y, double h, double rows) {
    constexpr int kRoom = (n + 3) / 4 * 4;
    double now[kRoom] = {}, us[n], uc[n], q[n], length[kRoom] = {}, way[kRoom];
    for (int g = 0; g < n; ++g) {
      const double* const at = its + g * stride;
      now[g] = of(at, s[g]);
      us[g] = at[kPss] * s[g] + at[kPsc];
      uc[g] = at[kPsc] * s[g] + at[kPcc];
      q[g] = s[g] * us[g] + uc[g];
      length[g] = h * q[g] / BankLoss::kLogisticPace;
    }
    BankLoss::travel_odds(now, y, length, way, n);
    for (int g = 0; g < n; ++g) {
      if (!(q[g] > 0)) continue;
      double* const at = its + g * stride;
      at[kSlope] += way[g] / q[g] * us[g];
      at[kShift] += way[g] / q[g] * uc[g];
      shrink(at, s[g], now[g], q[g], h, rows);
    }
  }

 private:
  static constexpr double kFirstSlope = 2.0, kLeastCurvature = 1e-4;
  static constexpr double kUnsure = 20;  // rows in which the first guess of how sure scores are counts

  // The covariance after a row of log odds `now`.
  static void shrink(double* its, double s, double now, double q, double h, double rows) {
    const double p = sigmoid(now), c = h * std::max(p * (1.0 - p), kLeastCurvature);
    // P − c uuᵀ/(1 + cq) as a sum, which rounding leaves positive whatever the weight of the row.
    const double gone = 1.0 / (1.0 + c * q);
    const double rest = c * std::max(0.0, its[kPss] * its[kPcc] - its[kPsc] * its[kPsc]);
    its[kPss] = gone * (its[kPss] + rest);
    its[kPsc] = gone * (its[kPsc] - rest * s);
    its[kPcc] = gone * (its[kPcc] + rest * s * s);
    // Variances do not pass 1; where rounding alone made them, this is a little less than 1.
    const double most = std::max({its[kPss], its[kPcc], std::numeric_limits<double>::min()});
    const double grow = std::min(1.0 + 2.0 * h / (rows + kUnsure), 1.0 / most);
    for (int entry : {kPss, kPsc, kPcc}) its[entry] *= grow;
  }
};

}  // namespace skn
