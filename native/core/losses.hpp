// The losses of src/sketchnewton/losses.py for the kernels: the same formulas in the same order of
// operations.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace skn {

// The numbers are `Loss.code` in Python and are stored in no file: model files hold the name.
enum class LossCode : int {
  squared = 0,
  logistic = 1,
  hinge = 2,
  squared_hinge = 3,
  absolute = 4,
  quantile = 5,  // parameter: tau
  huber = 6,     // parameter: delta
  poisson = 7,
};

inline constexpr int loss_count = 8;

// 1 / (1 + exp(-z)) without overflow: the probability of +1 under the logistic loss.
inline double sigmoid(double z) {
  const double e = std::exp(-std::abs(z));
  return (z >= 0.0 ? 1.0 : e) / (1.0 + e);
}

// Poisson's exponential goes on as its tangent from here, so that a wild prediction has a finite derivative.
inline constexpr double poisson_straight_from = 300.0;

struct Loss {
  LossCode code = LossCode::squared;
  double parameter = 0.0;

  double value(double p, double y) const {
    switch (code) {
      case LossCode::squared:
        return (p - y) * (p - y);
      case LossCode::logistic:
        return std::log1p(std::exp(-std::abs(y * p))) + std::max(-(y * p), 0.0);
      case LossCode::hinge:
        return std::max(1.0 - y * p, 0.0);
      case LossCode::squared_hinge: {
        const double gap = std::max(1.0 - y * p, 0.0);
        return gap * gap;
      }
      case LossCode::absolute:
        return std::abs(p - y);
      case LossCode::quantile:
        return y >= p ? parameter * (y - p) : (1.0 - parameter) * (p - y);
      case LossCode::huber: {
        const double r = std::abs(p - y);
        const double near = std::min(r, parameter);
        return near * (r - 0.5 * near);
      }
      case LossCode::poisson:
        return exp_capped(p) * (1.0 + std::max(p - poisson_straight_from, 0.0)) - y * p;
    }
    return std::nan("");
  }

  // With respect to p; 0 at a kink, which is a subgradient there.
  double derivative(double p, double y) const {
    switch (code) {
      case LossCode::squared:
        return 2.0 * (p - y);
      case LossCode::logistic:
        return -y * sigmoid(-y * p);
      case LossCode::hinge:
        return y * p < 1.0 ? -y : 0.0;
      case LossCode::squared_hinge:
        return -2.0 * y * std::max(1.0 - y * p, 0.0);
      case LossCode::absolute:
        return p > y ? 1.0 : p < y ? -1.0 : 0.0;
      case LossCode::quantile:
        return y > p ? -parameter : y < p ? 1.0 - parameter : 0.0;
      case LossCode::huber:
        return std::min(std::max(p - y, -parameter), parameter);
      case LossCode::poisson:
        return exp_capped(p) - y;
    }
    return std::nan("");
  }

  // With respect to p; 0 at a kink.
  double second_derivative(double p, double y) const {
    switch (code) {
      case LossCode::squared:
        return 2.0;
      case LossCode::logistic:
        return sigmoid(p) * sigmoid(-p);
      case LossCode::squared_hinge:
        return y * p < 1.0 ? 2.0 : 0.0;
      case LossCode::huber:
        return std::abs(p - y) < parameter ? 1.0 : 0.0;
      default:  // kinks, or no bound on it: Python does not ask
        return 0.0;
    }
  }

 private:
  static double exp_capped(double p) { return std::exp(std::min(p, poisson_straight_from)); }
};

// The only way in from numbers that a caller chose.
inline Loss make_loss(int code, double parameter) {
  if (code < 0 || code >= loss_count)
    throw std::invalid_argument("loss code " + std::to_string(code) + " is unknown");
  return Loss{static_cast<LossCode>(code), parameter};
}

}  // namespace skn
