// Several experts' predictions become one: Vovk's aggregating rule, and the steps that the experts take.
//
// Everything here is in units where the labels seen so far fill [−1, 1]; logits for the logistic loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/losses.hpp"

namespace skn {

// What a bank needs to know about its loss.
//   squared    mixable with rate ½ on [−1, 1]: the rule below never loses more than −2 ln Σ v_k e^{−ℓ_k/2}
//   logistic   mixable with rate 1: the mixture of the experts' probabilities
//   quantile   not mixable: the mean of the experts, weighted with a rate that falls like 1/√t
struct Aggregate {
  Loss loss;

  static constexpr double kLargestLogit = 20;
  static constexpr double kLogisticPace = 8;  // steps in logits that match those of the squared loss
  static constexpr double kSlope = 4;         // and slopes: both losses' then lie in [−4, 4]

  static constexpr double kReached = 1e-9;  // a quantile's distance to the label that is rounding

  bool logistic() const { return loss.code == LossCode::logistic; }
  bool squared() const { return loss.code == LossCode::squared; }

  // The prediction that is played for experts p with shares v. up and down become v_k e^{−rate·ℓ_k} for the
  // labels 1 and −1, if the loss is mixable.
  double mix(const double* p, const double* v, std::int64_t n, double* up, double* down) const {
    double above = 0, below = 0, least = p[0], most = p[0];
    for (std::int64_t k = 0; k < n; ++k) {
      least = std::min(least, p[k]);
      most = std::max(most, p[k]);
      if (squared()) {  // e^{−(p∓1)²/2} = e^{−(p²+1)/2} e^{±p}
        const double e = std::exp(p[k]), common = v[k] * std::exp(-0.5 * (p[k] * p[k] + 1.0));
        up[k] = common * e;
        down[k] = common / e;
      } else if (logistic()) {  // σ(p) and σ(−p)
        const double e = std::exp(-std::abs(p[k])), large = v[k] / (1.0 + e), small = e * large;
        up[k] = p[k] >= 0 ? large : small;
        down[k] = p[k] >= 0 ? small : large;
      } else {
        up[k] = v[k] * p[k];
        down[k] = 0;
      }
      above += up[k];
      below += down[k];
    }
    const double P = squared() ? 0.5 * std::log(above / below) : logistic() ? std::log(above / below) : above;
    return std::clamp(P, least, most);
  }

  // The slope of the loss at the prediction played: a row's weight in the sketch.
  double slope(double p, double y) const {
    if (squared()) return 2.0 * (p - y);
    if (logistic()) return -kSlope * y * sigmoid(-y * p);
    return std::abs(y - p) < kReached ? 0.0 : kSlope * (y > p ? -tau() : 1.0 - tau());
  }

  // v_k ← v_k e^{−h·rate·ℓ_k}, then the share: a fraction `share` is dealt out anew. up and down are those of
  // mix().
  void charge(const double* p, double y, double h, double rate, double share, double* v, std::int64_t n,
              const double* up, const double* down) const {
    double sum = 0;
    if ((squared() || logistic()) && h == 1.0 && std::abs(y) == 1.0) {
      std::copy_n(y > 0 ? up : down, n, v);
      for (std::int64_t k = 0; k < n; ++k) sum += v[k];
    } else {
      double cost[kMost], least = INFINITY;
      for (std::int64_t k = 0; k < n; ++k) {
        cost[k] = rate * loss_of(p[k], y);
        least = std::min(least, cost[k]);
      }
      for (std::int64_t k = 0; k < n; ++k) sum += v[k] *= std::exp(-h * (cost[k] - least));
    }
    const double kept = (1.0 - share) / sum, dealt = share / static_cast<double>(n);
    for (std::int64_t k = 0; k < n; ++k) v[k] = kept * v[k] + dealt;
  }

  // The rate at which the rule learns: constant for mixable losses.
  double rate(double clock, std::int64_t n) const {
    if (squared()) return 0.5;
    if (logistic()) return 1.0;
    return 0.5 * std::sqrt(8.0 * std::log(static_cast<double>(n)) / std::max(clock, 1.0));
  }

  // How far a score p moves towards the label on a path of steepest descent that is `length` long, followed
  // exactly: dp/du = −ℓ'(p). However long, the label is never passed.
  double travel(double p, double y, double length) const {
    if (squared()) return (p - y) * std::expm1(-2.0 * length);
    if (logistic()) {
      const double margin = y * p;
      return y * (descend(margin, kLogisticPace * length) - margin);
    }
    const double distance = y - p, speed = kSlope * length * (distance > 0 ? tau() : 1.0 - tau());
    return std::copysign(std::min(std::abs(distance), speed), distance);
  }

  static constexpr std::int64_t kMost = 16;  // experts

 private:
  double tau() const { return loss.code == LossCode::quantile ? loss.parameter : 0.5; }

  double loss_of(double p, double y) const {
    if (squared() || logistic()) return loss.value(p, y);
    return y >= p ? tau() * (y - p) : (1.0 - tau()) * (p - y);
  }

  // dm/du = 1/(1 + e^m): m + e^m grows by `length`.
  static double descend(double margin, double length) {
    const double z = length + margin + std::exp(margin);
    if (!(z < 1e300)) return margin;
    double m = z > 2 ? std::log(z - std::log(z)) : z - std::exp(std::min(z, 0.0));
    for (int i = 0; i < 30; ++i) {
      const double e = std::exp(m), step = (m + e - z) / (1.0 + e);
      m -= step;
      if (std::abs(step) <= 1e-14 * (1.0 + std::abs(m))) break;
    }
    return std::max(m, margin);
  }
};

}  // namespace skn
