// Online Newton without a ridge: A = Σ(σ + η)ggᵀ, singular until the rows span the space (SON Appendix D).
//
// The pseudo-inverse is never formed. Q has orthonormal rows that span the range of A, A = Qᵀ(UᵀU)Q with U
// triangular, and of the weights only v = Qw matters. A row inside the range takes the steps of Lemma 2 in r
// coordinates; a row outside opens one more. As printed, Lemma 2 leaves w alone there if |wᵀx| ≤ C, and the
// result then depends on the coordinates that x came in: a move along (I − A†A)x costs nothing in the norm of
// A, so the prediction of such a row could be any number. Here it is always 0, which makes the whole
// algorithm invariant.
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
struct InvariantNewtonState {
  std::int64_t* counts;  // rounds, dimension, rank
  double* unit;          // capacity: x is divided by it; a power of two, 0 for coordinates never seen
  double *Q, *U, *R;     // capacity² each: basis; factor (upper triangle); the rows that opened it (lower)
  double *length, *v;    // capacity: the lengths of those rows; Qw
  std::int64_t capacity;
  bool intercept;
};

class InvariantNewton {
 public:
  InvariantNewton(const Problem& problem, const InvariantNewtonState& state)
      : problem_(problem),
        s_(state),
        x_(static_cast<std::size_t>(state.capacity)),
        xhat_(x_),
        y_(x_),
        z_(x_) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    stream(
        rows, 0, rows.count(), [](const Row&) {},
        [&](const Row& row, std::int64_t i) {
          out[i] = learn_row(row, labels[i], weights == nullptr ? 1.0 : weights[i]);
        });
  }

  // Features without a unit count as zero, those beyond the matrices among them.
  void predict(const Rows& rows, std::int64_t, double* out) {
    RowReader reader(rows);
    for (std::int64_t i = 0; i < rows.count(); ++i) out[i] = peek(reader[i]);
  }

 private:
  enum { kRounds, kDimension, kRank };
  // A row counts as a combination of the rows that opened the basis if a change of all of them by this share
  // of their length could make it one.
  static constexpr double kRounding = 1e-12;

  std::int64_t size() const { return s_.counts[kDimension] + 1; }
  std::int64_t rank() const { return s_.counts[kRank]; }
  double* Q(std::int64_t k) const { return s_.Q + k * s_.capacity; }
  double* U(std::int64_t k) const { return s_.U + k * s_.capacity; }
  double* R(std::int64_t k) const { return s_.R + k * s_.capacity; }

  // The prediction as things stand; features never seen count as zero.
  double peek(const Row& row) {
    spread(row);
    return decompose() ? 0.0 : problem_.clipped(score());
  }

  double learn_row(const Row& row, double label, double weight) {
    if (weight == 0) return peek(row);
    enter(row);
    spread(row);
    const bool outside = decompose();
    const double before = outside ? 0.0 : score(), p = problem_.clipped(before);
    double quadratic = outside ? 0.0 : solve();
    if (p != before) {
      move((before - p) / quadratic);
      move((score() - p) / quadratic);  // what rounding left: exactly to the bound
    }

    const auto t = static_cast<double>(++s_.counts[kRounds]);
    const double slope = weight * problem_.derivative(p, label, [&] { return outside ? 0.0 : doubt(); });
    const double r =
        problem_.sketched(slope, p, label, t, weight, static_cast<double>(s_.counts[kDimension]));
    if (r == 0 || xx_ == 0) return p;
    if (outside) {
      const std::int64_t k = open();
      update(r);
      s_.v[k] -= slope / (r * r * xhat_[k]);  // A†x = u/(r²‖u‖²) with u = (I − A†A)x of the A before
    } else {
      update(r);
      move(slope / (1.0 + r * r * quadratic));  // (A + r²xxᵀ)†x = A†x / (1 + r²xᵀA†x)
    }
    return p;
  }

  // Features met for the first time get their unit, so that 10⁻¹⁵ here and 10¹⁵ there do not look collinear.
  void enter(const Row& row) {
    const std::int64_t n = row.size();
    if (n > 0 && row.index()[n - 1] >= s_.counts[kDimension]) s_.counts[kDimension] = row.index()[n - 1] + 1;
    for (std::int64_t k = 0; k < n; ++k) {
      double& unit = s_.unit[row.index()[k] + 1];
      if (unit == 0) unit = std::ldexp(1.0, std::clamp(std::ilogb(row.value()[k]), -100, 100));
    }
  }

  void spread(const Row& row) {  // x, in units, as a dense vector
    std::fill(x_.begin(), x_.begin() + size(), 0.0);
    if (s_.intercept) x_[0] = 1.0;
    for (std::int64_t k = 0; k < row.size() && row.index()[k] + 1 < size(); ++k) {
      const std::int64_t i = row.index()[k] + 1;
      if (s_.unit[i] != 0) x_[i] = row.value()[k] / s_.unit[i];
    }
  }

  static double dot(const double* a, const double* b, std::int64_t n) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    std::int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      s0 += a[j] * b[j];
      s1 += a[j + 1] * b[j + 1];
      s2 += a[j + 2] * b[j + 2];
      s3 += a[j + 3] * b[j + 3];
    }
    for (; j < n; ++j) s0 += a[j] * b[j];
    return (s0 + s1) + (s2 + s3);
  }

  static void axpy(double a, const double* __restrict x, double* __restrict y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) y[j] += a * x[j];
  }

  // x = Qᵀx̂ + u: leaves x̂ in xhat_ and u in x_; is u more than rounding?
  bool decompose() {
    const std::int64_t d = size(), r = rank();
    xx_ = dot(x_.data(), x_.data(), d);
    for (std::int64_t k = 0; k < r; ++k) xhat_[k] = dot(Q(k), x_.data(), d);
    if (xx_ == 0 || r == d) return false;
    for (std::int64_t k = 0; k < r; ++k) axpy(-xhat_[k], Q(k), x_.data(), d);
    for (std::int64_t k = 0; k < r; ++k) {  // once more: orthogonal to rounding, however short u is
      const double left = dot(Q(k), x_.data(), d);
      xhat_[k] += left;
      axpy(-left, Q(k), x_.data(), d);
    }
    outside_ = std::sqrt(dot(x_.data(), x_.data(), d));
    return outside_ > kRounding * (std::sqrt(xx_) + reach());
  }

  // Σ|c_k|‖x_k‖ where Σc_k x_k is the part of x inside the span of the rows x_k that opened the basis: each
  // of them is known to rounding only, which moves the span by as much as this, times that.
  double reach() {
    double sum = 0;
    std::copy_n(xhat_.data(), rank(), z_.data());
    for (std::int64_t k = rank() - 1; k >= 0; --k) {
      const double c = z_[k] / R(k)[k];
      axpy(-c, R(k), z_.data(), k);
      sum += std::abs(c) * s_.length[k];
    }
    return sum;
  }

  double score() const { return dot(s_.v, xhat_.data(), rank()); }

  // How far rounding may have moved the score.
  double doubt() const {
    constexpr double kShare = 32 * std::numeric_limits<double>::epsilon();
    return kShare * std::sqrt(dot(s_.v, s_.v, rank()) * xx_);
  }

  std::int64_t open() {
    const std::int64_t k = s_.counts[kRank]++, d = size();
    for (std::int64_t j = 0; j < d; ++j) Q(k)[j] = x_[j] / outside_;
    std::copy_n(xhat_.data(), k, R(k));
    R(k)[k] = outside_;
    s_.length[k] = std::sqrt(xx_);
    for (std::int64_t j = 0; j <= k; ++j) U(j)[k] = 0;
    s_.v[k] = -dot(s_.v, xhat_.data(), k) / outside_;  // the prediction of x is 0
    xhat_[k] = outside_;
    return k;
  }

  double solve() {  // y = (UᵀU)⁻¹x̂; returns xᵀA†x
    const std::int64_t r = rank();
    double quadratic = 0;
    std::copy_n(xhat_.data(), r, z_.data());
    for (std::int64_t k = 0; k < r; ++k) {
      const double f = z_[k] /= U(k)[k];
      quadratic += f * f;
      axpy(-f, U(k) + k + 1, z_.data() + k + 1, r - k - 1);
    }
    for (std::int64_t k = r - 1; k >= 0; --k)
      y_[k] = (z_[k] - dot(U(k) + k + 1, y_.data() + k + 1, r - k - 1)) / U(k)[k];
    return quadratic;
  }

  void update(double scale) {  // UᵀU ← UᵀU + scale²x̂x̂ᵀ
    const std::int64_t r = rank();
    double* __restrict z = z_.data();
    for (std::int64_t k = 0; k < r; ++k) z[k] = scale * xhat_[k];
    for (std::int64_t k = 0; k < r; ++k) {
      if (z[k] == 0) continue;
      double* __restrict u = U(k);
      const double length = std::sqrt(u[k] * u[k] + z[k] * z[k]), c = u[k] / length, s = z[k] / length;
      u[k] = length;
      for (std::int64_t j = k + 1; j < r; ++j) {
        const double old = u[j];
        u[j] = c * old + s * z[j];
        z[j] = c * z[j] - s * old;
      }
    }
  }

  void move(double step) { axpy(-step, y_.data(), s_.v, rank()); }

  Problem problem_;
  InvariantNewtonState s_;
  std::vector<double> x_, xhat_, y_, z_;
  double xx_ = 0, outside_ = 0;
};

}  // namespace skn
