// x = Vᵀx̂ + u, feature by feature, with V = FZ and Z in a feature table. ‖x‖² − ‖x̂‖² knows ‖u‖² to ε‖x‖²
// alone, and x/α − Vᵀx̂/α is u/α plus rounding of the size of x/α; here u keeps its digits however short it
// is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"

namespace skn {

template <class T>
class Split {
 public:
  explicit Split(std::int64_t ld) : ld_(ld), xhat_(ld), f_(ld), left_(ld), sum_(ld) {}

  // A row whose features are among the active ones.
  void read(const Table<T>& table, std::int64_t active, const std::int64_t* index, const T* x,
            std::int64_t n) {
    table.sort_active(active);
    features_.assign(table.active, table.active + active);
    x_.assign(features_.size(), 0.0);
    std::int64_t k = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      while (k < n && index[k] < features_[i]) ++k;
      if (k < n && index[k] == features_[i]) x_[i] = static_cast<double>(x[k]);
    }
  }

  // Splits it. x̂ comes in roughly, and is mended, since the rounding of u along V is; `pending` is what Z is
  // about to gain per unit of x. Every pass leaves a share of what is along V: that by which V is not
  // orthonormal. Returns whether that is little: else ‖x̂‖² + ‖u‖² is not ‖x‖², and x̂ is left as it came. A u
  // that is rounding alone becomes zero: a small α would make much of it.
  bool divide(const Table<T>& table, const Small& F, std::int64_t rank, const double* pending, double* xhat) {
    Z_.assign(x_.size() * static_cast<std::size_t>(ld_), 0.0);
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const T* z = table.row_of(features_[i]) + Table<T>::kSketch;
      for (std::int64_t j = 0; j < rank; ++j)
        Z(i)[j] = static_cast<double>(z[j]) + (pending == nullptr ? 0.0 : pending[j] * x_[i]);
    }
    u_ = x_;
    std::copy_n(xhat, ld_, xhat_.data());
    left_ = xhat_;
    for (int pass = 0; pass < kPasses; ++pass) {
      std::fill(f_.begin(), f_.end(), 0.0);  // Fᵀ of what u is to lose
      for (std::int64_t j = 0; j < rank; ++j) axpy(left_[j], F.row(j), f_.data(), ld_);
      std::fill(sum_.begin(), sum_.end(), 0.0);
      for (std::size_t i = 0; i < x_.size(); ++i) {
        u_[i] -= dot(Z(i), f_.data(), ld_);
        axpy(u_[i], Z(i), sum_.data(), ld_);
      }
      for (std::int64_t j = 0; j < rank; ++j) xhat_[j] += left_[j] = dot(F.row(j), sum_.data(), ld_);
    }
    const double whole = square(x_), parts = square(u_) + dot(xhat_.data(), xhat_.data(), ld_);
    if (!(std::abs(parts - whole) < kCrooked * whole)) return false;
    std::copy_n(xhat_.data(), rank, xhat);
    if (square(u_) < kShort * whole && !(square(u_) > noise(F, rank))) std::fill(u_.begin(), u_.end(), 0.0);
    return true;
  }

  double square() const { return square(u_); }  // ‖u‖²

  void add(const Table<T>& table, std::int64_t column, double step) const {  // column += step·u
    for (std::size_t i = 0; i < u_.size(); ++i) {
      T& w = table.row_of(features_[i])[column];
      w = static_cast<T>(static_cast<double>(w) + step * u_[i]);
    }
  }

 private:
  static constexpr int kPasses = 3;
  static constexpr double kCrooked = 1e-3;
  static constexpr double kShort = 1e-8;  // share of ‖x‖² that rounding may reach
  static constexpr double kNothing = 64 * std::numeric_limits<T>::epsilon();

  // ‖u‖² below which u is rounding: that of feature i is a share of the terms of u_i, and what of it lies
  // along V has been removed (FewFeatures::noise).
  double noise(const Small& F, std::int64_t rank) {
    double sum = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      double terms = std::abs(x_[i]), outside = 1.0;
      for (std::int64_t j = 0; j < rank; ++j) {
        const double v = dot(F.row(j), Z(i), ld_);
        terms += std::abs(v * xhat_[j]);
        outside -= v * v;
      }
      sum += terms * terms * std::max(outside, kNothing);
    }
    return kNothing * kNothing * sum;
  }

  static double square(const std::vector<double>& v) {
    double sum = 0;
    for (const double value : v) sum += value * value;
    return sum;
  }

  double* Z(std::size_t i) { return Z_.data() + i * static_cast<std::size_t>(ld_); }

  std::int64_t ld_;
  std::vector<std::int64_t> features_;
  std::vector<double> x_, u_, Z_, xhat_, f_, left_, sum_;
};

}  // namespace skn
