// The Cholesky factor L of I + ayᵀ + yaᵀ + n aaᵀ in O(m²), where n ≥ ‖y‖², a_i = gain_i·y_i and gain ≥ 0.
//
// Below the diagonal L_ij = a_i p_j + y_i q_j. With A = Σa², B = Σay, N = n − Σy² over the columns before j
// and Δ_j = A·N + (1 + B)² one finds L_jj² = Δ_{j+1}/Δ_j. These sums have terms of one sign, so nothing
// cancels however large a, y and n are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/small_matrix.hpp"

namespace skn {

class RankTwo {
 public:
  explicit RankTwo(std::int64_t m)  // a multiple of four
      : a(m), y(m), p(m), q(m), delta_(m + 1, 1.0), diagonal_(m), inverse_(m), u_(m), v_(m) {}

  std::vector<double> a, y;
  std::vector<double> p, q;  // p = L⁻¹(y + n·a), q = L⁻¹a

  // Returns ½ log det: by how much the volume spanned by the rows grows.
  double factor(std::int64_t r, const double* gain, double n) {
    double A = 0, B = 0, N = n;
    for (std::int64_t j = 0; j < r; ++j) {
      double spread = gain[j] * (1 + B) - A;
      if (B > kCancels) {  // the same, term by term
        spread = gain[j];
        for (std::int64_t k = 0; k < j; ++k) spread += a[k] * y[k] * (gain[j] - gain[k]);
      }
      p[j] = N * a[j] + (1 + B) * y[j];
      q[j] = spread * y[j];
      A += a[j] * a[j];
      B += a[j] * y[j];
      N = std::max(N - y[j] * y[j], 0.0);
      delta_[j + 1] = A * N + (1 + B) * (1 + B);
    }
    for (std::int64_t j = 0; j < r; j += 4) {  // roots and quotients four at a time
      const Four per_delta = 1.0 / four(&delta_[j]), squares = four(&delta_[j + 1]) * per_delta;
      Four diagonal;
      for (int c = 0; c < 4; ++c) diagonal[c] = std::sqrt(squares[c]);
      const Four inverse = 1.0 / diagonal, scale = per_delta * inverse;
      four(&diagonal_[j]) = diagonal;
      four(&inverse_[j]) = inverse;
      four(&p[j]) *= scale;
      four(&q[j]) *= scale;
    }
    return 0.5 * std::log(delta_[r]);
  }

  void solve(std::int64_t r, const Small& X) {  // X ← L⁻¹X for lower triangular X
    if (X.ld == 12) return solve_known<3>(r, X);
    double* __restrict xp = u_.data(), * __restrict xq = v_.data();
    for (std::int64_t c = 0; c < X.ld; ++c) xp[c] = xq[c] = 0;
    for (std::int64_t j = 0; j < r; ++j) {
      double* __restrict x = X.row(j);
      const double scale = inverse_[j], aj = a[j], yj = y[j], pj = p[j], qj = q[j];
      const std::int64_t width = padded4(j + 1);
      for (std::int64_t c = 0; c < width; ++c) {
        x[c] = (x[c] - aj * xp[c] - yj * xq[c]) * scale;
        xp[c] += pj * x[c];
        xq[c] += qj * x[c];
      }
    }
  }

  void multiply_transposed(std::int64_t r, double* x) const {  // x ← Lᵀx
    double xa = 0, xy = 0;
    for (std::int64_t j = r - 1; j >= 0; --j) {
      const double old = x[j];
      x[j] = diagonal_[j] * old + p[j] * xa + q[j] * xy;
      xa += a[j] * old;
      xy += y[j] * old;
    }
  }

 private:
  template <int B>
  void solve_known(std::int64_t r, const Small& X) {  // the same with sums in registers
    Four xp[B] = {}, xq[B] = {};
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b)
      for (std::int64_t j = 4 * b; j < std::min<std::int64_t>(4 * b + 4, r); ++j) {
        double* const x = X.data + j * 4 * B;
        const double scale = inverse_[j], aj = a[j], yj = y[j], pj = p[j], qj = q[j];
#pragma GCC unroll 4
        for (int c = 0; c <= b; ++c) {
          const Four xc = (four(x + 4 * c) - aj * xp[c] - yj * xq[c]) * scale;
          four(x + 4 * c) = xc;
          xp[c] += pj * xc;
          xq[c] += qj * xc;
        }
      }
  }

  static constexpr double kCancels = 1e3;  // beyond this a difference would lose more than three digits
  std::vector<double> delta_, diagonal_, inverse_, u_, v_;
};

}  // namespace skn
