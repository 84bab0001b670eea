// The leading eigenvalues and eigenvectors of a small positive semi-definite matrix, several vectors at a
// time.
//
// Householder tridiagonalisation, eigenvalues by Laguerre's method, vectors from twisted factorisations of
// T − λI, four in a register each. Close eigenvalues leave
// such vectors less than orthogonal: that is mended by a Cholesky factor of their Gram matrix, and where too
// little is left of them, SymmetricEigen does the work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"
#include "eigen/symmetric_eigen.hpp"

namespace skn {

class LeadingEigen {
 public:
  std::vector<double> values;   // the first k + 1, largest first
  std::vector<double> vectors;  // n rows of `width`: column i is the eigenvector of values[i], i < k
  std::int64_t width = 0;

  // The first k vectors. `ld` is a multiple of four; columns from n on are zero.
  void compute(const double* matrix, std::int64_t ld, std::int64_t n, std::int64_t k) {
    n_ = n;
    k_ = std::min(k, n);
    ld_ = padded4(n);
    width = padded4(std::max<std::int64_t>(k, 1));
    values.resize(std::min(k + 1, n));
    vectors.assign(n * width, 0.0);
    spare_.resize(n * width);
    double trace = 0;
    for (std::int64_t i = 0; i < n; ++i) trace += matrix[i * ld + i];
    if (n < kSmallest || !(trace > kTiny) || trace > 1 / kTiny) return fall_back(matrix, ld);
    A_.resize(n * ld_);
    const double scale = 1.0 / trace;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < ld_; ++j) A_[i * ld_ + j] = scale * matrix[i * ld + j];
    tridiagonalise();
    if (!find_values() || !find_vectors()) return fall_back(matrix, ld);
    transform_back();
    for (double& value : values) value *= trace;
  }

 private:
#ifdef __AVX__
  static constexpr std::int64_t kLanes = 4;
#else
  static constexpr std::int64_t kLanes = 2;
#endif
  using Vector [[gnu::vector_size(8 * kLanes), gnu::may_alias, gnu::aligned(8)]] = double;
  using Mask [[gnu::vector_size(8 * kLanes), gnu::may_alias]] = long long;

  static constexpr std::int64_t kSmallest = 3;
  static constexpr double kTiny = 1e-200;     // traces whose squares leave the range are not for this
  static constexpr double kCrooked = 1e-3;    // products of two vectors above which they are not trusted
  static constexpr double kStraight = 1e-14;  // and below which they need no mending

  static Vector& at(double* p) { return *reinterpret_cast<Vector*>(p); }
  static const Vector& at(const double* p) { return *reinterpret_cast<const Vector*>(p); }
  static Vector all(double value) { return Vector{} + value; }
  static Vector size(const Vector& v) { return v < 0 ? -v : v; }

  // T = HAH for reflections H_i = I − βvvᵀ, i = n − 1, …, 2, which act on the first i coordinates; v stays in
  // row i of A.
  void tridiagonalise() {
    const std::int64_t n = n_, ld = ld_;
    d_.resize(n);
    e_.resize(n);
    beta_.assign(n, 0.0);
    p_.assign(ld, 0.0);
    double *const A = A_.data(), *const p = p_.data();
    for (std::int64_t i = n - 1; i >= 2; --i) {
      double* const v = A + i * ld;
      d_[i] = v[i];
      for (std::int64_t j = i; j < ld; ++j) v[j] = 0.0;
      const double norm = dot(v, v, ld), last = v[i - 1];
      if (!(norm - last * last > kNothing * norm)) {
        e_[i - 1] = last;
        continue;
      }
      const double length = std::copysign(std::sqrt(norm), last), beta = 1.0 / (norm + last * length);
      e_[i - 1] = -length;
      v[i - 1] = last + length;
      beta_[i] = beta;
      // p = βAv, then A −= vwᵀ + wvᵀ with w = p − ½β(vᵀp)v. All columns of the rows before i take part: what
      // lies beyond i is not read again, and loops of one length are what a processor guesses right.
      with_constant(ld, [&](auto columns) {
        combine_rows(v, {A, ld}, i, p);
        for (std::int64_t j = i; j < columns; ++j) p[j] = 0.0;
        for (std::int64_t j = 0; j < columns; j += kLanes) at(p + j) *= beta;
        const double half = 0.5 * beta * dot(p, v, columns);
        for (std::int64_t j = 0; j < columns; j += kLanes) at(p + j) -= half * at(v + j);
        for (std::int64_t r = 0; r < i; ++r) {
          double* const a = A + r * columns;
          const double vr = v[r], pr = p[r];
          for (std::int64_t j = 0; j < columns; j += kLanes) at(a + j) -= vr * at(p + j) + pr * at(v + j);
        }
      });
    }
    d_[1] = A[ld + 1];
    e_[0] = A[ld];
    d_[0] = A[0];
  }

