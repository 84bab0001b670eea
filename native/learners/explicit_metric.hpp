// hI + (SᵀS)^½ in all features, with an orthonormal basis of the rows of S written out.
//
// In terms of S itself a step is a small difference of long vectors: digits are lost where singular values of
// S differ much, or where the largest is much above h. Here nothing cancels but what lies outside of S.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"
#include "eigen/jacobi_svd.hpp"

namespace skn {

class ExplicitMetric {
 public:
  // Room for the m rows of S in n features, all zero; a row is `length` numbers.
  void resize(std::int64_t m, std::int64_t n) {
    m_ = m;
    length = padded4(n);
    ld_ = padded4(m);
    Q_.assign(static_cast<std::size_t>(m * length), 0.0);
    R_.assign(static_cast<std::size_t>(m * ld_), 0.0);
    inside_.resize(ld_);
    again_.resize(ld_);
    rest_.resize(length);
  }
  double* row(std::int64_t j) { return Q_.data() + j * length; }

  // S = RᵀQ by Gram and Schmidt, twice, so that Q is orthonormal, and (SᵀS)^½ = Qᵀ(RRᵀ)^½Q.
  void factor() {
    for (std::int64_t j = 0; j < m_; ++j) {
      double* const q = row(j);
      const double whole = std::sqrt(dot(q, q, length));
      for (int round = 0; round < 2; ++round)
        for (std::int64_t l = 0; l < j; ++l) {
          const double c = dot(row(l), q, length);
          axpy(-c, row(l), q, length);
          R_[j * ld_ + l] += c;
        }
      const double left = std::sqrt(dot(q, q, length));
      if (left > kRounding * whole) {
        R_[j * ld_ + j] = left;
        for (std::int64_t i = 0; i < length; ++i) q[i] /= left;
      } else {
        std::fill_n(q, length, 0.0);
      }
    }
    svd_.compute(R_.data(), ld_, m_, m_);
  }

  void multiply(const double* v, double* out) const {  // out = Sv
    std::vector<double> in(ld_, 0.0);
    for (std::int64_t j = 0; j < m_; ++j) in[j] = dot(Q_.data() + j * length, v, length);
    for (std::int64_t j = 0; j < m_; ++j) out[j] = dot(&R_[j * ld_], in.data(), ld_);
  }

  // v ← (hI + (SᵀS)^½)⁻¹v
  void solve(double* v, double h) {
    split(v);
    for (std::int64_t i = 0; i < length; ++i) v[i] = rest_[i] / h;
    std::fill(again_.begin(), again_.end(), 0.0);
    for (std::int64_t j = 0; j < m_; ++j)
      axpy(dot(vector(j), inside_.data(), ld_) / (h + std::sqrt(svd_.values[j])), vector(j), again_.data(),
           ld_);
    for (std::int64_t j = 0; j < m_; ++j) axpy(again_[j], row(j), v, length);
  }

  double quadratic(const double* v, double h) {  // vᵀ(hI + (SᵀS)^½)⁻¹v
    split(v);
    double sum = dot(rest_.data(), rest_.data(), length) / h;
    for (std::int64_t j = 0; j < m_; ++j) {
      const double part = dot(vector(j), inside_.data(), ld_);
      sum += part * part / (h + std::sqrt(svd_.values[j]));
    }
    return sum;
  }

  std::int64_t length = 0;

 private:
  static constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();

  const double* vector(std::int64_t j) const { return &svd_.vectors[j * ld_]; }

  void split(const double* v) {  // v = Qᵀ·inside + rest
    std::copy_n(v, length, rest_.begin());
    std::fill(inside_.begin(), inside_.end(), 0.0);
    for (int round = 0; round < 2; ++round)
      for (std::int64_t j = 0; j < m_; ++j) {
        const double c = dot(row(j), rest_.data(), length);
        axpy(-c, row(j), rest_.data(), length);
        inside_[j] += c;
      }
  }

  std::int64_t m_ = 0, ld_ = 0;
  std::vector<double> Q_, R_;  // m × length; Rᵀ, m × ld
  std::vector<double> inside_, again_, rest_;
  JacobiSvd svd_;
};

}  // namespace skn
