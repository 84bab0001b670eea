// Gaussian random projection in sparse time (SON, NIPS text, section 3): S ← S + ρĝᵀ with a fresh ρ ~ N(0,
// I/m).
//
// The table holds S itself, which changes only in the features of the current row. A⁻¹ = (I − SᵀHS)/α with
// H = (αI + SSᵀ)⁻¹; SSᵀ is kept, and H is applied by its Cholesky factor. The weights are w̄ + Sᵀb.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"

namespace skn {

// Numbers that depend on (seed, row, column) alone: nothing to save, and a resumed run draws the same ones.
class CounterNormal {
 public:
  static void fill(std::uint64_t seed, std::uint64_t row, std::int64_t n, double* out) {
    for (std::int64_t j = 0; j < n; j += 2) {  // Box–Muller, two at a time
      const std::uint64_t key = mix(mix(mix(seed) ^ row) ^ static_cast<std::uint64_t>(j));
      const double u = (static_cast<double>(key >> 11) + 0.5) * 0x1p-53;
      const double v = static_cast<double>(mix(key) >> 11) * 0x1p-53;
      const double radius = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * std::numbers::pi * v;
      out[j] = radius * std::cos(angle);
      if (j + 1 < n) out[j + 1] = radius * std::sin(angle);
    }
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
};

struct ProjectionState {
  std::int64_t m;
  std::uint64_t seed;
  std::int64_t* counts;  // rows, entries touched since the last refresh
  double *G, *b;         // SSᵀ (m × ld), ld
};

template <class T>
class Projection {
 public:
  static constexpr bool kLazy = false;

  Projection(const ProjectionState& s, const double* alpha, double scale)
      : s_(s),
        alpha_(alpha),
        scale_(scale),
        ld_(padded4(s.m)),
        G_{s.G, ld_},
        L_(s.m * ld_),
        z_(ld_),
        y_(ld_),
        rho_(ld_) {}

  double begin(const double* columns, double xx, const T*) {
    xx_ = xx;
    solved_ = false;
    double score = 0;
    for (std::int64_t j = 0; j < s_.m; ++j) {
      z_[j] = columns[j];
      score += s_.b[j] * z_[j];
    }
    cancels_ = std::abs(score) > kCancels * scale_;
    drowned_ = std::abs(score) * std::numeric_limits<T>::epsilon() > scale_;
    return score;
  }

  double magnitude(const double* columns) const {
    double sum = 0;
    for (std::int64_t j = 0; j < s_.m; ++j) sum += std::abs(s_.b[j]) * columns[j];
    return sum;
  }

  // xᵀA⁻¹x = (‖x‖² − zᵀHz)/α, but never below what the largest eigenvalue of A allows.
  double quadratic() {
    if (!(xx_ > 0)) return 0.0;
    solve();
    double zy = 0, trace = 0;
    for (std::int64_t j = 0; j < s_.m; ++j) {
      zy += z_[j] * y_[j];
      trace += G_.at(j, j);
    }
    return std::max((xx_ - zy) / *alpha_, xx_ / (*alpha_ + trace));
  }

  double move(double step) {
    if (!(xx_ > 0)) return 0.0;
    solve();
    for (std::int64_t j = 0; j < s_.m; ++j) s_.b[j] += step / *alpha_ * y_[j];
    return -step / *alpha_;
  }

  void alpha_changed() { solved_ = factored_ = false; }
  bool free() const { return false; }
  double move_free(double) { return 0.0; }

  double update(double r, double* columns, const Table<T>& table, std::int64_t active, const std::int64_t*,
                std::int64_t n) {
    s_.counts[kTouched] += n;
    const std::int64_t entries = s_.counts[kTouched], cost = s_.m * active;
    if (drowned_ || entries > kAmortise * cost || (cancels_ && 4 * entries > cost)) refresh(table, active);
    CounterNormal::fill(s_.seed, static_cast<std::uint64_t>(s_.counts[kRows]), s_.m, rho_.data());
    double lost = 0;
    for (std::int64_t j = 0; j < s_.m; ++j) {
      rho_[j] /= std::sqrt(static_cast<double>(s_.m));
      columns[j] += r * rho_[j];
      lost += rho_[j] * s_.b[j];
    }
    // SSᵀ + qρᵀ + ρqᵀ with q = Sĝ + ½‖ĝ‖²ρ, S still the old one
    for (std::int64_t j = 0; j < s_.m; ++j) y_[j] = r * z_[j] + 0.5 * r * r * xx_ * rho_[j];
    for (std::int64_t i = 0; i < s_.m; ++i)
      for (std::int64_t j = 0; j < s_.m; ++j) G_.at(i, j) += y_[i] * rho_[j] + rho_[i] * y_[j];
    for (std::int64_t j = 0; j < s_.m; ++j) z_[j] += rho_[j] * r * xx_;
    solved_ = factored_ = false;
    return -lost * r;
  }

  // Rows without a gradient count too, lest it depend on rounding which numbers the others draw.
  void finish(const Table<T>&, std::int64_t) { ++s_.counts[kRows]; }

 private:
  enum { kRows, kTouched };
  static constexpr double kCancels = 1000;       // w̄ᵀx and bᵀSx this much larger than scores: fold b into w̄
  static constexpr std::int64_t kAmortise = 16;  // a refresh costs this share of the work since the last

  void solve() {  // y = (αI + SSᵀ)⁻¹z
    if (solved_) return;
    const Small L{L_.data(), ld_};
    if (!factored_) {
      std::copy_n(s_.G, s_.m * ld_, L_.data());
      for (std::int64_t j = 0; j < s_.m; ++j) L.at(j, j) += *alpha_;
      cholesky(L, s_.m, *alpha_);
      factored_ = true;
    }
    std::copy(z_.begin(), z_.end(), y_.begin());
    solve_lower(L, s_.m, y_.data());
    for (std::int64_t j = s_.m - 1; j >= 0; --j) {  // y ← L⁻ᵀy
      for (std::int64_t i = j + 1; i < s_.m; ++i) y_[j] -= L.at(i, j) * y_[i];
      y_[j] /= L.at(j, j);
    }
    solved_ = true;
  }

  // w̄ ← w, b ← 0, and SSᵀ afresh from the table.
  void refresh(const Table<T>& table, std::int64_t active) {
    table.sort_active(active);
    std::vector<double> v(ld_, 0.0);
    std::fill(s_.G, s_.G + s_.m * ld_, 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      table.prefetch_active(i, active);
      T* row = table.row_of(table.active[i]);
      for (std::int64_t j = 0; j < s_.m; ++j) v[j] = static_cast<double>(row[Table<T>::kSketch + j]);
      T& w = row[Table<T>::kWeight];
      w = static_cast<T>(static_cast<double>(w) + dot(v.data(), s_.b, ld_));
      for (std::int64_t j = 0; j < s_.m; ++j) axpy(v[j], v.data(), G_.row(j), ld_);
    }
    std::fill(s_.b, s_.b + ld_, 0.0);
    s_.counts[kTouched] = 0;
  }

  ProjectionState s_;
  const double* alpha_;
  double scale_;
  std::int64_t ld_;
  Small G_;
  std::vector<double> L_, z_, y_, rho_;
  double xx_ = 0;
  bool solved_ = false, factored_ = false, cancels_ = false,
       drowned_ = false;  // see kCancels; the score is all rounding
};

}  // namespace skn
