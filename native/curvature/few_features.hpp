// Frequent Directions with all vectors written out, all numbers in double: while there are few features, and
// where rows ask for digits that sparse time does not have.
//
// What sparse time costs in digits is not needed here. A direction of the basis W that a gradient opens is
// its part outside the span of the others, as a vector, made orthogonal twice: it is orthogonal to rounding
// however little of the gradient it is (Kahan's "twice is enough", Parlett 1980, §6.9). Other forms would
// divide the rounding of the gradient by the length of that part. And the metric is kept as a factor, not as
// a square:
//
//   S = RW, R = [diag(√D); Y] with the gradients' coordinates Y;   αI + RᵀR = UᵀU, U triangular
//
// U gains a gradient by rotations, whose rounding is a share of each column's own length; x̂ᵀ(UᵀU)⁻¹x̂ =
// ‖U⁻ᵀx̂‖² has no differences. A sum of squares would round by a share of the longest gradient's square, and
// lose what lies below it: features whose scales differ by 10⁸ have curvatures that differ by 10¹⁶.
//
// The weights are w̄ + Wᵀc. Parts of a step outside of the span are vectors, too, and go to w̄ at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/shrink_rule.hpp"
#include "eigen/jacobi_svd.hpp"
#include "eigen/leading_eigen.hpp"

namespace skn {

struct FewState {
  ShrinkRule rule;
  std::int64_t m, every;  // every: rounds of an epoch
  std::int64_t* counts;   // see FrequentCounts
  double* shrunk;         // Σρ
  double* lost;           // what rounding, and what was left out, may have added to the error
  double* asked;          // 1, or 2 if a row of this epoch asked for vectors that are written out
  double* turns;          // of W, since it was made orthonormal
  double small_alpha;     // α as a share of ‖x‖², below which a row asks for them
  double *R, *U;          // (m − 1 + every) × ld each
  double* c;              // ld
};

// W is in the sketch columns of a table of its own: column j of feature i is W_ji.
class FewFeatures : private FrequentCounts {
 public:
  static constexpr bool kLazy = false;

  FewFeatures(const FewState& s, const Table<double>& table, const std::int64_t* active, double* alpha)
      : s_(s),
        table_(table),
        active_(active),
        alpha_(alpha),
        ld_(padded4(s.m - 1 + s.every)),
        xhat_(ld_),
        y_(ld_),
        z_(ld_),
        inverse_(ld_),
        h_(table.features) {}

  // So many features are few.
  static std::int64_t few(std::int64_t m, std::int64_t every) {
    return std::max<std::int64_t>(m - 1 + every, 64);
  }
  // So many may have their vectors written out by a row of n entries: it costs as much for each feature as
  // sparse time does for each entry.
  static std::int64_t most(std::int64_t m, std::int64_t every, std::int64_t n) {
    return std::max(few(m, every), std::min(kDense * std::min(n, kMost), kMost));
  }
  static std::int64_t columns(std::int64_t m, std::int64_t every) { return padded4(m - 1 + every); }

  void at(const std::int64_t* index, std::int64_t n) { index_ = index, n_ = n; }

  double begin(const double* columns, double xx, const double* x) {
    x_ = x;
    xx_ = xx;
    std::fill(xhat_.begin(), xhat_.end(), 0.0);
    std::copy_n(columns, size(), xhat_.begin());
    split_ = solved_ = false;
    return dot(s_.c, xhat_.data(), ld_);
  }

  double magnitude(const double*) const {
    double sum = 0;
    for (std::int64_t j = 0; j < size(); ++j) sum += std::abs(s_.c[j] * xhat_[j]);
    return sum;
  }

  void alpha_changed() {
    std::fill_n(s_.U, (s_.m - 1 + s_.every) * ld_, 0.0);
    for (std::int64_t k = 0; k < size(); ++k) U(k)[k] = std::sqrt(*alpha_);
    for (std::int64_t i = 0; i < rank() + s_.counts[kFilled]; ++i) {
      std::copy_n(R(i), ld_, y_.begin());
      rotate(s_.U, y_.data());
    }
    solved_ = false;
  }

  // α = 0 and x has a part outside the range of A, where moving costs nothing (SON Lemma 2).
  bool free() {
    split();
    return *alpha_ == 0 && rest_ > 0;
  }

