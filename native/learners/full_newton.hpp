// The exact Online Newton Step (SON Equations 1–2), O(d²) per row.
//
// A = UᵀU is kept by rank-one updates of its Cholesky factor rather than as an inverse by Sherman–Morrison:
// the same cost, but xᵀA⁻¹x = ‖U⁻ᵀx‖² can never turn negative, and features of any scale do not disturb each
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/newton_problem.hpp"
#include "core/rows.hpp"

namespace skn {

// Coordinate 0 is the intercept, coordinate i + 1 is feature i.
struct FullNewtonState {
  std::int64_t* counts;  // rounds, dimension
  double *w, *U;         // capacity; capacity², upper triangle
  std::int64_t capacity;
  bool intercept;
};

class FullNewton {
 public:
  FullNewton(const Problem& problem, const FullNewtonState& state)
      : problem_(problem), s_(state), y_(static_cast<std::size_t>(state.capacity)), v_(y_) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    stream(
        rows, 0, rows.count(), [](const Row&) {},
        [&](const Row& row, std::int64_t i) {
          out[i] = learn_row(row, labels[i], weights == nullptr ? 1.0 : weights[i]);
        });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) const {
    RowReader reader(rows);
    for (std::int64_t i = 0; i < rows.count(); ++i) out[i] = problem_.clipped(score(reader[i], features));
  }

 private:
  enum { kRounds, kDimension };
  static constexpr double kRounding = 32 * std::numeric_limits<double>::epsilon();

  double score(const Row& row, std::int64_t features) const {
    double sum = s_.intercept ? s_.w[0] : 0.0;
    for (std::int64_t k = 0; k < row.size() && row.index()[k] < features; ++k)
      sum += row.value()[k] * s_.w[row.index()[k] + 1];
    return sum;
  }

  // How far rounding may have moved the score.
  double doubt(const Row& row) const {
    double sum = s_.intercept ? std::abs(s_.w[0]) : 0.0;
    for (std::int64_t k = 0; k < row.size(); ++k) sum += std::abs(row.value()[k] * s_.w[row.index()[k] + 1]);
    return kRounding * sum;
  }

  double learn_row(const Row& row, double label, double weight) {
    const double before = score(row, s_.capacity - 1), p = problem_.clipped(before);
    if (weight == 0) return p;
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
    const std::int64_t d = s_.counts[kDimension] + 1;
    const double quadratic = solve(row, d);
    if (p != before) {
      move((before - p) / quadratic, d);
      move((score(row, s_.capacity - 1) - p) / quadratic, d);  // what rounding left: exactly to the bound
    }

    const auto t = static_cast<double>(++s_.counts[kRounds]);
    const double slope = weight * problem_.derivative(p, label, [&] { return doubt(row); });
    if (slope == 0 || quadratic == 0) return p;
    const double r =
        problem_.sketched(slope, p, label, t, weight, static_cast<double>(s_.counts[kDimension]));
    update(row, r, d);
    move(slope / (1.0 + r * r * quadratic), d);  // (A + r²xxᵀ)⁻¹x = A⁻¹x / (1 + r²xᵀA⁻¹x)
    return p;
  }

  double* U(std::int64_t k) const { return s_.U + k * s_.capacity; }

  void spread(const Row& row, double scale, std::int64_t d) {  // v = scale·x
    std::fill(v_.begin(), v_.begin() + d, 0.0);
    if (s_.intercept) v_[0] = scale;
    for (std::int64_t k = 0; k < row.size(); ++k) v_[row.index()[k] + 1] = scale * row.value()[k];
  }

  double solve(const Row& row, std::int64_t d) {  // y = A⁻¹x; returns xᵀA⁻¹x
    spread(row, 1.0, d);
    double quadratic = 0;
    for (std::int64_t k = 0; k < d; ++k) {  // v ← U⁻ᵀx
      if (v_[k] == 0) continue;
      const double* __restrict u = U(k);
      const double f = v_[k] /= u[k];
      quadratic += f * f;
      for (std::int64_t j = k + 1; j < d; ++j) v_[j] -= f * u[j];
    }
    for (std::int64_t k = d - 1; k >= 0; --k) {  // y ← U⁻¹v
      const double* u = U(k);
      y_[k] = (v_[k] - dot_from(u, k + 1, d)) / u[k];
    }
    return quadratic;
  }

  double dot_from(const double* u, std::int64_t j, std::int64_t d) const {  // Σ_{i ≥ j} u_i y_i
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (; j + 4 <= d; j += 4) {
      s0 += u[j] * y_[j];
      s1 += u[j + 1] * y_[j + 1];
      s2 += u[j + 2] * y_[j + 2];
      s3 += u[j + 3] * y_[j + 3];
    }
    for (; j < d; ++j) s0 += u[j] * y_[j];
    return (s0 + s1) + (s2 + s3);
  }

  void update(const Row& row, double r, std::int64_t d) {  // UᵀU ← UᵀU + r²xxᵀ
    spread(row, r, d);
    double* __restrict v = v_.data();
    for (std::int64_t k = 0; k < d; ++k) {
      if (v[k] == 0) continue;
      double* __restrict u = U(k);
      const double length = std::sqrt(u[k] * u[k] + v[k] * v[k]), c = u[k] / length, s = v[k] / length;
      u[k] = length;
      for (std::int64_t j = k + 1; j < d; ++j) {
        const double old = u[j];
        u[j] = c * old + s * v[j];
        v[j] = c * v[j] - s * old;
      }
    }
  }

  void move(double step, std::int64_t d) {
    for (std::int64_t j = 0; j < d; ++j) s_.w[j] -= step * y_[j];
  }

  Problem problem_;
  FullNewtonState s_;
  std::vector<double> y_, v_;
};

}  // namespace skn
