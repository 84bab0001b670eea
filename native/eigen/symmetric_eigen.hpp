// Eigenvalues and eigenvectors of a small symmetric matrix: Householder tridiagonalisation, then implicit QL.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace skn {

class SymmetricEigen {
 public:
  std::vector<double> values;   // largest first
  std::vector<double> vectors;  // n × n, row i is the eigenvector of values[i]

  void compute(const double* matrix, std::int64_t ld, std::int64_t n) {
    n_ = n;
    Q_.assign(n * n, 0.0);
    double scale = 0;  // to one, so that squares neither overflow nor vanish
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) scale = std::max(scale, std::abs(matrix[i * ld + j]));
    const double inverse = scale > 0 ? 1.0 / scale : 0.0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) Q_[i * n + j] = matrix[i * ld + j] * inverse;
    d_.assign(n, 0.0);
    e_.assign(n, 0.0);
    if (n > 0) {
      tridiagonalise();
      implicit_ql();
    }
    sort();
    for (double& value : values) value *= scale;
  }

 private:
  double& Q(std::int64_t i, std::int64_t j) { return Q_[i * n_ + j]; }

  // A = Q T Qᵀ by n − 2 reflections, each built from the part of a row below the diagonal; e_[i] = T(i, i+1).
  void tridiagonalise() {
    const std::int64_t n = n_;
    std::vector<double> A = Q_, v(n), p(n);
    std::fill(Q_.begin(), Q_.end(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) Q(i, i) = 1.0;
    for (std::int64_t k = 0; k + 2 < n; ++k) {
      double scale = 0;
      for (std::int64_t i = k + 1; i < n; ++i) scale = std::max(scale, std::abs(A[i * n + k]));
      if (scale == 0) continue;
      double norm = 0;
      for (std::int64_t i = k + 1; i < n; ++i) {
        v[i] = A[i * n + k] / scale;
        norm += v[i] * v[i];
      }
      norm = std::sqrt(norm);
      v[k + 1] += v[k + 1] < 0 ? -norm : norm;
      double vv = 0;
      for (std::int64_t i = k + 1; i < n; ++i) vv += v[i] * v[i];
      if (vv == 0) continue;
      const double beta = 2.0 / vv;
      // A ← HAH with H = I − βvvᵀ: A −= v wᵀ + w vᵀ
      double vp = 0;
      for (std::int64_t i = k; i < n; ++i) {
        double sum = 0;
        for (std::int64_t j = k + 1; j < n; ++j) sum += A[i * n + j] * v[j];
        p[i] = beta * sum;
        if (i > k) vp += v[i] * p[i];
      }
      for (std::int64_t i = k + 1; i < n; ++i) p[i] -= 0.5 * beta * vp * v[i];
      for (std::int64_t j = k + 1; j < n; ++j) A[k * n + j] = A[j * n + k] = A[k * n + j] - p[k] * v[j];
      for (std::int64_t i = k + 1; i < n; ++i)
        for (std::int64_t j = k + 1; j < n; ++j) A[i * n + j] -= v[i] * p[j] + p[i] * v[j];
      for (std::int64_t i = 0; i < n; ++i) {  // Q ← QH
        double* q = &Q_[i * n];
        double sum = 0;
        for (std::int64_t j = k + 1; j < n; ++j) sum += q[j] * v[j];
        sum *= beta;
        for (std::int64_t j = k + 1; j < n; ++j) q[j] -= sum * v[j];
      }
    }
    for (std::int64_t i = 0; i < n; ++i) {
      d_[i] = A[i * n + i];
      e_[i] = i + 1 < n ? A[i * n + i + 1] : 0.0;
    }
    // Rotations act on columns of Q; as rows they are contiguous.
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < i; ++j) std::swap(Q(i, j), Q(j, i));
  }

  void implicit_ql() {
    const std::int64_t n = n_;
    const double eps = std::numeric_limits<double>::epsilon();
    for (std::int64_t l = 0; l < n; ++l) {
      for (int iteration = 0; iteration < 60; ++iteration) {
        std::int64_t k = l;
        while (k + 1 < n && std::abs(e_[k]) > eps * (std::abs(d_[k]) + std::abs(d_[k + 1]))) ++k;
        if (k == l) break;
        double g = (d_[l + 1] - d_[l]) / (2.0 * e_[l]);
        double r = std::sqrt(g * g + 1.0);
        g = d_[k] - d_[l] + e_[l] / (g + std::copysign(r, g));
        double s = 1, c = 1, p = 0;
        std::int64_t i = k - 1;
        for (; i >= l; --i) {
          double f = s * e_[i];
          const double b = c * e_[i];
          r = std::sqrt(f * f + g * g);
          e_[i + 1] = r;
          if (r == 0) {
            d_[i + 1] -= p;
            e_[k] = 0;
            break;
          }
          const double inverse = 1.0 / r;
          s = f * inverse;
          c = g * inverse;
          g = d_[i + 1] - p;
          r = (d_[i] - g) * s + 2.0 * c * b;
          p = s * r;
          d_[i + 1] = g + p;
          g = c * r - b;
          double* __restrict lower = &Q_[i * n];
          double* __restrict upper = &Q_[(i + 1) * n];
          for (std::int64_t j = 0; j < n; ++j) {
            f = upper[j];
            upper[j] = s * lower[j] + c * f;
            lower[j] = c * lower[j] - s * f;
          }
        }
        if (r == 0 && i >= l) continue;
        d_[l] -= p;
        e_[l] = g;
        e_[k] = 0;
      }
    }
  }

  void sort() {
    std::vector<std::int64_t> order(n_);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](auto a, auto b) { return d_[a] > d_[b]; });
    values.resize(n_);
    vectors.resize(n_ * n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      values[i] = d_[order[i]];
      std::copy_n(&Q_[order[i] * n_], n_, &vectors[i * n_]);
    }
  }

  std::int64_t n_ = 0;
  std::vector<double> Q_, d_, e_;
};

}  // namespace skn
