// The losses of src/sketchnewton/losses/ for the kernels: the same formulas in the same order of operations.
//
// A loss is a struct of functions of the prediction p, the label y and the loss's parameter, and a line in
// SKN_LOSSES, from which Python, too, has the names.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>

namespace skn {

// 1 / (1 + exp(-z)) without overflow: the probability of +1 under the logistic loss.
inline double sigmoid(double z) {
  const double e = std::exp(-std::abs(z));
  return (z >= 0.0 ? 1.0 : e) / (1.0 + e);
}

// What a loss has unless it says otherwise.
struct LossFacts {
  static constexpr const char* parameter = "";  // its name

  // Kinks, or no bound on it: Python does not ask.
  static double second_derivative(double, double, double) { return 0.0; }

  // Is the loss least within `reach` of p? Never, if it falls for ever.
  static bool least_within(double, double, double, double) { return false; }
};

// A loss of the residual p − y, least where that is 0.
struct ResidualFacts : LossFacts {
  static bool least_within(double p, double y, double, double reach) { return std::abs(p - y) <= reach; }
};

// A loss of the margin yp, least from 1 on.
struct MarginFacts : LossFacts {
  static bool least_within(double p, double y, double, double reach) { return y * p >= 1.0 - reach; }
};

struct SquaredLoss : ResidualFacts {
  static double value(double p, double y, double) { return (p - y) * (p - y); }
  static double derivative(double p, double y, double) { return 2.0 * (p - y); }
  static double second_derivative(double, double, double) { return 2.0; }
};

struct LogisticLoss : LossFacts {
  static double value(double p, double y, double) {
    return std::log1p(std::exp(-std::abs(y * p))) + std::max(-(y * p), 0.0);
  }
  static double derivative(double p, double y, double) { return -y * sigmoid(-y * p); }
  static double second_derivative(double p, double, double) { return sigmoid(p) * sigmoid(-p); }
};

struct HingeLoss : MarginFacts {
  static double value(double p, double y, double) { return std::max(1.0 - y * p, 0.0); }
  static double derivative(double p, double y, double) { return y * p < 1.0 ? -y : 0.0; }
};

struct SquaredHingeLoss : MarginFacts {
  static double value(double p, double y, double) {
    const double gap = std::max(1.0 - y * p, 0.0);
    return gap * gap;
  }
  static double derivative(double p, double y, double) { return -2.0 * y * std::max(1.0 - y * p, 0.0); }
  static double second_derivative(double p, double y, double) { return y * p < 1.0 ? 2.0 : 0.0; }
};

struct AbsoluteLoss : ResidualFacts {
  static double value(double p, double y, double) { return std::abs(p - y); }
  static double derivative(double p, double y, double) { return p > y ? 1.0 : p < y ? -1.0 : 0.0; }
};

struct QuantileLoss : ResidualFacts {
  static constexpr const char* parameter = "tau";

  static double value(double p, double y, double tau) {
    return y >= p ? tau * (y - p) : (1.0 - tau) * (p - y);
  }
  static double derivative(double p, double y, double tau) { return y > p ? -tau : y < p ? 1.0 - tau : 0.0; }
};

struct HuberLoss : ResidualFacts {
  static constexpr const char* parameter = "delta";

  static double value(double p, double y, double delta) {
    const double r = std::abs(p - y);
    const double near = std::min(r, delta);
    return near * (r - 0.5 * near);
  }
  static double derivative(double p, double y, double delta) {
    return std::min(std::max(p - y, -delta), delta);
  }
  static double second_derivative(double p, double y, double delta) {
    return std::abs(p - y) < delta ? 1.0 : 0.0;
  }
};

struct PoissonLoss : LossFacts {
  // From here on the exponential continues as its tangent, so that a wild prediction has a finite derivative.
  static constexpr double straight_from = 300.0;

  static double value(double p, double y, double) {
    return exp_capped(p) * (1.0 + std::max(p - straight_from, 0.0)) - y * p;
  }
  static double derivative(double p, double y, double) { return exp_capped(p) - y; }
  static bool least_within(double p, double y, double, double reach) {
    return std::abs(exp_capped(p) - y) <= reach * exp_capped(p);
  }

 private:
  static double exp_capped(double p) { return std::exp(std::min(p, straight_from)); }
};

// Name and struct of every loss, in the order in which messages list them.
#define SKN_LOSSES(X)                \
  X(squared, SquaredLoss)            \
  X(logistic, LogisticLoss)          \
  X(hinge, HingeLoss)                \
  X(squared_hinge, SquaredHingeLoss) \
  X(absolute, AbsoluteLoss)          \
  X(quantile, QuantileLoss)          \
  X(huber, HuberLoss)                \
  X(poisson, PoissonLoss)

// The place of a loss in the table. Stored in no file: model files hold the name.
enum class LossCode : int {
#define SKN_CODE(name, type) name,
  SKN_LOSSES(SKN_CODE)
#undef SKN_CODE
};

struct LossName {
  const char *name, *parameter;  // an empty one for a loss that has none
};

inline constexpr LossName loss_names[] = {
#define SKN_NAME(name, type) {#name, type::parameter},
    SKN_LOSSES(SKN_NAME)
#undef SKN_NAME
};

inline constexpr int loss_count = static_cast<int>(std::size(loss_names));

struct Loss {
  LossCode code = LossCode::squared;
  double parameter = 0.0;

// A switch over all losses, each of which the compiler sees through.
#define SKN_CASE(name, type) \
  case LossCode::name:       \
    return SKN_CALL(type);
  double value(double p, double y) const {
#define SKN_CALL(type) type::value(p, y, parameter)
    switch (code) { SKN_LOSSES(SKN_CASE) }
#undef SKN_CALL
    return std::nan("");
  }

  // With respect to p; 0 at a kink, which is a subgradient there.
  double derivative(double p, double y) const {
#define SKN_CALL(type) type::derivative(p, y, parameter)
    switch (code) { SKN_LOSSES(SKN_CASE) }
#undef SKN_CALL
    return std::nan("");
  }

  // With respect to p; 0 at a kink.
  double second_derivative(double p, double y) const {
#define SKN_CALL(type) type::second_derivative(p, y, parameter)
    switch (code) { SKN_LOSSES(SKN_CASE) }
#undef SKN_CALL
    return std::nan("");
  }

  // Is it least at a prediction no further from p than `reach`?
  bool least_within(double p, double y, double reach) const {
#define SKN_CALL(type) type::least_within(p, y, parameter, reach)
    switch (code) { SKN_LOSSES(SKN_CASE) }
#undef SKN_CALL
    return false;
  }
#undef SKN_CASE
};

// The only way in from numbers that a caller chose.
inline Loss make_loss(int code, double parameter) {
  if (code < 0 || code >= loss_count)
    throw std::invalid_argument("loss code " + std::to_string(code) + " is unknown");
  return Loss{static_cast<LossCode>(code), parameter};
}

}  // namespace skn