  // Largest first, all at a time. Signs of det(T_i − xI), i ≤ n, count the eigenvalues beyond x (Sturm), and
  // every x bounds all eigenvalues; once one is alone between its bounds, Laguerre's steps find it without
  // ever passing it. False if one takes too long.
  bool find_values() {
    const std::int64_t wanted = static_cast<std::int64_t>(values.size()), lanes = padded4(wanted);
    x_.resize(lanes);
    low_.assign(lanes, -kResolution);
    high_.assign(lanes, 1.0 + kResolution);
    beyond_low_.assign(lanes, static_cast<double>(n_));
    beyond_high_.assign(lanes, 0.0);
    beyond_.resize(lanes);
    step_.resize(lanes);
    doubt_.resize(lanes);
    guess();
    std::int64_t left = wanted;
    done_.assign(lanes, 0);
    std::fill(done_.begin() + wanted, done_.end(), 1);
    for (int iteration = 0; iteration < 16; ++iteration) {
      // By fours, however many a register holds, for results that do not depend on it.
      for (std::int64_t j = 0; j < lanes; j += kLanes)
        if (!settled(j / 4 * 4)) evaluate(j);
      for (std::int64_t j = 0; j < lanes; j += kLanes)
        if (!settled(j / 4 * 4)) tighten(j);
      for (std::int64_t j = 0; j < wanted; ++j) {
        if (done_[j]) continue;
        const double inside = beyond_low_[j] - beyond_high_[j], width = high_[j] - low_[j];
        const double place = static_cast<double>(j + 1);
        double next = x_[j] + step_[j];
        bool found = width < kResolution;
        if (inside == 1 && next > low_[j] - kResolution && next < high_[j] + kResolution &&
            (beyond_[j] == place ? step_[j] > 0 : beyond_[j] == place - 1 && step_[j] < 0)) {
          // Σ1/(λ − x) and Σ1/(λ − x)² are all but one term: others are far away, and this is the error.
          found |= doubt_[j] < 0.01 && std::abs(step_[j]) * doubt_[j] < kResolution;
        } else {  // evenly between the bounds, as measured by square roots: eigenvalues differ in scale
          const double share = (place - beyond_high_[j]) / (inside + 1.0);
          const double root = (1.0 - share) * std::sqrt(high_[j]) + share * std::sqrt(std::max(low_[j], 0.0));
          next = found ? 0.5 * (low_[j] + high_[j]) : root * root;
        }
        x_[j] = next;
        if (found) {
          done_[j] = 1;
          if (--left == 0) {
            std::copy_n(x_.begin(), wanted, values.begin());
            return true;
          }
        }
      }
    }
    return false;
  }

  bool settled(std::int64_t j) const { return (done_[j] & done_[j + 1] & done_[j + 2] & done_[j + 3]) != 0; }