  double quadratic() {  // xᵀA⁻¹x
    solve();
    return quadratic_ + (*alpha_ > 0 ? rest_ / *alpha_ : 0.0);
  }

  double move(double step) {
    solve();
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] -= step * y_[j];
    if (*alpha_ > 0 && rest_ > 0) add_outside(-step / *alpha_);
    return 0.0;
  }

  double move_free(double excess) {
    add_outside(-excess / rest_);
    return 0.0;
  }

  double update(double r, double*, const Table<double>&, std::int64_t, const std::int64_t*, std::int64_t) {
    if (vanishes(r)) {
      leave_out(r);
      return 0.0;
    }
    split();
    if (rest_ > 0) open();
    double* const row = R(rank() + s_.counts[kFilled]++);
    for (std::int64_t j = 0; j < ld_; ++j) row[j] = y_[j] = r * xhat_[j];
    rotate(s_.U, y_.data());
    *s_.lost += r * r * (kLost * xx_ + 2 * std::sqrt(xx_) * left_out_);
    solved_ = false;
    return 0.0;
  }

  void leave_out(double r) { *s_.lost += r * r * xx_; }

  // Epochs are of m rounds, see Frequent.
  void end_round(bool) {
    s_.counts[kMet] += n_;
    // A row without a gradient was not split, but tells as much about the rows to come.
    if (!split_) note(xx_ - dot(xhat_.data(), xhat_.data(), ld_));
    if (++s_.counts[kRound] < s_.every) return;
    s_.counts[kRound] = 0;
    if (s_.counts[kFilled] > 0) shrink();
    const bool affordable = kDense * s_.counts[kMet] >= features() * s_.every;
    leaves_ = features() > few(s_.m, s_.every) && (*s_.asked == 1.0 || !affordable);
    s_.counts[kMet] = 0;
    *s_.asked = 1.0;
  }

  // Does sparse time do for the next rows? Asked after every row.
  bool leaves() { return std::exchange(leaves_, false); }

  // The same for a row of which `rest` of ‖x‖² = xx is outside of the span.
  static bool asks(double rest, double xx, double alpha, double small_alpha) {
    return rest < kDoubtful * xx || alpha < small_alpha * xx;
  }

  void finish(const Table<double>&, std::int64_t) {}

  // Takes over from Frequent: the rows of S, one after the other, features in the order of the table.
  void start_from(const std::vector<double>& S, std::int64_t rows, double largest) {
    const std::int64_t d = features();
    d_ = d;
    s_.counts[kRank] = s_.counts[kOpened] = s_.counts[kFilled] = s_.counts[kMet] = 0;
    *s_.asked = 1.0;
    *s_.turns = 0.0;
    std::fill_n(s_.R, (s_.m - 1 + s_.every) * ld_, 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::copy_n(S.data() + i * d, d, h_.begin());
      std::fill(xhat_.begin(), xhat_.end(), 0.0);
      const double whole = std::inner_product(h_.begin(), h_.begin() + d, h_.begin(), 0.0);
      for (int pass = 0; pass < 2; ++pass) {
        std::fill(z_.begin(), z_.end(), 0.0);
        for (std::int64_t k = 0; k < d; ++k) axpy(h_[k], W(k), z_.data(), ld_);
        rest_ = remove(z_.data());
        for (std::int64_t j = 0; j < ld_; ++j) xhat_[j] += z_[j];
      }
      if (rest_ > kNothing * kNothing * whole) open();
      rotate(s_.R, xhat_.data());
    }
    *s_.lost += kLost * largest;
    const std::int64_t n = size();
    s_.counts[kRank] = std::min(n, s_.m - 1);
    s_.counts[kOpened] = s_.counts[kFilled] = n - s_.counts[kRank];
    std::fill_n(s_.c, ld_, 0.0);
    alpha_changed();
    split_ = false;
  }

  // Turns W to the axes of SᵀS, all of them. Returns their eigenvalues, which become R.
  const std::vector<double>& diagonalise() {
    svd_.compute(s_.R, ld_, rank() + s_.counts[kFilled], size());
    const std::int64_t n = size();
    turn(n, [&](std::int64_t i, std::int64_t j) { return svd_.vectors[i * svd_.width + j]; });
    straighten(n);
    return svd_.values;
  }

