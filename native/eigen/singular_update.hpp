// Singular values and right singular vectors of a matrix that gains a row.
//
// Of S = U diag(s) E only s and E are kept. With z = Ev, SᵀS + vvᵀ = Eᵀ(diag(s²) + zzᵀ)E, whose eigenvalues
// lie between those of diag(s²), at the zeros of 1 + Σ z_j²/(s_j² − λ). Nothing is squared that is not taken
// apart again: differences of squares are (s_j − s_k)(s_j + s_k), and a zero is known by its distance from
// the nearest s_k². So small singular values keep the digits that the eigenvalues of SᵀS would lose, half of
// all. The vectors belong to the z for which the zeros found are exact, and are therefore orthogonal (Gu and
// Eisenstat, A stable and efficient algorithm for the rank-one modification of the symmetric eigenproblem,
// 1994). Cost O(n²), and n³ products for E: a quarter of an eigendecomposition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/small_matrix.hpp"

namespace skn {

class SingularUpdate {
 public:
  // s: n numbers, largest first. E: a singular vector per row. v: the new row, n numbers and padding.
  void add(double* s, const Small& E, std::int64_t n, const double* v) {
    project(E, n, v);
    const double top = std::max(n > 0 ? s[0] : 0.0, largest(z_));
    if (!(top > 0) || !std::isfinite(top)) return;
    int exponent = 0;
    std::frexp(top, &exponent);  // squares of numbers up to one neither overflow nor matter where they vanish
    s_.resize(n);
    for (std::int64_t j = 0; j < n; ++j)
      s_[j] = std::ldexp(s[j], -exponent), z_[j] = std::ldexp(z_[j], -exponent);
    deflate(E, n);
    solve();
    rotate(E);
    sort(E, n);
    for (std::int64_t j = 0; j < n; ++j) s[j] = std::ldexp(s_[j], exponent);
  }

 private:
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  static constexpr double kNothing = 1e-140;  // its square is about to vanish

  void project(const Small& E, std::int64_t n, const double* v) {
    z_.resize(n);
    for (std::int64_t j = 0; j < n; ++j) z_[j] = dot(E.row(j), v, E.ld);
  }

  static double largest(const std::vector<double>& v) {
    double most = 0;
    for (const double x : v) most = std::max(most, std::abs(x));
    return most;
  }

  // Leaves those in `kept` whose z is not zero and whose s differ; equal ones turn until one has all of z.
  void deflate(const Small& E, std::int64_t n) {
    kept_.clear();
    for (std::int64_t j = 0; j < n; ++j) {
      if (!(std::abs(z_[j]) > kNothing)) continue;
      if (!kept_.empty() && s_[kept_.back()] - s_[j] <= std::max(2 * kEpsilon * s_[j], kNothing)) {
        const std::int64_t i = kept_.back();
        const double r = std::hypot(z_[i], z_[j]), c = z_[j] / r, t = z_[i] / r;
        double *a = E.row(i), *b = E.row(j);
        for (std::int64_t k = 0; k < E.ld; ++k) {
          const double old = a[k];
          a[k] = c * old - t * b[k];
          b[k] = t * old + c * b[k];
        }
        z_[i] = 0;
        z_[j] = r;
        kept_.pop_back();
      }
      kept_.push_back(j);
    }
  }

  double square_difference(std::int64_t j, std::int64_t k) const {  // of the poles s_j², s_k²
    return (p_[j] - p_[k]) * (p_[j] + p_[k]);
  }

  void solve() {
    const auto n = std::ssize(kept_);
    p_.resize(n), w_.resize(n), root_.resize(n), delta_.resize(n), vectors_.resize(n * n);
    for (std::int64_t j = 0; j < n; ++j) p_[j] = s_[kept_[j]], w_[j] = z_[kept_[j]] * z_[kept_[j]];
    for (std::int64_t i = 0; i < n; ++i) find(i, n);
    // z for which these zeros are exact: z_j² = (λ_j − s_j²) Π_{k≠j} (λ_k − s_j²)/(s_k² − s_j²)
    for (std::int64_t j = 0; j < n; ++j) {
      double product = -vectors_[j * n + j];
      for (std::int64_t k = 0; k < n; ++k)
        if (k != j) product *= -vectors_[k * n + j] / square_difference(k, j);
      w_[j] = std::copysign(std::sqrt(std::max(product, 0.0)), z_[kept_[j]]);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      double* q = &vectors_[i * n];
      double most = 0, sum = 0;
      for (std::int64_t j = 0; j < n; ++j) most = std::max(most, std::abs(q[j] = w_[j] / q[j]));
      for (std::int64_t j = 0; j < n; ++j) q[j] /= most, sum += q[j] * q[j];
      for (std::int64_t j = 0; j < n; ++j) q[j] /= std::sqrt(sum);
    }
  }

