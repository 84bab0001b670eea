// What AdaGrad's learners share: the two forms of ADA section 2, the penalty φ, and φ = l1 in a metric that
// is not diagonal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/small_matrix.hpp"

namespace skn {

struct Composite {
  double eta, sigma;  // step size η; ridge σ of the metric H = σI + G^½
  double l1, l2;      // φ(β) = l1·‖β‖₁ + ½·l2·‖β‖²
  bool averaging;     // dual averaging (primal-dual) instead of composite mirror descent
  bool of_data;       // the metric is made of rows instead of gradients

  // How often the penalty counts in round t: mirror descent pays it round by round, averaging all at once.
  double times(std::int64_t t) const { return averaging ? eta * static_cast<double>(t) : eta; }
};

inline double soft(double v, double threshold) {
  return v > threshold ? v - threshold : v < -threshold ? v + threshold : 0.0;
}

// slopes = weight·(softmax(scores) − unit vector of the label), the gradient of the cross-entropy.
inline void cross_entropy(const double* scores, std::int64_t classes, std::int64_t label, double weight,
                          double* slopes) {
  const double largest = *std::max_element(scores, scores + classes);
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) sum += slopes[k] = std::exp(scores[k] - largest);
  for (std::int64_t k = 0; k < classes; ++k)
    slopes[k] = weight * (slopes[k] / sum - (k == label ? 1.0 : 0.0));
}

// argmin_β ½(β − center)ᵀ(hI + RᵀR)(β − center) − ⟨pull, β⟩ + l1‖β‖₁ + ½l2‖β‖²   for R of k × d.
//
// With p = R(β − center) known, β is a soft threshold feature by feature; p minimises a 1-strongly convex,
// piecewise quadratic function of k variables. Newton's method on its pieces, with a line search, ends after
// a few steps: ‖p − R(β(p) − center)‖ ≤ kTolerance·(1 + ‖R center‖ + ‖p‖). Cost O(dk²) per step.
class ProximalNewton {
 public:
  static constexpr double kTolerance = 1e-11;

  // R is stored feature by feature: row i of `columns` (ld numbers) is column i of R.
  void solve(const double* columns, std::int64_t k, std::int64_t d, const double* center, const double* pull,
             double h, double l1, double l2, double* beta) {
    k_ = k, d_ = d, ld_ = padded4(k);
    columns_ = columns, beta_ = beta, h_ = h, l1_ = l1, l2_ = l2;
    origin_.assign(ld_, 0.0);  // R center
    target_.resize(d);         // h·center + pull
    for (std::int64_t i = 0; i < d; ++i) {
      target_[i] = h * center[i] + pull[i];
      axpy(center[i], column(i), origin_.data(), ld_);
    }
    p_.assign(ld_, 0.0);
    double value = evaluate(p_);
    for (int step = 0; step < 100; ++step) {
      const double norm = std::sqrt(dot(gradient_.data(), gradient_.data(), ld_));
      const double scale = 1.0 + std::sqrt(dot(origin_.data(), origin_.data(), ld_)) +
                           std::sqrt(dot(p_.data(), p_.data(), ld_));
      if (!(norm > kTolerance * scale)) return;
      newton_direction();
      const double slope = dot(gradient_.data(), direction_.data(), ld_);
      trial_ = p_;
      double length = 1.0, next = value;
      bool better = false;
      for (int halving = 0; halving < 40 && !better; ++halving, length *= 0.5) {
        for (std::int64_t j = 0; j < ld_; ++j) trial_[j] = p_[j] + length * direction_[j];
        next = evaluate(trial_);
        // Near the end differences of values are rounding; the gradient is not.
        better = next <= value + 1e-4 * length * slope ||
                 std::sqrt(dot(gradient_.data(), gradient_.data(), ld_)) <= 0.5 * norm;
      }
      if (!better) {  // as good as rounding allows
        evaluate(p_);
        return;
      }
      p_ = trial_;
      value = next;
    }
  }

 private:
  const double* column(std::int64_t i) const { return columns_ + i * ld_; }

  // β(p), the function's value, and its gradient p − R(β(p) − center).
  double evaluate(const std::vector<double>& p) {
    gradient_.resize(ld_);
    for (std::int64_t j = 0; j < ld_; ++j) gradient_[j] = p[j] + origin_[j];
    double squares = 0;
    for (std::int64_t i = 0; i < d_; ++i) {
      beta_[i] = soft(target_[i] - dot(column(i), p.data(), ld_), l1_) / (h_ + l2_);
      if (beta_[i] == 0) continue;
      squares += beta_[i] * beta_[i];
      axpy(-beta_[i], column(i), gradient_.data(), ld_);
    }
    return 0.5 * dot(p.data(), p.data(), ld_) + 0.5 * (h_ + l2_) * squares +
           dot(p.data(), origin_.data(), ld_);
  }

  void newton_direction() {  // (I + R_A R_Aᵀ/(h + l2)) direction = −gradient, A the features with β ≠ 0
    matrix_.assign(k_ * ld_, 0.0);
    const Small J{matrix_.data(), ld_};
    for (std::int64_t i = 0; i < d_; ++i) {
      if (beta_[i] == 0) continue;
      for (std::int64_t j = 0; j < k_; ++j) axpy(column(i)[j] / (h_ + l2_), column(i), J.row(j), ld_);
    }
    for (std::int64_t j = 0; j < k_; ++j) J.at(j, j) += 1.0;
    cholesky(J, k_, 1.0);
    direction_.assign(ld_, 0.0);
    for (std::int64_t j = 0; j < k_; ++j) direction_[j] = -gradient_[j];
    solve_lower(J, k_, direction_.data());
    for (std::int64_t j = k_ - 1; j >= 0; --j) {
      for (std::int64_t i = j + 1; i < k_; ++i) direction_[j] -= J.at(i, j) * direction_[i];
      direction_[j] /= J.at(j, j);
    }
  }

  std::int64_t k_ = 0, d_ = 0, ld_ = 0;
  const double* columns_ = nullptr;
  double* beta_ = nullptr;
  double h_ = 0, l1_ = 0, l2_ = 0;
  std::vector<double> origin_, target_, p_, trial_, gradient_, direction_, matrix_;
};

}  // namespace skn
