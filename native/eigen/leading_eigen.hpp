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
#include <type_traits>
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
  using Mask [[gnu::vector_size(8 * kLanes), gnu::may_alias, gnu::aligned(8)]] = long long;

  static constexpr std::int64_t kSmallest = 3;
  static constexpr double kTiny = 1e-200;     // traces whose squares leave the range are not for this
  static constexpr double kCrooked = 1e-3;    // products of two vectors above which they are not trusted
  static constexpr double kStraight = 1e-14;  // and below which they need no mending

  static Vector& at(double* p) { return *reinterpret_cast<Vector*>(p); }
  static const Vector& at(const double* p) { return *reinterpret_cast<const Vector*>(p); }
  static Vector all(double value) { return Vector{} + value; }
  static Vector size(const Vector& v) { return (Vector)((Mask)v & 0x7fffffffffffffffLL); }
  static Vector counted(const Mask& those) { return (Vector)(those & (Mask)all(1.0)); }  // 1 for each

  // T = HAH for reflections H_i = I − βvvᵀ, i = n − 1, …, 2, which act on the first i coordinates; v stays in
  // row i of A.
  void tridiagonalise() {
    const std::int64_t n = n_, ld = ld_;
    d_.resize(n);
    e_.resize(n);
    beta_.assign(n, 0.0);
    p_.assign(ld, 0.0);
    const double* const A = A_.data();
    for (std::int64_t i = n - 1; i >= 2; --i) {
      with_constant(padded4(i), [&](auto columns) {
        if constexpr (std::is_integral_v<decltype(columns)>) {
          reflect(i);
        } else {
          reflect<decltype(columns)::value>(i);
        }
      });
    }
    d_[1] = A[ld + 1];
    e_[0] = A[ld];
    d_[0] = A[0];
  }

  // A ← HAH with H = H_i, of which v takes the place of row i. p = βAv, then A −= vwᵀ + wvᵀ with
  // w = p − ½β(vᵀp)v.
  void reflect(std::int64_t i) {
    const std::int64_t ld = ld_;
    double *const A = A_.data(), *const v = A + i * ld, *const p = p_.data();
    d_[i] = v[i];
    const double last = v[i - 1];
    for (std::int64_t j = i - 1; j < ld; ++j) v[j] = 0.0;
    // Not as ‖row‖² less its last square: that loses all that is shorter than √ε of it.
    const double others = dot(v, v, ld), norm = others + last * last;
    e_[i - 1] = last;
    if (!(others > kNothing * norm)) return;
    const double length = std::copysign(std::sqrt(norm), last), beta = 1.0 / (norm + last * length);
    e_[i - 1] = -length;
    v[i - 1] = last + length;
    beta_[i] = beta;
    combine_rows(v, {A, ld}, i, p);
    for (std::int64_t j = i; j < ld; ++j) p[j] = 0.0;
    for (std::int64_t j = 0; j < ld; j += kLanes) at(p + j) *= beta;
    const double half = 0.5 * beta * dot(p, v, ld);
    for (std::int64_t j = 0; j < ld; j += kLanes) at(p + j) -= half * at(v + j);
    for (std::int64_t r = 0; r < i; ++r) {
      double* const a = A + r * ld;
      const double vr = v[r], pr = p[r];
      for (std::int64_t j = 0; j < ld; j += kLanes) at(a + j) -= vr * at(p + j) + pr * at(v + j);
    }
  }

  // The same for i ≤ C, with vectors in registers: what has just been written number by number would be
  // waited for.
  template <int C>
  void reflect(std::int64_t i) {
    constexpr int kParts = C / kLanes;
    const std::int64_t ld = ld_;
    double *const A = A_.data(), *const row = A + i * ld, *const p = p_.data();
    const double end = static_cast<double>(i), last = row[i - 1];
    d_[i] = row[i];
    Vector v[kParts], w[kParts] = {};
    for (int b = 0; b < kParts; ++b) v[b] = places(b * kLanes) < end ? at(row + b * kLanes) : Vector{};
    const double others = product(v, v), norm = others + last * last;
    e_[i - 1] = last;
    if (!(others > kNothing * norm)) return;
    const double length = std::copysign(std::sqrt(norm), last), beta = 1.0 / (norm + last * length);
    e_[i - 1] = -length;
    beta_[i] = beta;
    for (int b = 0; b < kParts; ++b) {
      v[b] = places(b * kLanes) == end ? all(last + length) : v[b];
      at(row + b * kLanes) = v[b];
    }
    for (std::int64_t r = 0; r < i; ++r)
      for (int b = 0; b < kParts; ++b) w[b] += row[r] * at(A + r * ld + b * kLanes);
    for (int b = 0; b < kParts; ++b) w[b] = beta * (places(b * kLanes) <= end ? w[b] : Vector{});
    const double half = 0.5 * beta * product(w, v);
    for (int b = 0; b < kParts; ++b) at(p + b * kLanes) = w[b] -= half * v[b];
    for (std::int64_t r = 0; r < i; ++r)
      for (int b = 0; b < kParts; ++b) at(A + r * ld + b * kLanes) -= row[r] * w[b] + p[r] * v[b];
  }

  // Four sums, however many a register holds, as `dot` has them.
  template <int kParts>
  static double product(const Vector (&a)[kParts], const Vector (&b)[kParts]) {
    double sums[4];
    for (int j = 0; j < 4; j += kLanes) {
      Vector sum{};
      for (int k = j / kLanes; k < kParts; k += 4 / kLanes) sum += a[k] * b[k];
      at(sums + j) = sum;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
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
    done_.assign(lanes, 0);
    std::fill(done_.begin() + wanted, done_.end(), -1);
    for (int iteration = 0; iteration < 16; ++iteration) {
      // By fours, however many a register holds, for results that do not depend on it.
      for (std::int64_t j = 0; j < lanes; j += kLanes)
        if (!settled(j / 4 * 4)) evaluate(j);
      for (std::int64_t j = 0; j < lanes; j += kLanes)
        if (!settled(j / 4 * 4)) tighten(j);
      for (std::int64_t j = 0; j < lanes; j += kLanes)
        if (!settled(j / 4 * 4)) advance(j);
      bool all_settled = true;
      for (std::int64_t j = 0; j < lanes; j += 4) all_settled &= settled(j);
      if (!all_settled) continue;
      std::copy_n(x_.begin(), wanted, values.begin());
      return true;
    }
    return false;
  }

  // The next x of those that are not done. Without branches: which way each of them goes cannot be foretold.
  void advance(std::int64_t j) {
    const Vector x = at(&x_[j]), step = at(&step_[j]), doubt = at(&doubt_[j]), low = at(&low_[j]);
    const Vector high = at(&high_[j]), beyond = at(&beyond_[j]), beyond_high = at(&beyond_high_[j]);
    const Vector inside = at(&beyond_low_[j]) - beyond_high, place = places(j), ahead = x + step;
    const Mask narrow = high - low < kResolution;
    const Mask upwards = beyond == place, downwards = beyond == place - 1.0;
    const Mask towards = (upwards & (step > 0)) | (downwards & (step < 0));
    const Mask alone = (inside == 1.0) & (ahead > low - kResolution) & (ahead < high + kResolution) & towards;
    // Σ1/(λ − x) and Σ1/(λ − x)² are all but one term: others are far away, and this is the error.
    const Mask close = alone & (doubt < 0.01) & (size(step) * doubt < kResolution);
    // Else evenly between the bounds, as measured by square roots: eigenvalues differ in scale.
    const Vector share = (place - beyond_high) / (inside + 1.0);
    const Vector root = (1.0 - share) * roots(high) + share * roots(low < 0 ? Vector{} : low);
    const Vector between = narrow ? 0.5 * (low + high) : root * root;
    Mask& done = *reinterpret_cast<Mask*>(&done_[j]);
    at(&x_[j]) = done ? x : alone ? ahead : between;
    done |= narrow | close;
  }

  static Vector places(std::int64_t j) {  // from 1 on
    Vector place;
    for (std::int64_t c = 0; c < kLanes; ++c) place[c] = static_cast<double>(j + c + 1);
    return place;
  }

  static Vector roots(const Vector& squares) {
    double roots[kLanes];
    at(roots) = squares;
    for (std::int64_t c = 0; c < kLanes; ++c) roots[c] = std::sqrt(roots[c]);
    return at(roots);
  }

  bool settled(std::int64_t j) const { return (done_[j] & done_[j + 1] & done_[j + 2] & done_[j + 3]) != 0; }

  void guess() {  // between the diagonal's entries, which have the eigenvalues' scale at least
    order_.assign(n_, 0.0);
    for (std::int64_t i = 0; i < n_; ++i) {  // its place is the number of those before it
      std::int64_t place = 0;
      for (std::int64_t k = 0; k < i; ++k) place += d_[k] >= d_[i];
      for (std::int64_t k = i + 1; k < n_; ++k) place += d_[k] > d_[i];
      order_[place] = d_[i];
    }
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
    Mask negative = p1 < 0;
    Vector below = counted(negative);
    for (std::int64_t i = 1; i < n_; ++i) {
      const Vector shifted = d[i] - x;
      const double square = e[i - 1] * e[i - 1];
      const Vector r2 = shifted * r1 - q1 - square * r0, q2 = shifted * q1 - p1 - square * q0,
                   p2 = shifted * p1 - square * p0;
      const Mask sign = p2 < 0;
      below += counted(sign ^ negative);
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
    const Vector beyond = n - below;
    root = roots(root < 0 ? Vector{} : root);
    root = beyond >= places(j) ? root : -root;
    at(&beyond_[j]) = beyond;
    const Vector step = n / (g + root);
    at(&step_[j]) = step;
    const Vector first = g * step - 1.0, second = size(h * step * step - 1.0);
    at(&doubt_[j]) = first * first > second ? first * first : second;
  }

  // Bounds of four eigenvalues by all x.
  void tighten(std::int64_t j) {
    Vector low = at(&low_[j]), high = at(&high_[j]);
    Vector beyond_low = at(&beyond_low_[j]), beyond_high = at(&beyond_high_[j]);
    const Vector place = places(j);
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
    const std::int64_t wanted = static_cast<std::int64_t>(values.size());
    std::int64_t first = 0;
    bool found = true;
    for (; found && first + 2 * kLanes < wanted; first += 3 * kLanes) found = find_vectors<3>(first);
    if (found && first + kLanes < wanted) {
      found = find_vectors<2>(first);
    } else if (found && first < wanted) {
      found = find_vectors<1>(first);
    }
    return found && orthonormalise();
  }

  // Of G registers of eigenvalues, from number `first` on.
  template <int G>
  bool find_vectors(std::int64_t first) {
    const std::int64_t wanted = static_cast<std::int64_t>(values.size());
    Vector lambda[G], shift[G];
    double* out[G];
    for (int g = 0; g < G; ++g) {
      const std::int64_t start = first + g * kLanes;
      for (std::int64_t c = 0; c < kLanes; ++c) lambda[g][c] = values[std::min(start + c, wanted - 1)];
      out[g] = start < k_ ? &vectors[start] : spare_.data();
    }
    for (int attempt = 0;; ++attempt) {
      // Rayleigh's quotient; its residual bounds the error of both. What is settled stays, so that results do
      // not depend on how many share a register.
      twisted<G>(lambda, out, shift);
      bool settled = true;
      for (int g = 0; g < G; ++g)
        for (std::int64_t c = 0; c < kLanes; ++c) settled &= std::abs(shift[g][c]) < kSettled;
      if (settled) break;
      if (attempt == 2) return false;
      for (int g = 0; g < G; ++g) lambda[g] = size(shift[g]) < kSettled ? lambda[g] : lambda[g] + shift[g];
    }
    for (int g = 0; g < G; ++g)
      for (std::int64_t c = 0; c < kLanes; ++c) {
        const std::int64_t j = first + g * kLanes + c;
        if (j >= wanted) break;
        const double better = lambda[g][c] + shift[g][c];
        if (!(better > low_[j] - kSettled && better < high_[j] + kSettled)) return false;
        values[j] = better;
        if (j >= k_ && j - c < k_)
          for (std::int64_t i = 0; i < n_; ++i) vectors[i * width + j] = 0.0;
      }
    return true;
  }

  // T − λI = LDLᵀ from above and UDUᵀ from below, joined where the pivot is least: the vector is that row of
  // the inverse, up to its length. Finds how far Rayleigh's quotient is from λ. Several at a time, since
  // every pivot waits for a division of the one before it.
  template <int G>
  void twisted(const Vector (&lambda)[G], double* const (&out)[G], Vector (&shift)[G]) {
    constexpr std::int64_t kStep = G * kLanes;
    const std::int64_t n = n_;
    up_.resize(kStep * n);
    down_.resize(kStep * n);
    gamma_.resize(kStep * n);
    const double *d = d_.data(), *e = e_.data();
    double *up = up_.data(), *down = down_.data(), *pivots = gamma_.data();
    Vector pivot[G], back[G], gamma[G], twist[G], z[G], norm[G];
    for (int g = 0; g < G; ++g) {
      pivot[g] = d[0] - lambda[g], back[g] = d[n - 1] - lambda[g];
      at(pivots + g * kLanes) = pivot[g];
    }
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      const std::int64_t k = n - 2 - i;
      for (int g = 0; g < G; ++g) {
        const Vector ratio = e[i] / guarded(pivot[g]), other = e[k] / guarded(back[g]);
        at(up + kStep * i + g * kLanes) = ratio;
        at(down + kStep * (k + 1) + g * kLanes) = other;
        pivot[g] = (d[i + 1] - lambda[g]) - e[i] * ratio;
        back[g] = (d[k] - lambda[g]) - e[k] * other;
        at(pivots + kStep * (i + 1) + g * kLanes) = pivot[g];
      }
    }
    for (int g = 0; g < G; ++g) gamma[g] = pivot[g], twist[g] = all(static_cast<double>(n - 1));
    for (std::int64_t i = n - 2; i >= 0; --i)
      for (int g = 0; g < G; ++g) {
        const Vector ratio = at(down + kStep * (i + 1) + g * kLanes);
        const Vector here = at(pivots + kStep * i + g * kLanes) - e[i] * ratio;
        const Mask less = size(here) < size(gamma[g]);
        twist[g] = less ? all(static_cast<double>(i)) : twist[g];
        gamma[g] = less ? here : gamma[g];
      }
    for (int g = 0; g < G; ++g) at(out[g]) = z[g] = norm[g] = twist[g] == 0 ? all(1.0) : Vector{};
    for (std::int64_t i = 1; i < n; ++i)
      for (int g = 0; g < G; ++g) {
        const Vector here = all(static_cast<double>(i)), carried = -at(down + kStep * i + g * kLanes) * z[g];
        z[g] = twist[g] < here ? carried : (twist[g] == here ? all(1.0) : Vector{});
        norm[g] += z[g] * z[g];
        at(out[g] + i * width) = z[g];
      }
    for (int g = 0; g < G; ++g) z[g] = Vector{};
    for (std::int64_t i = n - 2; i >= 0; --i)
      for (int g = 0; g < G; ++g) {
        const Vector next = all(static_cast<double>(i + 1)), start = twist[g] == next ? all(1.0) : z[g];
        z[g] = twist[g] >= next ? -at(up + kStep * i + g * kLanes) * start : Vector{};
        norm[g] += z[g] * z[g];
        at(out[g] + i * width) += z[g];
      }
    for (int g = 0; g < G; ++g) {
      shift[g] = gamma[g] / norm[g];
      const Vector scale = 1.0 / roots(norm[g]);
      for (std::int64_t i = 0; i < n; ++i) at(out[g] + i * width) *= scale;
    }
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
  std::vector<long long> done_;  // −1 if so
};

}  // namespace skn