  void guess() {  // between the diagonal's entries, which have the eigenvalues' scale at least
    order_.assign(d_.begin(), d_.end());
    std::sort(order_.begin(), order_.end(), std::greater<>());
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(x_.size()); ++j) {
      const double a = std::max(order_[std::min(j, n_ - 1)], kResolution);
      const double b = std::max(order_[std::min(j + 1, n_ - 1)], kResolution);
      x_[j] = 0.51 * a + 0.48 * b;
    }
  }

  // How many eigenvalues lie beyond x_j, and Laguerre's step to the nearest of them (or, if λ_j lies below
  // x_j, to the nearest on that side).
  void evaluate(std::int64_t j) {
    const double *d = d_.data(), *e = e_.data();
    const Vector x = at(&x_[j]), one = all(1.0);
    Vector p0 = one, p1 = d[0] - x, q0{}, q1 = -one, r0{}, r1{};  // det, its derivative, half of its second
    Mask negative = p1 < 0, below = negative;
    for (std::int64_t i = 1; i < n_; ++i) {
      const Vector shifted = d[i] - x;
      const double square = e[i - 1] * e[i - 1];
      const Vector r2 = shifted * r1 - q1 - square * r0, q2 = shifted * q1 - p1 - square * q0,
                   p2 = shifted * p1 - square * p0;
      const Mask sign = p2 < 0;
      below += sign ^ negative;
      negative = sign;
      r0 = r1, q0 = q1, p0 = p1, r1 = r2, q1 = q2, p1 = p2;
      if (i % 4 != 0) continue;
      const Vector larger = size(p1) > size(p0) ? size(p1) : size(p0);
      const Mask exponent = (Mask)larger & 0x7ff0000000000000LL;
      const auto scale = (Vector)(0x7fe0000000000000LL - exponent);  // to about one, by a power of two
      r0 *= scale, q0 *= scale, p0 *= scale, r1 *= scale, q1 *= scale, p1 *= scale;
    }
    const double n = static_cast<double>(n_);
    const Vector g = -q1 / p1, h = g * g - 2.0 * r1 / p1;
    Vector root = (n - 1.0) * (n * h - g * g);
    double* const beyond = &beyond_[j];
    double roots[kLanes];
    at(roots) = root < 0 ? Vector{} : root;
    for (std::int64_t c = 0; c < kLanes; ++c) roots[c] = std::sqrt(roots[c]);
    for (std::int64_t c = 0; c < kLanes; ++c) beyond[c] = n + static_cast<double>(below[c]);  // true is −1
    Vector place;
    for (std::int64_t c = 0; c < kLanes; ++c) place[c] = static_cast<double>(j + c + 1);
    root = at(beyond) >= place ? at(roots) : -at(roots);
    const Vector step = n / (g + root);
    at(&step_[j]) = step;
    const Vector first = g * step - 1.0, second = size(h * step * step - 1.0);
    at(&doubt_[j]) = first * first > second ? first * first : second;
  }

  // Bounds of four eigenvalues by all x.
  void tighten(std::int64_t j) {
    Vector low = at(&low_[j]), high = at(&high_[j]);
    Vector beyond_low = at(&beyond_low_[j]), beyond_high = at(&beyond_high_[j]);
    Vector place;
    for (std::int64_t c = 0; c < kLanes; ++c) place[c] = static_cast<double>(j + c + 1);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x_.size()); ++i) {
      const Vector x = all(x_[i]), beyond = all(beyond_[i]);
      const Mask under = (beyond >= place) & (x > low), over = (beyond < place) & (x < high);
      low = under ? x : low;
      beyond_low = under ? beyond : beyond_low;
      high = over ? x : high;
      beyond_high = over ? beyond : beyond_high;
    }
    at(&low_[j]) = low, at(&high_[j]) = high;
    at(&beyond_low_[j]) = beyond_low, at(&beyond_high_[j]) = beyond_high;
  }

  bool find_vectors() {
    up_.resize(kLanes * n_);
    down_.resize(kLanes * n_);
    gamma_.resize(kLanes * n_);
    const std::int64_t wanted = static_cast<std::int64_t>(values.size());
    for (std::int64_t first = 0; first < wanted; first += kLanes) {
      Vector lambda;
      for (std::int64_t c = 0; c < kLanes; ++c) lambda[c] = values[std::min(first + c, wanted - 1)];
      Vector better = lambda;
      for (int attempt = 0;; ++attempt) {
        // Rayleigh's quotient; its residual bounds the error of both. What is settled stays, so that results
        // do not depend on how many share a register.
        const Vector shift = twisted(lambda, first < k_ ? &vectors[first] : spare_.data());
        better = lambda + shift;
        bool settled = true;
        for (std::int64_t c = 0; c < kLanes; ++c) {
          if (std::abs(shift[c]) < kSettled) continue;
          lambda[c] = better[c];
          settled = false;
        }
        if (settled) break;
        if (attempt == 2) return false;
      }
      for (std::int64_t c = 0; c < kLanes && first + c < wanted; ++c) {
        const std::int64_t j = first + c;
        if (!(better[c] > low_[j] - kSettled && better[c] < high_[j] + kSettled)) return false;
        values[j] = better[c];
        if (j >= k_ && first < k_)
          for (std::int64_t i = 0; i < n_; ++i) vectors[i * width + j] = 0.0;
      }
    }
    return orthonormalise();
  }

  // T − λI = LDLᵀ from above and UDUᵀ from below, joined where the pivot is least: the vector is that row of
  // the inverse, up to its length. Returns how far Rayleigh's quotient is from λ.
  Vector twisted(const Vector& lambda, double* out) {
    const std::int64_t n = n_;
    const double *d = d_.data(), *e = e_.data();
    double *up = up_.data(), *down = down_.data(), *pivots = gamma_.data();
    // Both ways at once: each pivot waits for a division of the one before it.
    Vector pivot = d[0] - lambda, back = d[n - 1] - lambda;
    at(pivots) = pivot;
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      const std::int64_t k = n - 2 - i;
      const Vector ratio = e[i] / guarded(pivot), other = e[k] / guarded(back);
      at(up + kLanes * i) = ratio;
      at(down + kLanes * (k + 1)) = other;
      pivot = (d[i + 1] - lambda) - e[i] * ratio;
      back = (d[k] - lambda) - e[k] * other;
      at(pivots + kLanes * (i + 1)) = pivot;
    }
    Vector gamma = pivot, twist = all(static_cast<double>(n - 1));
    for (std::int64_t i = n - 2; i >= 0; --i) {
      const Vector here = at(pivots + kLanes * i) - e[i] * at(down + kLanes * (i + 1));
      const Mask less = size(here) < size(gamma);
      twist = less ? all(static_cast<double>(i)) : twist;
      gamma = less ? here : gamma;
    }
    Vector z = twist == 0 ? all(1.0) : Vector{}, norm = z;
    at(out) = z;
    for (std::int64_t i = 1; i < n; ++i) {
      const Vector here = all(static_cast<double>(i)), carried = -at(down + kLanes * i) * z;
      z = twist < here ? carried : (twist == here ? all(1.0) : Vector{});
      norm += z * z;
      at(out + i * width) = z;
    }
    z = Vector{};
    for (std::int64_t i = n - 2; i >= 0; --i) {
      const Vector next = all(static_cast<double>(i + 1)), start = twist == next ? all(1.0) : z;
      z = twist >= next ? -at(up + kLanes * i) * start : Vector{};
      norm += z * z;
      at(out + i * width) += z;
    }
    Vector scale;
    for (std::int64_t c = 0; c < kLanes; ++c) scale[c] = 1.0 / std::sqrt(norm[c]);
    for (std::int64_t i = 0; i < n; ++i) at(out + i * width) *= scale;
    return gamma / norm;
  }

  static Vector guarded(const Vector& pivot) { return size(pivot) < all(1e-100) ? all(1e-100) : pivot; }

  bool orthonormalise() {
    gram_.assign(k_ * width, 0.0);
    const Small gram{gram_.data(), width};
    for (std::int64_t r = 0; r < n_; ++r) {
      const double* v = &vectors[r * width];
      for (std::int64_t i = 0; i < k_; ++i)
        for (std::int64_t j = 0; j <= i; j += kLanes) at(gram.row(i) + j) += v[i] * at(v + j);
    }
    double crooked = 0;
    for (std::int64_t i = 0; i < k_; ++i) {
      if (!(std::abs(gram.at(i, i) - 1.0) < kCrooked)) return false;  // not finite
      for (std::int64_t j = 0; j < i; ++j) crooked = std::max(crooked, std::abs(gram.at(i, j)));
    }
    if (!(crooked < kCrooked)) return false;
    if (crooked < kStraight) return true;
    cholesky(gram, k_);
    rows_.resize(static_cast<std::size_t>(4 * k_));
    for (std::int64_t r = 0; r < n_; r += 4) solve_four(gram, r, std::min<std::int64_t>(4, n_ - r));
    return true;
  }

  // Rows r, …, r + count − 1 ← L⁻¹ times them, side by side.
  void solve_four(const Small& L, std::int64_t r, std::int64_t count) {
    double* const x = rows_.data();
    for (std::int64_t c = 0; c < 4; ++c) {
      const double* row = &vectors[(r + std::min(c, count - 1)) * width];
      for (std::int64_t j = 0; j < k_; ++j) x[4 * j + c] = row[j];
    }
    for (std::int64_t j = 0; j < k_; ++j) {
      Four sum = four(x + 4 * j);
      for (std::int64_t k = 0; k < j; ++k) sum -= L.at(j, k) * four(x + 4 * k);
      four(x + 4 * j) = L.at(j, j) > 0 ? sum / L.at(j, j) : Four{};
    }
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t j = 0; j < k_; ++j) vectors[(r + c) * width + j] = x[4 * j + c];
  }

  void transform_back() {
    along_.resize(width);
    double* const along = along_.data();
    for (std::int64_t i = 2; i < n_; ++i) {
      if (beta_[i] == 0) continue;
      const double *const v = &A_[i * ld_], beta = beta_[i];
      with_constant(width, [&](auto columns) {
        combine_rows(v, {vectors.data(), width}, i, along);
        for (std::int64_t j = 0; j < columns; ++j) along[j] *= beta;
        for (std::int64_t r = 0; r < i; ++r) {
          double* const row = vectors.data() + r * columns;
          for (std::int64_t j = 0; j < columns; j += kLanes) at(row + j) -= v[r] * at(along + j);
        }
      });
    }
  }

  void fall_back(const double* matrix, std::int64_t ld) {
    whole_.compute(matrix, ld, n_);
    std::copy_n(whole_.values.begin(), values.size(), values.begin());
    for (std::int64_t i = 0; i < k_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) vectors[j * width + i] = whole_.vectors[i * n_ + j];
  }

  static constexpr double kNothing = 1e-32;     // share of a row that is zero already
  static constexpr double kResolution = 2e-16;  // of eigenvalues, relative to the trace
  static constexpr double kSettled = 1e-14;  // a correction of an eigenvalue that leaves its vector as it is

  SymmetricEigen whole_;
  std::int64_t n_ = 0, k_ = 0, ld_ = 0;
  std::vector<double> A_, d_, e_, beta_, p_, along_, up_, down_, gamma_, gram_, rows_, order_, spare_;
  std::vector<double> x_, low_, high_, beyond_low_, beyond_high_, beyond_, step_, doubt_;
  std::vector<char> done_;
};

}  // namespace skn
