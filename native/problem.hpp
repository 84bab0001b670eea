// What SON's learners share besides the sketch: loss, clipping, the weight of a gradient in the metric.
#pragma once

#include <algorithm>
#include <cmath>

#include "losses.hpp"

namespace skn {

struct Problem {
  Loss loss;
  double clip;        // C; infinite for none
  double curvature;   // σ of Assumption 2
  double eta, power;  // η_t = eta / t^power
  bool by_dimension;  // …·√d, with d the features seen so far

  double clipped(double score) const { return std::clamp(score, -clip, clip); }

  // ‖ĝ‖/‖g‖ = √(σ_t + η_t). A loss taken h times has the curvature σ/h.
  double sketch_scale(double t, double h, double d = 1.0) const {
    const double decay = power == 0 ? 1.0 : power == 0.5 ? std::sqrt(t) : power == 1 ? t : std::pow(t, power);
    return std::sqrt(curvature / h + (by_dimension ? eta * std::sqrt(d) : eta) / decay);
  }
};

// An intercept that α does not penalise: a block of the metric of its own, one number wide, which starts from
// the curvature of one steepest gradient instead of from α.
struct Intercept {
  double* state;  // value, metric; a metric of 0 means that there is no intercept

  double value() const { return state[0]; }
  double quadratic() const { return state[1] > 0 ? 1.0 / state[1] : 0.0; }
  void move(double step) const { state[0] -= step * quadratic(); }
  void update(double r) const {
    if (state[1] > 0) state[1] += r * r;
  }
};

}  // namespace skn