  // Zero i, which lies between the poles i and i − 1; the first lies above all. Leaves s_j² − λ_i in a row of
  // `vectors`.
  void find(std::int64_t i, std::int64_t n) {
    std::int64_t origin = i;
    double lower = 0, upper = 0;  // of t, the zero's distance from the pole nearest to it
    if (i == 0) {
      lower = w_[0];
      upper = std::accumulate(w_.begin(), w_.end(), 0.0);
    } else {
      const double half = 0.5 * square_difference(i - 1, i);
      double below = 0, above = 0;
      for (std::int64_t j = 0; j < n; ++j) delta_[j] = square_difference(j, i);
      const double middle = 1.0 + sum(delta_, half, 0, i) + sum(delta_, half, i, n);
      if (middle < 0) {
        origin = i - 1;
        for (std::int64_t j = i; j < n; ++j) below += w_[j] / square_difference(origin, j);
        lower = 0.5 * w_[origin] / below;
      } else {
        for (std::int64_t j = 0; j < i; ++j) above += w_[j] / delta_[j];
        lower = w_[i] / (1.0 + 2.0 * above);
      }
      upper = half;
    }
    const double side = origin == i ? 1.0 : -1.0;
    for (std::int64_t j = 0; j < n; ++j) delta_[j] = square_difference(j, origin);
    const double t = side * distance(i, n, side, std::min(lower, upper), upper);
    root_[i] = std::sqrt(std::max(p_[origin] * p_[origin] + t, 0.0));
    for (std::int64_t j = 0; j < n; ++j) vectors_[i * n + j] = delta_[j] - t;
  }

  double sum(const std::vector<double>& delta, double t, std::int64_t from, std::int64_t to) const {
    double total = 0;
    for (std::int64_t j = from; j < to; ++j) total += w_[j] / (delta[j] - t);
    return total;
  }

  // The t in [lower, upper] at which 1 + Σ w_j/(δ_j − side·t) = 0. The poles on either side are taken
  // together as one each, which has their sum and their slope here; the zero of that is the next guess.
  double distance(std::int64_t i, std::int64_t n, double side, double lower, double upper) const {
    double t = upper;
    for (int step = 0; step < 100; ++step) {
      double left = 0, right = 0, left_slope = 0, right_slope = 0;
      for (std::int64_t j = 0; j < i; ++j) {
        const double per = 1.0 / (delta_[j] - side * t), term = w_[j] * per;
        right += term;
        right_slope += term * per;
      }
      for (std::int64_t j = i; j < n; ++j) {
        const double per = 1.0 / (delta_[j] - side * t), term = w_[j] * per;
        left += term;
        left_slope += term * per;
      }
      const double value = 1.0 + left + right;
      if (std::abs(value) <= kEpsilon * (1.0 - left + right)) return t;
      (side * value < 0 ? lower : upper) = t;
      if (!(upper - lower > kEpsilon * upper)) return upper;
      const double next = guess(i, side, t, left, right, left_slope, right_slope);
      // Outside of what is known: halve it, in digits.
      t = next > lower && next < upper ? next : std::sqrt(lower) * std::sqrt(upper);
      if (!(t > lower && t < upper)) t = 0.5 * (lower + upper);
    }
    return t;
  }

  double guess(std::int64_t i, double side, double t, double left, double right, double left_slope,
               double right_slope) const {
    const double a = delta_[i] - side * t;
    const double p = left_slope * a * a, constant = 1.0 + left - left_slope * a;
    if (i == 0) return p / constant;
    const double b = delta_[i - 1] - side * t, q = right_slope * b * b;
    const double gap = std::abs(delta_[i - 1] - delta_[i]);
    const double c = side * (constant + right - right_slope * b), own = side > 0 ? p : q;
    const double linear = c * gap + p + q;
    const double root = std::sqrt(std::max(linear * linear - 4.0 * c * own * gap, 0.0));
    return linear > 0 ? 2.0 * own * gap / (linear + root) : (linear - root) / (2.0 * c);
  }

  void rotate(const Small& E) {
    const auto n = std::ssize(kept_);
    old_.resize(n * E.ld);
    for (std::int64_t j = 0; j < n; ++j) std::copy_n(E.row(kept_[j]), E.ld, &old_[j * E.ld]);
    for (std::int64_t i = 0; i < n; ++i) {
      combine_rows(&vectors_[i * n], {old_.data(), E.ld}, n, E.row(kept_[i]));
      s_[kept_[i]] = root_[i];
    }
  }

  void sort(const Small& E, std::int64_t n) {
    if (std::is_sorted(s_.begin(), s_.end(), std::greater<>())) return;
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](auto a, auto b) { return s_[a] > s_[b]; });
    old_.assign(E.data, E.data + n * E.ld);
    p_ = s_;
    for (std::int64_t i = 0; i < n; ++i) {
      s_[i] = p_[order[i]];
      std::copy_n(&old_[order[i] * E.ld], E.ld, E.row(i));
    }
  }

  std::vector<std::int64_t> kept_;
  std::vector<double> s_, z_;  // scaled: the largest is about one
  std::vector<double> p_, w_;  // of those kept: s, and z²
  std::vector<double> root_, delta_, vectors_, old_;
};

}  // namespace skn