 private:
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  static constexpr double kRounding = 4 * kEpsilon;
  static constexpr double kTiny = 1e-200;  // squares in between neither overflow nor lose digits
  static constexpr double kTurns = 4;
  static constexpr std::int64_t kDense = 16, kMost = 4096;
  static constexpr double kDoubtful = 1e-4;  // share of ‖x‖² outside of the span that is sure in sparse time
  // Shares below which a part outside is rounding: that of x, and of sums of n terms. Where α = 0 a direction
  // that is not there would be followed without any cost, and the span itself moves by rounding from shrink
  // to shrink.
  static constexpr double kNothing = 64 * kEpsilon, kNotFree = 1e-11;
  // Share of ‖x‖² below which the rounding of x itself matters. Each further pass divides what is left of it
  // within the span by 1/ε, also for features that are smaller than others by as much.
  static constexpr double kShort = 1e-8;
  static constexpr int kMore = 3;
  // Rounding of a gradient in SᵀS, beside what is left out of it: ‖ĝĝᵀ − ĝ'ĝ'ᵀ‖ is at most 2‖ĝ‖‖ĝ − ĝ'‖. The
  // same share of λ₁ bounds that of a shrink.
  static constexpr double kLost = 4 * kNothing;
  // The Gram matrix does where its rounding, about n units of λ₁, is little of all that A has left.
  static constexpr double kGraded = 1e-5;

  // Is the gradient less than rounding of the longest one? With α = 0 it would ask for a step as long as it
  // is short. Slopes of ordinary size are not looked at.
  bool vanishes(double r) const {
    if (*alpha_ > 0 || r * r > kSmallSlope) return false;
    double longest = 0;
    for (std::int64_t i = 0; i < rank() + s_.counts[kFilled]; ++i)
      longest = std::max(longest, dot(R(i), R(i), ld_));
    return r * r * xx_ < kEpsilon * kEpsilon * longest;
  }
  static constexpr double kSmallSlope = 1e-24;

  std::int64_t rank() const { return s_.counts[kRank]; }
  std::int64_t size() const { return s_.counts[kRank] + s_.counts[kOpened]; }
  std::int64_t features() const { return *active_; }
  double* R(std::int64_t i) const { return s_.R + i * ld_; }
  double* U(std::int64_t i) const { return s_.U + i * ld_; }
  double* W(std::int64_t feature) const { return table_.row(feature) + Table<double>::kSketch; }
  double& weight(std::int64_t feature) const { return table_.row(feature)[Table<double>::kWeight]; }

  // x = Wᵀx̂ + h.
  void split() {
    if (split_) return;
    split_ = true;
    d_ = features();
    for (std::int64_t k = 0; k < n_; ++k) d_ = std::max(d_, index_[k] + 1);
    std::fill_n(h_.begin(), d_, 0.0);
    for (std::int64_t k = 0; k < n_; ++k) h_[index_[k]] = x_[k];
    rest_ = left_out_ = 0;
    if (size() < d_) separate();
    note(rest_);
  }

  void note(double rest) {
    if (asks(rest, xx_, *alpha_, s_.small_alpha)) *s_.asked = 2.0;
  }

  void separate() {
    rest_ = remove(xhat_.data());
    const int more = rest_ > 0.5 * xx_ ? 0 : rest_ > kShort * xx_ ? 1 : kMore;
    for (int pass = 0; pass < more; ++pass) {
      std::fill(z_.begin(), z_.end(), 0.0);
      for (std::int64_t i = 0; i < d_; ++i) axpy(h_[i], W(i), z_.data(), ld_);
      rest_ = remove(z_.data());
      for (std::int64_t j = 0; j < size(); ++j) xhat_[j] += z_[j];
      solved_ = false;
    }
    if (rest_ < kShort * xx_ && !(rest_ > noise())) {
      left_out_ = std::sqrt(rest_);
      rest_ = 0;
    }
  }

  // ‖h‖² below which h is rounding: that of feature i is a share of the terms of h_i, and what of it lies
  // within the span has been removed. So a feature of small scale is seen beside large ones, once these are
  // spanned.
  double noise() const {
    double sum = 0;
    for (std::int64_t i = 0; i < d_; ++i) {
      const double* const w = W(i);
      double terms = std::abs(h_[i]), outside = 1.0;
      for (std::int64_t j = 0; j < size(); ++j) {
        terms += std::abs(w[j] * xhat_[j]);
        outside -= w[j] * w[j];
      }
      sum += terms * terms * std::max(outside, kRounding);
    }
    const double least = *alpha_ > 0 ? kNothing : kNotFree;
    return least * least * sum;
  }

