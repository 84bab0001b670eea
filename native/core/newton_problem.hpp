// What SON's learners share besides the sketch: loss, clipping, the weight of a gradient in the metric.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/losses.hpp"

namespace skn {

struct Problem {
  Loss loss;
  double clip;        // C; infinite for none
  double curvature;   // σ of Assumption 2; infinite for what the loss has at each prediction itself
  double eta, power;  // η_t = eta / t^power
  bool by_dimension;  // …·√d, with d the features seen so far
  bool project;       // weights to where |wᵀx| ≤ C; else only predictions are clipped

  static constexpr double kNear = 0.01;  // share of a score that no doubt exceeds

  double clipped(double score) const { return std::clamp(score, -clip, clip); }

  // ℓ' at a prediction that is known to ±doubt(): 0 if the loss may be least there. A projection puts a score
  // at the bound C, where the loss of a label ±C is least and may have its kink; when the row is met again,
  // rounding alone would tell on which side of it the score is. The doubt is asked for near such a place
  // only.
  template <class Doubt>
  double derivative(double p, double label, Doubt doubt) const {
    const double slope = loss.derivative(p, label);
    const double scale = std::abs(label) + (std::isfinite(clip) ? clip : 1.0);
    if (slope == 0 || !loss.least_within(p, label, kNear * scale)) return slope;
    return loss.least_within(p, label, doubt()) ? 0.0 : slope;
  }

  // ĝ = r·x with r² = (σ_t + η_t)·slope², for a loss taken h times, of slope hℓ' at the prediction p: its
  // curvature is σ/h, or ℓ''/(hℓ'²) at p itself.
  double sketched(double slope, double p, double label, double t, double h, double d) const {
    const double decay = power == 0 ? 1.0 : power == 0.5 ? std::sqrt(t) : power == 1 ? t : std::pow(t, power);
    const double eta_t = (by_dimension ? eta * std::sqrt(d) : eta) / decay;
    if (std::isfinite(curvature)) return slope * std::sqrt(curvature / h + eta_t);
    return std::sqrt(h * loss.second_derivative(p, label) + eta_t * slope * slope);
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
