// Singular values and right singular vectors of a small matrix by one-sided Jacobi rotations.
//
// Slower than the eigenvectors of the Gram matrix, whose rounding is a share of σ₁²: here that of σ_i is a
// share of σ₁, and less where columns differ in scale (Demmel and Veselić 1992).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"

namespace skn {

class JacobiSvd {
 public:
  std::vector<double> values;   // squares of the singular values, largest first
  std::vector<double> vectors;  // row i, of `width` numbers, is the vector of values[i]
  std::int64_t width = 0;

  // `rows` × n, its rows `ld` apart.
  void compute(const double* R, std::int64_t ld, std::int64_t rows, std::int64_t n) {
    length_ = padded4(rows);
    width = padded4(n);
    P_.assign(static_cast<std::size_t>(n * length_), 0.0);
    J_.assign(static_cast<std::size_t>(n * width), 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) column(j)[i] = R[i * ld + j];
      turn(j)[j] = 1.0;
    }
    for (int sweep = 0; sweep < kSweeps && !orthogonal(n); ++sweep) {
    }
    sort(n);
  }

 private:
  static constexpr int kSweeps = 40;  // six do, as a rule
  static constexpr double kEnough = 4 * std::numeric_limits<double>::epsilon();

  double* column(std::int64_t j) { return P_.data() + j * length_; }
  double* turn(std::int64_t j) { return J_.data() + j * width; }

  // One rotation for each pair of columns; true if none was needed.
  bool orthogonal(std::int64_t n) {
    bool done = true;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i + 1; j < n; ++j) {
        const double a = dot(column(i), column(i), length_), b = dot(column(j), column(j), length_);
        const double p = dot(column(i), column(j), length_);
        if (!(std::abs(p) > kEnough * std::sqrt(a) * std::sqrt(b))) continue;
        done = false;
        const double zeta = (b - a) / (2 * p);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1.0 / std::sqrt(1.0 + t * t);
        rotate(c, c * t, column(i), column(j), length_);
        rotate(c, c * t, turn(i), turn(j), width);
      }
    return done;
  }

  static void rotate(double c, double s, double* a, double* b, std::int64_t n) {
    for (std::int64_t k = 0; k < n; k += 4) {
      const Four x = four(a + k), y = four(b + k);
      four(a + k) = c * x - s * y;
      four(b + k) = s * x + c * y;
    }
  }

  void sort(std::int64_t n) {
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t j = 0; j < n; ++j) order.emplace_back(dot(column(j), column(j), length_), j);
    std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.first > b.first; });
    values.clear();
    vectors.clear();
    for (const auto& [value, j] : order) {
      values.push_back(value);
      vectors.insert(vectors.end(), turn(j), turn(j) + width);
    }
  }

  std::int64_t length_ = 0;
  std::vector<double> P_, J_;  // columns of R and of the product of all rotations, as rows
};

}  // namespace skn
