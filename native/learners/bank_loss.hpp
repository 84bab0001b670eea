// What a bank (bank.hpp) has to know about its loss: how far a step goes, and what a row weighs in the
// sketch.
//
// A step follows the path of steepest descent dp/du = −pace·ℓ'(p) exactly, however long it is, so it never
// passes the label. Paces and slopes are such that the experts' steps suit all losses, whatever the unit of
// the labels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/losses.hpp"

namespace skn {

struct BankLoss {
  // Predictions within the range of the labels: on [−1, 1] the hinge losses of ±1 labels are the straight and
  // the squared distance to the label. Those of a kind differ in nothing else.
  enum Kind { kSquared, kLogistic, kStraight, kHuber, kPoisson };

  static constexpr double kLargestLogit = 20;
  static constexpr double kLogisticPace = 8;  // steps in logits that match those of the squared loss

  explicit BankLoss(const Loss& of) : loss(of), kind(kind_of(of.code)) {}

  Loss loss;
  Kind kind;

  bool squared() const { return kind == kSquared; }
  bool logistic() const { return kind == kLogistic; }
  bool poisson() const { return kind == kPoisson; }
  bool mixable() const { return squared() || logistic(); }

  // What predictions have missed the labels by so far: the first number over the second is `miss` below, the
  // mean distance, and for counts the variance as a multiple of the Poisson distribution's.
  double missed(double p, double y) const {
    const double by = poisson() ? std::exp(p) - y : p - y;
    return poisson() ? by * by : std::abs(by);
  }
  double expected(double p) const { return poisson() ? std::exp(p) : 1.0; }

  // The weight of a row in the sketch, with a sign: the slope of the loss at the prediction played, or for
  // counts the root of the curvature there. 0: nothing to learn.
  double slope(double p, double y, double miss) const {
    switch (kind) {
      case kSquared:
        return 2.0 * (p - y);
      case kLogistic:
        return -kSlope * y * sigmoid(-y * p);
      case kStraight:
        return kSlope * (y > p ? -tau() : 1.0 - tau());
      case kHuber: {
        const double delta = loss.parameter, by = std::clamp(p - y, -delta, delta);
        return std::clamp(2.0 * by / std::min(delta, miss), -kSlope, kSlope);
      }
      case kPoisson:
        return std::copysign(kSlope * std::sqrt(std::min(std::exp(p) / miss, kSteepest)), p - y);
    }
    return 0.0;
  }

  // How far a score p moves towards the label on a path that is `length` long.
  double travel(double p, double y, double length, double miss) const {
    switch (kind) {
      case kSquared:
        return (p - y) * std::expm1(-2.0 * length);
      case kLogistic:
        return travel_odds(p, y, length);
      case kStraight: {
        const double distance = y - p;
        const double way = miss * kSlope * length * (distance > 0 ? tau() : 1.0 - tau());
        return std::copysign(std::min(std::abs(distance), way), distance);
      }
      case kHuber: {  // straight on up to delta, then as for the squared loss
        const double delta = loss.parameter, distance = std::abs(y - p);
        const double far = std::max(0.0, distance - delta), way = 2.0 * std::max(delta, miss) * length;
        const double gone =
            way <= far ? way : far + std::min(distance, delta) * -std::expm1(-(way - far) / delta);
        return std::copysign(gone, y - p);
      }
      case kPoisson: {  // μ = e^p follows dμ/du = μ(y − μ): y/(1 + (y/μ − 1)e^{−yu})
        const double u = kCountPace * length / miss, gone = y > 0 ? -std::expm1(-y * u) / y : u;
        return -std::log1p((std::exp(p) - y) * gone);
      }
    }
    return 0.0;
  }

  // The same for log odds.
  static double travel_odds(double score, double y, double length) {
    double way;
    travel_odds<1>(&score, y, &length, &way);
    return way;
  }

  // Several of them, step by step together: each step waits for an exponential, and need not wait for those
  // of others.
  template <int Most>
  static void travel_odds(const double* score, double y, const double* length, double* way, int n = Most) {
    std::array<Path, Most> path;
    for (int k = 0; k < n; ++k) path[k] = Path(y * score[k], kLogisticPace * length[k]);
    bool there = false;
    for (int i = 0; i < kSteps && !there; ++i) {
      there = true;
      for (int k = 0; k < n; ++k) {
        if (path[k].there) continue;
        path[k].step();
        there &= path[k].there;
      }
    }
    for (int k = 0; k < n; ++k) way[k] = y * (path[k].end() - path[k].from);
  }

 private:
  static constexpr int kSteps = 30;          // of Newton's method, at most
  static constexpr double kSlope = 4;        // and slopes: of all losses but counts they lie in [−4, 4]
  static constexpr double kSteepest = 1e12;  // what float32 and small matrices in float64 can tell apart
  static constexpr double kCountPace =
      4;  // with kSlope the steady expert of step ½ takes the steps of Newton

  static Kind kind_of(LossCode code) {
    switch (code) {
      case LossCode::squared:
      case LossCode::squared_hinge:
        return kSquared;
      case LossCode::logistic:
        return kLogistic;
      case LossCode::hinge:
      case LossCode::absolute:
      case LossCode::quantile:
        return kStraight;
      case LossCode::huber:
        return kHuber;
      case LossCode::poisson:
        return kPoisson;
    }
    return kSquared;
  }

  double tau() const { return loss.code == LossCode::quantile ? loss.parameter : 0.5; }

  // dm/du = 1/(1 + e^m): m + e^m grows by `length`. By Newton's method.
  struct Path {
    double from = 0, z = 0, m = 0;
    bool there = true;

    Path() = default;
    Path(double margin, double length) : from(margin), m(margin) {
      const double start = std::exp(margin);
      z = length + margin + start;
      if (!(z < 1e300)) return;
      there = false;
      m = length < 1 ? margin + length / (1.0 + start)  // a short path is all but straight
          : z > 2    ? std::log(z - std::log(z))
                     : z - std::exp(std::min(z, 0.0));
    }
    void step() {
      const double e = std::exp(m), step = (m + e - z) / (1.0 + e);
      m -= step;
      there = std::abs(step) <= 1e-14 * (1.0 + std::abs(m));
    }
    double end() const { return std::max(m, from); }
  };
};

}  // namespace skn