  double remove(const double* part) {  // h ← h − Wᵀ·part; returns ‖h‖²
    double sum = 0;
    with_constant(ld_, [&](auto ld) {
      for (std::int64_t i = 0; i < d_; ++i) {
        h_[i] -= dot(W(i), part, ld);
        sum += h_[i] * h_[i];
      }
    });
    return sum;
  }

  void add_outside(double step) {
    for (std::int64_t i = 0; i < d_; ++i) weight(i) += step * h_[i];
  }

  void open() {
    const std::int64_t n = size();
    const double length = std::sqrt(rest_);
    for (std::int64_t i = 0; i < d_; ++i) W(i)[n] = h_[i] / length;
    for (std::int64_t i = 0; i < rank() + s_.counts[kFilled]; ++i) R(i)[n] = 0.0;
    for (std::int64_t i = 0; i < n; ++i) U(i)[n] = 0.0;
    std::fill_n(U(n), ld_, 0.0);
    U(n)[n] = std::sqrt(*alpha_);
    s_.c[n] = 0;
    xhat_[n] = length;
    rest_ = 0;
    ++s_.counts[kOpened];
  }

  void rotate(double* factor, double* v) const {  // UᵀU ← UᵀU + vvᵀ
    for (std::int64_t k = 0; k < size(); ++k) {
      if (v[k] == 0) continue;
      double* const u = factor + k * ld_;
      const double square = u[k] * u[k] + v[k] * v[k];
      const double length = square > kTiny && square < 1 / kTiny ? std::sqrt(square) : std::hypot(u[k], v[k]);
      const double c = u[k] / length, s = v[k] / length;
      for (std::int64_t j = k / 4 * 4; j < ld_; j += 4) {
        const Four a = four(u + j), b = four(v + j);
        four(u + j) = c * a + s * b;
        four(v + j) = c * b - s * a;
      }
      u[k] = length;
      v[k] = 0;  // else its rounding would end up below the diagonal
    }
  }

  void solve() {  // UᵀUy = x̂
    split();
    if (solved_) return;
    const std::int64_t n = size();
    std::copy(xhat_.begin(), xhat_.end(), z_.begin());
    quadratic_ = 0;
    for (std::int64_t k = 0; k < n; ++k) inverse_[k] = 1.0 / U(k)[k];  // none waits for another
    for (std::int64_t k = 0; k < n; ++k) {
      const double zk = z_[k] * inverse_[k];
      for (std::int64_t j = k / 4 * 4; j < ld_; j += 4) four(&z_[j]) -= zk * four(U(k) + j);
      z_[k] = zk;
      quadratic_ += zk * zk;
    }
    std::fill(y_.begin(), y_.end(), 0.0);
    for (std::int64_t k = n - 1; k >= 0; --k) {
      const std::int64_t from = k / 4 * 4;
      y_[k] = (z_[k] - dot(U(k) + from, &y_[from], ld_ - from)) * inverse_[k];
    }
    solved_ = true;
  }

  void shrink() {
    const std::int64_t n = size(), m = s_.m, most = std::min(n, m - 1);
    if (n < m) return compress();
    const bool graded = !leading_eigen(n);
    if (graded) svd_.compute(s_.R, ld_, rank() + s_.counts[kFilled], n);
    std::vector<double>& D = graded ? svd_.values : eigen_.values;
    const double largest = D[0];
    const double unit = kLost * (graded ? kLost : 1.0) * largest;  // values below it are rounding
    const double rho = s_.rule.apply(D, m, unit);
    *s_.shrunk += rho;
    *alpha_ += s_.rule.ridge * rho;
    std::int64_t kept = 0;
    while (kept < most && D[kept] > unit) ++kept;
    *s_.lost += kLost * largest + (kept < most ? std::max(D[kept], 0.0) : 0.0);
    if (graded)
      turn(kept, [&](std::int64_t i, std::int64_t j) { return svd_.vectors[i * svd_.width + j]; });
    else
      turn(kept, [&](std::int64_t i, std::int64_t j) { return eigen_.vectors[j * eigen_.width + i]; });
    std::fill_n(s_.R, (m - 1 + s_.every) * ld_, 0.0);
    std::fill_n(s_.U, (m - 1 + s_.every) * ld_, 0.0);
    for (std::int64_t i = 0; i < kept; ++i) {
      R(i)[i] = std::sqrt(D[i]);
      U(i)[i] = std::sqrt(*alpha_ + D[i]);
    }
    s_.counts[kRank] = kept;
    s_.counts[kOpened] = s_.counts[kFilled] = 0;
    if (++*s_.turns >= kTurns) straighten(kept);
    std::fill(xhat_.begin(), xhat_.end(), 0.0);
    for (std::int64_t k = 0; k < n_; ++k) axpy(x_[k], W(index_[k]), xhat_.data(), ld_);
    split_ = solved_ = false;
  }

