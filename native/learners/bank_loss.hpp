// What a bank (bank.hpp) has to know about its loss: how far a step goes, and what a row weighs in the
// sketch.
//
// A step follows the path of steepest descent dp/du = −pace·ℓ'(p) exactly, however long it is, so it never
// passes the label. Paces and slopes are such that the experts' steps suit all losses, whatever the unit of
// the labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/elementary.hpp"
#include "core/losses.hpp"
#include "core/small_matrix.hpp"
#include "learners/odds_path.hpp"

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
  double tau() const { return loss.code == LossCode::quantile ? loss.parameter : 0.5; }

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
        return -kSlope * y * Sigmoids(y * p).down;
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
        return (p - y) * expm1_one(-2.0 * length);
      case kLogistic:
        return travel_odds(Sigmoids(y * p), y, length);
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

  // The same for four scores.
  void travel(const Four& p, double y, const Four& length, double miss, Four& way) const {
    if (logistic()) return travel_odds(p, y, length, way);
    if (!squared()) {
      for (int k = 0; k < 4; ++k) way[k] = travel(p[k], y, length[k], miss);
      return;
    }
    Four rest = -2.0 * length;
    rest = rest < -700.0 ? Four{} - 700.0 : rest;
    expm1_four(rest);
    way = (p - y) * rest;
  }

  // The same for log odds: `margin` has the probabilities of being right and wrong.
  static double travel_odds(const Sigmoids& margin, double y, double length) {
    const Four w = Four{} + margin.down, r = Four{} + margin.up;  // several are as fast as one
    Four way;
    OddsPath<Wide<double>>::go(Four{} + std::min(kLogisticPace * length, kLongest), w, r, way);
    return y * way[0];
  }

  // The same for four, of which the probabilities of being right and wrong are known, as exactly as T is.
  template <class T>
  static void travel_odds(const Four& right, const Four& wrong, double y, const Four& length, Four& way) {
    using Path = OddsPath<Wide<T>>;
    constexpr double kMost = std::min(kLongest, Path::kLongest);
    Four path = kLogisticPace * length;
    path = path > kMost ? Four{} + kMost : path;
    if constexpr (sizeof(T) == sizeof(double)) {
      Path::go(path, wrong, right, way);
    } else {
      using Both [[gnu::vector_size(64)]] = double;
      using Vector = typename Wide<T>::Vector;
      const auto twice = [](const Four& x, Vector& to) __attribute__((always_inline)) {
        const Both both = __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3);
        to = __builtin_convertvector(both, Vector);
      };
      Vector its_path, w, r, its_way;
      twice(path, its_path);
      twice(wrong, w);
      twice(right, r);
      Path::go(its_path, w, r, its_way);
      const Both both = __builtin_convertvector(its_way, Both);
      way = __builtin_shufflevector(both, both, 0, 1, 2, 3);
    }
    way *= y;
  }

  static void travel_odds(const double* score, double y, const double* length, double* way, std::int64_t n) {
    for (std::int64_t k = 0; k < n; k += 4) {
      Four scores, lengths;
      assemble(score + k, scores);
      assemble(length + k, lengths);
      travel_odds(scores, y, lengths, four(way + k));
    }
  }

  static void travel_odds(const Four& score, double y, const Four& length, Four& way) {
    const Four margin = y * score;
    Four e = margin > 0.0 ? -margin : margin;
    e = e < -kFarthest ? Four{} - kFarthest : e;
    exp_four(e);
    const Four large = 1.0 / (1.0 + e), small = e * large;
    Four path = kLogisticPace * length;
    path = path > kLongest ? Four{} + kLongest : path;
    OddsPath<Wide<double>>::go(path, margin > 0.0 ? small : large, margin > 0.0 ? large : small, way);
    way *= y;
  }

 private:
  // Margins and paths of log odds beyond these are as good as these; the end of the way is a power of e.
  static constexpr double kFarthest = 350, kLongest = 1e140;
  static constexpr double kSlope = 4;        // slopes: of all losses but counts they lie in [−4, 4]
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
};

}  // namespace skn