  // Nothing is lost where there are fewer than m directions: they stay as they are, and only R, which has a
  // row for each gradient, becomes square.
  void compress() {
    const std::int64_t rows = rank() + s_.counts[kFilled];
    std::vector<double> old(s_.R, s_.R + rows * ld_);
    std::fill_n(s_.R, rows * ld_, 0.0);
    for (std::int64_t i = 0; i < rows; ++i) rotate(s_.R, old.data() + i * ld_);
    s_.counts[kRank] = size();
    s_.counts[kOpened] = s_.counts[kFilled] = 0;
  }

  // From the Gram matrix RᵀR, if what it loses does not matter.
  bool leading_eigen(std::int64_t n) {
    const std::int64_t rows = rank() + s_.counts[kFilled], m = s_.m;
    gram_.assign(static_cast<std::size_t>(n * ld_), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) add_rank_one(1.0, R(i), {gram_.data(), ld_}, n);
    eigen_.compute(gram_.data(), ld_, n, m - 1);
    if (eigen_.values.empty()) return true;
    const double least = *std::min_element(eigen_.values.begin(), eigen_.values.end());
    return *alpha_ + least >= kGraded * eigen_.values[0];
  }

  // W ← the first `kept` vectors, in terms of W; w̄ takes over Wᵀc.
  template <class Vectors>
  void turn(std::int64_t kept, Vectors vectors) {
    const std::int64_t n = size(), width = padded4(kept);
    map_.assign(static_cast<std::size_t>(n * width), 0.0);
    sum_.assign(static_cast<std::size_t>(ld_), 0.0);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < kept; ++i) map_[j * width + i] = vectors(i, j);
    for (std::int64_t i = 0; i < features(); ++i) {
      double* const w = W(i);
      weight(i) += dot(w, s_.c, ld_);
      if (width > 0) combine_rows(w, {map_.data(), width}, n, sum_.data());
      std::copy(sum_.begin(), sum_.end(), w);
    }
    std::fill_n(s_.c, ld_, 0.0);
  }

  // Products of the rounded turns would drift from orthonormal: WWᵀ = LLᵀ, W ← L⁻¹W.
  void straighten(std::int64_t n) {
    *s_.turns = 0;
    const std::int64_t width = padded4(n);
    std::vector<double> K(static_cast<std::size_t>(n * width), 0.0);
    const Small L{K.data(), width};
    for (std::int64_t i = 0; i < features(); ++i) add_rank_one(1.0, W(i), L, n);
    cholesky(L, n);
    for (std::int64_t i = 0; i < features(); ++i) {
      double* const w = W(i);
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t k = 0; k < j; ++k) w[j] -= L.at(j, k) * w[k];
        w[j] /= L.at(j, j);
      }
    }
  }

  FewState s_;
  Table<double> table_;
  const std::int64_t* active_;
  double* alpha_;
  std::int64_t ld_, d_ = 0, n_ = 0;
  const std::int64_t* index_ = nullptr;
  const double* x_ = nullptr;
  LeadingEigen eigen_;
  JacobiSvd svd_;
  std::vector<double> xhat_, y_, z_, inverse_, h_, gram_, map_, sum_;
  double xx_ = 0, rest_ = 0, quadratic_ = 0;
  double left_out_ = 0;  // of x, as rounding: its length
  bool split_ = false, solved_ = false, leaves_ = false;
};

}  // namespace skn
