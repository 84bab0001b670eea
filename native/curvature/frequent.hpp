// Frequent Directions and its variants in sparse time (SON Algorithms 6–10, RFD Algorithms 3 and 6).
//
// The sketch is S = [diag(D) V; G]: V has up to m − 1 orthonormal rows from the last shrink, G the gradients
// since then, of m rounds at most (at about unit length: only their directions matter). All small computation
// is done in an orthonormal basis W of their span, which G extends row by row: W = [V; C V + T G]. There SᵀS
// is a small matrix M = W SᵀS Wᵀ, kept beside H = (αI + M)⁻¹, and the weights are w̄ + Wᵀc.
//
// After m rounds, with a gradient or without, M is diagonalised, the shrink rule is applied, and V ← N₁V +
// N₂G. SON represents V as FZ to avoid writing all of it, but N₁ is nearly singular whenever a direction is
// replaced, so F cannot be inverted. Here features go through N₁ when they are touched next
// (FrequentFeatures); the weights' part Vᵀc takes the same way into w̄.
//
// A row that is nearly in the span, or much longer than √α, asks for more digits than differences of such
// vectors have: where that is affordable, it is declined, for FewFeatures to take over.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/few_features.hpp"
#include "curvature/frequent_features.hpp"
#include "curvature/shrink_rule.hpp"
#include "eigen/leading_eigen.hpp"

namespace skn {

template <class T>
struct FrequentState {
  ShrinkRule rule;
  double* shrunk;  // Σρ: a certificate of the error
  double* lost;    // what rounding, and what was left out, may have added to it
  double* doubt;   // how many times rounding V may be off from orthonormal
  double *M, *H;   // (m − 1 + every) × ld each
  double *C, *Tm;  // every × ldq and every × ldm: the opened directions in terms of V and of G
  double* spread;  // every: how long the vectors are that they are differences of; −, if they stand alone
  double* c;       // ld
  FeatureState<T> features;
};

template <class T>
class Frequent : private FrequentCounts {
 public:
  static constexpr bool kLazy = true;
  static constexpr double kSmall = sizeof(T) == 4 ? 1e-3 : 1e-8;  // α, as a share of ‖x‖²

  // `room`: for how many features there is memory to write vectors out
  Frequent(const FrequentState<T>& s, double* alpha, bool diagonal, std::int64_t room)
      : s_(s),
        room_(room),
        alpha_(alpha),
        diagonal_(diagonal),
        m_(s.features.m),
        every_(s.features.every),
        q_(std::max<std::int64_t>(m_ - 1, 1)),
        ld_(padded4(m_ - 1 + every_)),
        ldq_(padded4(q_)),
        ldm_(padded4(every_)),
        counts_(s.features.counts),
        features_(s.features),
        shape_(features_.shape()),
        xhat_(ld_),
        y_(ld_),
        v_(ld_),
        z_(ldq_),
        g_(ldm_),
        map_(shape_.whole()) {}

  bool gather(const Table<T>& table, const std::int64_t* index, const T* x, std::int64_t n, double* out) {
    return features_.gather(table, index, x, n, out);
  }

  void settle(T* row) { features_.settle(row); }

  std::int64_t extra_columns() const { return every_; }
  void extra(const T* row, T* out) { features_.extra(row, out); }

  double begin(const double* columns, double xx, const T*) {
    xx_ = xx;
    features_.products(g_);
    express(columns + EpochShape::kHead - Table<T>::kSketch, g_.data());
    rest_ = xx_ - inside();
    if (rest_ < kDoubtful * xx_) look_closely();  // sums in T will not tell how far x reaches out
    outside_ = reaches_out();
    solved_ = fresh_ = false;
    return dot(s_.c, xhat_.data(), ld_);
  }

  // Before a row of n entries is learned: would its vectors better be written out, and may they?
  bool declines(std::int64_t n, std::int64_t active) const {
    return xx_ > 0 && active + n <= std::min(room_, FewFeatures::most(m_, every_, n)) &&
           FewFeatures::asks(rest_, xx_, *alpha_, kSmall);
  }

  double magnitude(const double*) const {
    double sum = 0;
    for (std::int64_t j = 0; j < size(); ++j) sum += std::abs(s_.c[j] * xhat_[j]);
    return sum;
  }

  // α = 0 and x has a part outside the range of A, where moving costs nothing (SON Lemma 2).
  bool free() const { return *alpha_ == 0 && outside_; }

  // xᵀA⁻¹x. A projection divides by this; it must mend more than its own rounding spoils, about ε‖x‖²/α.
  double quadratic() {
    solve();
    if (!steps_out()) return quadratic_;
    return std::max(std::max(rest_, 0.0) / *alpha_ + quadratic_, kRounding * xx_ / *alpha_);
  }

  // A part outside of the span is a step of w̄ along x, of which Wᵀc takes back all but that part. This costs
  // w̄ᵀx as many digits as ‖x‖²/α has: near 1/ε of T, what is lost in one row is more than the next one mends,
  // and weights grow without bound. Where α is so small, the part gets a direction first, and every step is
  // one of c.
  double move(double step) {
    if (ended_ && deferred_) return move_before_the_end(step);
    if (outside_ && small()) open();
    solve();
    const double outside = steps_out() ? step / *alpha_ : 0.0;
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += outside * xhat_[j] - step * y_[j];
    return -outside;
  }

  void alpha_changed() {
    invert();
    solved_ = false;
  }

  double move_free(double excess) {
    const double step = excess / rest_;
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += step * xhat_[j];
    return -step;
  }

  double update(double r, double*, const Table<T>&, std::int64_t, const std::int64_t*, std::int64_t) {
    // Where a prediction equals its label but for rounding there is no gradient: with α = 0 steps are the
    // longer the shorter the gradient. Each step adds about ‖x‖²/α to w̄ᵀx, which
    // Wᵀc takes back; digits that are lost by that are lost for good.
    const double lost = *alpha_ > 0 ? std::max(1.0, xx_ / *alpha_) : 1.0;
    if (std::abs(r) < std::min(kRounding * lost, kNegligible)) {
      *s_.lost += r * r * xx_;
      return 0.0;
    }
    ++counts_[kFilled];
    const double rr = r * r;
    *s_.lost += rr * (kRounding * xx_ + (outside_ || fresh_ ? 0.0 : left_out()));
    solve();
    if (outside_) open();
    if (fresh_) {  // y and the quadratic form of the directions before it
      y_[size() - 1] = 0;
      quadratic_ = dot(xhat_.data(), y_.data(), ld_);
    }
    const double damping = 1.0 + rr * quadratic_;
    if (fresh_) {
      grow_inverse(rr / damping, damping);
    } else {
      add_rank_one(-rr / damping, y_.data(), {s_.H, ld_}, size());
      for (double& y : y_) y /= damping;
      quadratic_ /= damping;
    }
    solved_ = damping < kIllConditioned;
    add_rank_one(rr, xhat_.data(), {s_.M, ld_}, size());
    if (!solved_) invert();
    return 0.0;
  }

  void leave_out(double r) { *s_.lost += r * r * xx_; }

  // Epochs are of m rounds (SON Algorithms 6 and 9, RFD Algorithm 6), whether or not these have a gradient:
  // whether one is zero or rounding must not decide when the sketch shrinks. Without any, there is nothing to
  // shrink. A step that opens a direction does so before: after the last round there is no room for it.
  void end_round(bool steps) {
    counts_[kMet] += features_.row_size();
    if (++counts_[kRound] < every_) return;
    counts_[kRound] = 0;
    if (steps && outside_ && small()) open();
    if (counts_[kFilled] + counts_[kOpened] > 0) shrink();
  }

  // S as rows of numbers, one for each feature, given the features' rows with their extra columns, up to
  // date. The weights take in Wᵀc. Returns λ₁.
  double write_out(T* rows, std::int64_t stride, std::int64_t extra, std::int64_t active,
                   std::vector<double>& S) {
    const std::int64_t n = size(), r = rank();
    eigen_.compute(s_.M, ld_, n, n);
    const std::vector<double>& D = eigen_.values;
    S.assign(static_cast<std::size_t>(n * active), 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      T* const row = rows + i * stride;
      const T *const V = row + EpochShape::kHead, *const G = row + extra;
      for (std::int64_t k = 0; k < n; ++k) {
        double sum = k < r ? static_cast<double>(V[k]) : 0.0;
        if (k >= r) {
          for (std::int64_t j = 0; j < r; ++j) sum += s_.C[(k - r) * ldq_ + j] * static_cast<double>(V[j]);
          for (std::int64_t b = 0; b < every_; ++b)
            sum += s_.Tm[(k - r) * ldm_ + b] * static_cast<double>(G[b]);
        }
        row[Table<T>::kWeight] = static_cast<T>(static_cast<double>(row[Table<T>::kWeight]) + s_.c[k] * sum);
        for (std::int64_t j = 0; j < n; ++j)
          S[j * active + i] += std::sqrt(std::max(D[j], 0.0)) * eigen_.vectors[k * eigen_.width + j] * sum;
      }
    }
    return n > 0 ? D[0] : 0.0;
  }

  // Takes over from FewFeatures in the middle of an epoch. The sketch columns of `few` have the axes of SᵀS,
  // `values` its eigenvalues: V takes the first m − 1, and the others are the first rows of G.
  void start_from(const std::vector<double>& values, const Table<double>& few, const Table<T>& table,
                  std::int64_t active) {
    const auto n = static_cast<std::int64_t>(values.size());
    const std::int64_t r = std::min(n, m_ - 1), opened = n - r;
    for (std::int64_t i = 0; i < active; ++i) {
      const double* const W = few.row(i) + Table<double>::kSketch;
      T* const row = table.row(table.active[i]);
      for (std::int64_t j = 0; j < r; ++j) row[EpochShape::kHead + j] = static_cast<T>(W[j]);
      if (opened > 0) features_.start(table, table.active[i], W + r, opened);
    }
    std::fill_n(s_.M, (m_ - 1 + every_) * ld_, 0.0);
    std::fill_n(s_.H, (m_ - 1 + every_) * ld_, 0.0);
    std::fill_n(s_.c, ld_, 0.0);
    std::fill_n(s_.C, every_ * ldq_, 0.0);
    std::fill_n(s_.Tm, every_ * ldm_, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      s_.M[i * ld_ + i] = values[i];
      H(i)[i] = *alpha_ + values[i] > 0 ? 1.0 / (*alpha_ + values[i]) : 0.0;
    }
    for (std::int64_t k = 0; k < opened; ++k) s_.Tm[k * ldm_ + k] = s_.spread[k] = 1.0;
    *s_.lost += kRounding * (n > 0 ? values[0] : 0.0);
    *s_.doubt = 1.0;
    counts_[kRank] = r;
    counts_[kOpened] = counts_[kFilled] = opened;
    counts_[kMet] = opened * active;
    counts_[kFew] = 0;
  }

  void stop() {  // FewFeatures takes over
    features_.restart();
    counts_[kFew] = 1;
  }

  void finish(const Table<T>& table, std::int64_t active) {
    if (!ended_) return;
    ended_ = false;
    if (deferred_) map_weights();
    features_.end_epoch(table, map_.data());
    // A sweep now and then costs little, keeps V orthonormal, and spares features long delays. A crooked V
    // would make directions of its own errors, from epoch to epoch more of them.
    if (features_.full() || counts_[kMet] > kSweep * active || (crooked() && kSweep * counts_[kMet] > active))
      sweep(table, active);
  }

 private:
  using Features = FrequentFeatures<T>;
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  // Share of ‖x‖² outside the span below which it is rounding.
  static constexpr double kInside = sizeof(T) == 4 ? 2e-6 : 1e-12;
  // The same where α outweighs the rows, so that a direction of rounding does no harm.
  static constexpr double kLeast = sizeof(T) == 4 ? 2.5e-7 : 1e-14;
  static constexpr double kOutweighs = 3e-7;
  // Share below which the length of the rest is too unsure for other rows to be measured against it.
  static constexpr double kShort = sizeof(T) == 4 ? 0.0 : 3e-10;
  static constexpr double kMixed = 0.1;  // share of such directions that an eigenvector may have
  static constexpr double kCrooked = sizeof(T) == 4 ? 1e-6 : 1e-12;  // error of V that is not built upon
  static constexpr double kDoubtful = 1e-4;
  static constexpr double kNoise = 16.0 * std::numeric_limits<T>::epsilon();  // of a vector of length one
  static constexpr double kRounding = 4.0 * std::numeric_limits<T>::epsilon();
  static constexpr double kNegligible = 1e-6;  // gradients above this count, whatever rounding may be
  static constexpr double kGone = 1e-13;       // share of λ₁ below which a direction has no length
  static constexpr double kFaint = sizeof(T) == 4 ? 1e-6 : 1e-15;  // and share of α
  static constexpr double kIllConditioned =
      1e6;  // an update that takes this many digits from H: start afresh
  static constexpr std::int64_t kSweep = 16;

  // Does x reach out of the span by more than rounding? A direction that was opened by little of a gradient
  // is a difference of long vectors, and so less sure than others; V inherits that until a sweep mends it.
  // Where α outweighs that, such a direction does no harm, and one that is missing would.
  bool reaches_out() const {
    if (outweighed() && !crooked()) return rest_ > kLeast * xx_;
    const double length = std::sqrt(xx_);
    double unsure = length * (*s_.doubt - 1.0);
    for (std::int64_t k = 0; k < counts_[kOpened]; ++k)
      unsure += std::abs(xhat_[rank() + k]) * (std::abs(s_.spread[k]) - 1.0);
    return rest_ > kInside * xx_ + kNoise * length * unsure;
  }

  bool crooked() const { return *s_.doubt * std::numeric_limits<T>::epsilon() > kCrooked; }

  bool outweighed() const { return *alpha_ > kOutweighs * xx_; }

  // Is α so small a share of ‖x‖² that steps of w̄ along x would lose too many digits? (With diagonal
  // adaptation another row, x in other scales, is about to open a direction, and there is room for one in a
  // round.)
  bool small() const { return *alpha_ > 0 && *alpha_ < kSmall * xx_ && !diagonal_; }

  // A step along x − Wᵀx̂, unless that is rounding and a small α would make much of it.
  bool steps_out() const { return *alpha_ > 0 && (outside_ || (*alpha_ > kInside * xx_ && !small())); }

  // Does opened direction k stand for its gradient alone?
  bool lone(std::int64_t k) const { return s_.spread[k] < 0; }
  std::int64_t lone() const {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < counts_[kOpened]; ++k) count += lone(k);
    return count;
  }

  // ‖xxᵀ − x'x'ᵀ‖ where x' is x without its part outside of the span, of whose length this much is known.
  double left_out() const { return 2.0 * std::sqrt(xx_ * (std::max(rest_, 0.0) + kNoise * xx_)); }

  std::int64_t rank() const { return counts_[kRank]; }
  std::int64_t size() const { return counts_[kRank] + counts_[kOpened]; }
  double* H(std::int64_t i) const { return s_.H + i * ld_; }

  void express(const double* z, const double* g) {  // x̂ = Wx, from z = Vx and g = Gx
    const std::int64_t r = rank(), n = size();
    std::copy_n(z, q_, z_.begin());
    std::copy_n(z, r, xhat_.begin());
    with_constant(ldm_, [&](auto ld) {
      for (std::int64_t k = 0; k < n - r; ++k)
        xhat_[r + k] = lone(k) ? 0.0 : dot(s_.C + k * ldq_, z_.data(), ldq_) + dot(s_.Tm + k * ld, g, ld);
    });
    std::fill(xhat_.begin() + n, xhat_.end(), 0.0);
  }

  double inside() const { return dot(xhat_.data(), xhat_.data(), ld_); }

  // x̂ and what is left of ‖x‖², with sums in the next wider numbers: two rows that differ by little span a
  // direction of which nothing but that difference is known.
  void look_closely() {
    wide_.resize(static_cast<std::size_t>(shape_.width));
    features_.gather_exactly(wide_early_, wide_.data());
    wide_g_.resize(static_cast<std::size_t>(every_));
    features_.products_exactly(wide_g_);
    auto rest = features_.template square<Wide>();
    const Wide* z = wide_.data() + EpochShape::kHead;
    for (std::int64_t j = 0; j < size(); ++j) {
      const std::int64_t k = j - rank();
      Wide sum = k < 0 ? z[j] : Wide(0);
      if (k >= 0 && !lone(k)) {
        for (std::int64_t i = 0; i < rank(); ++i) sum += static_cast<Wide>(s_.C[k * ldq_ + i]) * z[i];
        for (std::int64_t b = 0; b < every_; ++b) sum += static_cast<Wide>(s_.Tm[k * ldm_ + b]) * wide_g_[b];
      }
      xhat_[j] = static_cast<double>(sum);
      rest -= sum * sum;
    }
    rest_ = static_cast<double>(rest);
  }

  // Gradients are kept at a length between one and two, so that products with long rows stay in range: a
  // power of two leaves their digits as they are.
  double scale_of_row() const { return std::ldexp(1.0, -(std::ilogb(xx_) >> 1)); }

  // W gains the part of x outside its span, without any curvature yet. Of a very short one the length is
  // known to a few digits only: it stands for this row alone, and no other row is measured against it. (Near
  // copies of the row open directions of their own, as if these were orthogonal: an error of the second
  // order.)
  void open() {
    const std::int64_t n = size(), k = counts_[kOpened];
    const double length = std::sqrt(rest_), scale = scale_of_row();
    features_.record(k, scale);
    double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    std::fill(C, C + ldq_, 0.0);
    std::fill(Tm, Tm + ldm_, 0.0);
    for (std::int64_t j = 0; j < rank(); ++j) C[j] = -xhat_[j] / length;
    Tm[k] = 1.0 / (scale * length);
    for (std::int64_t i = 0; i < k; ++i) {
      axpy(-xhat_[rank() + i] / length, s_.C + i * ldq_, C, ldq_);
      axpy(-xhat_[rank() + i] / length, s_.Tm + i * ldm_, Tm, ldm_);
    }
    const double spread = std::max(1.0, std::sqrt(dot(C, C, ldq_) + dot(Tm, Tm, ldm_)));
    s_.spread[k] = outweighed() && rest_ < kShort * xx_ ? -spread : spread;
    for (std::int64_t j = 0; j <= n; ++j) s_.M[n * ld_ + j] = s_.M[j * ld_ + n] = 0;
    for (std::int64_t j = 0; j < n; ++j) H(n)[j] = H(j)[n] = 0;
    H(n)[n] = *alpha_ > 0 ? 1.0 / *alpha_ : 0.0;
    s_.c[n] = 0;
    xhat_[n] = length;
    rest_ = 0;
    outside_ = solved_ = false;
    fresh_ = true;
    ++counts_[kOpened];
  }

  void solve() {  // y = Hx̂
    if (solved_) return;
    combine_rows(xhat_.data(), {s_.H, ld_}, size(), y_.data());
    std::fill(y_.begin() + size(), y_.end(), 0.0);
    quadratic_ = dot(xhat_.data(), y_.data(), ld_);
    solved_ = true;
  }

  // H after W has gained a direction and A the gradient (x̂, ℓ), beta = r²/(1 + r²x̂ᵀHx̂): in blocks, with S the
  // new direction's Schur complement. Nothing is subtracted that is close, so that α = 0 needs no other case.
  // y follows: a gradient that joins A leaves A⁻¹ĝ its direction.
  void grow_inverse(double beta, double damping) {
    const std::int64_t n = size() - 1;
    const double length = xhat_[n], S = *alpha_ + beta * length * length, inverse = S > 0 ? 1.0 / S : 0.0;
    add_rank_one(-beta * *alpha_ * inverse, y_.data(), {s_.H, ld_}, n);
    for (std::int64_t j = 0; j < n; ++j) H(n)[j] = H(j)[n] = -beta * length * inverse * y_[j];
    H(n)[n] = inverse;
    for (std::int64_t j = 0; j < n; ++j) y_[j] *= *alpha_ * inverse / damping;
    y_[n] = length * inverse / damping;
    quadratic_ = (*alpha_ * quadratic_ + length * length) * inverse / damping;
  }

  void invert() {  // H from M
    const std::int64_t n = size();
    std::vector<double> factor(n * ld_), inverse(n * ld_, 0.0);
    const Small L{factor.data(), ld_}, X{inverse.data(), ld_};
    for (std::int64_t i = 0; i < n; ++i) {
      std::copy_n(s_.M + i * ld_, ld_, L.row(i));
      L.at(i, i) += *alpha_;
      X.at(i, i) = 1.0;
    }
    cholesky(L, n);
    solve_lower(L, n, X);
    std::fill(s_.H, s_.H + n * ld_, 0.0);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = 0; i <= k; ++i) axpy(X.at(k, i), X.row(k), H(i), ld_);
  }

  // The small part of an epoch's end. The current row moves on in the new basis.
  void shrink() {
    const std::int64_t n = size(), old = rank(), opened = counts_[kOpened];
    eigen_.compute(s_.M, ld_, n, m_ - 1);
    std::vector<double>& D = eigen_.values;
    const double largest = n > 0 ? D[0] : 0.0, least = kGone * largest;
    const double rho = s_.rule.apply(D, m_, least);
    *s_.shrunk += rho;
    *alpha_ += s_.rule.ridge * rho;
    std::int64_t kept = 0;
    const double faint = std::max(least, kFaint * *alpha_);
    while (kept < std::min(n, m_ - 1) && D[kept] > faint && lone_share(kept) < kMixed) ++kept;
    // Directions that stand alone may coincide: together they are as long as their number at most.
    if (kept < std::min(n, m_ - 1)) *s_.lost += std::max(D[kept], 0.0) * (1.0 + static_cast<double>(lone()));
    *s_.lost += kRounding * (n > 0 ? largest : 0.0);

    // With the eigenvectors in the columns of U: V ← (U_V + Cᵀ U_e)ᵀV + (Tᵀ U_e)ᵀG.
    const double *U = eigen_.vectors.data(), *Ue = U + old * eigen_.width;
    std::fill(map_.begin(), map_.end(), T(0));
    zeros_.assign(static_cast<std::size_t>(eigen_.width), 0.0);
    for (std::int64_t k = 0; k < old; ++k) map_row(k, U + k * eigen_.width, Ue, s_.C + k, ldq_, kept);
    for (std::int64_t b = 0; b < every_; ++b) map_row(q_ + b, zeros_.data(), Ue, s_.Tm + b, ldm_, kept);
    turn_row(n, kept);
    for (std::int64_t i = 0; i < kept; ++i) {
      double unsure = 1.0;
      for (std::int64_t k = 0; k < opened; ++k)
        unsure += std::abs(Ue[k * eigen_.width + i]) * (std::abs(s_.spread[k]) - 1.0);
      *s_.doubt = std::max(*s_.doubt, unsure);
    }
    std::fill(s_.M, s_.M + kept * ld_, 0.0);
    std::fill(s_.H, s_.H + kept * ld_, 0.0);
    for (std::int64_t i = 0; i < kept; ++i) {
      s_.M[i * ld_ + i] = D[i];
      H(i)[i] = 1.0 / (*alpha_ + D[i]);
    }
    old_rank_ = old;
    old_opened_ = opened;
    counts_[kRank] = kept;
    counts_[kOpened] = 0;
    solved_ = fresh_ = false;
    ended_ = true;
    deferred_ = small();
    if (deferred_) return;
    map_weights();
    xhat_ = v_;
    rest_ = xx_ - inside();
    outside_ = reaches_out();
  }

  void turn_row(std::int64_t n, std::int64_t kept) {  // v = Uᵀx̂
    std::fill(v_.begin(), v_.end(), 0.0);
    combine_rows(xhat_.data(), {eigen_.vectors.data(), eigen_.width}, n, v_.data());
    std::fill(v_.begin() + kept, v_.end(), 0.0);
  }

  // A step with the shrunk metric, whose inverse is that of αI + D on the directions that are kept and 1/α on
  // those that are not, in the old basis, which has all of the row.
  double move_before_the_end(double step) {
    const double outside = 1.0 / *alpha_;
    for (std::int64_t i = 0; i < rank(); ++i) v_[i] *= H(i)[i] - outside;
    for (std::int64_t j = 0; j < old_rank_ + old_opened_; ++j)
      s_.c[j] -=
          step * (outside * xhat_[j] + dot(&eigen_.vectors[j * eigen_.width], v_.data(), eigen_.width));
    return 0.0;
  }

  // Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e) of the old basis joins w̄.
  void map_weights() {
    const double* const c = s_.c + old_rank_;
    for (std::int64_t k = 0; k < old_rank_ + every_; ++k) {
      const std::int64_t b = k - old_rank_, stride = b < 0 ? ldq_ : ldm_;
      const double* const share = b < 0 ? s_.C + k : s_.Tm + b;
      double weight = b < 0 ? s_.c[k] : 0.0;
      for (std::int64_t j = 0; j < old_opened_; ++j) weight += c[j] * share[j * stride];
      map_[(b < 0 ? k : q_ + b) * shape_.width + Table<T>::kWeight] = static_cast<T>(weight);
    }
    std::fill(s_.c, s_.c + ld_, 0.0);
  }

  // How much of eigenvector i is in directions that stand alone. They are short, so long eigenvectors have
  // little of them; those that are made of them are orthogonal by name only, and must not become rows of V.
  double lone_share(std::int64_t i) const {
    double share = 0;
    for (std::int64_t k = 0; k < counts_[kOpened]; ++k) {
      const double part = eigen_.vectors[(rank() + k) * eigen_.width + i];
      if (lone(k)) share += part * part;
    }
    return share;
  }

  // What one row of V or G contributes to the rows of V that are kept: `own` is its part of U, and it is in
  // the opened directions by `share`, `stride` apart.
  void map_row(std::int64_t at, const double* own, const double* Ue, const double* share, std::int64_t stride,
               std::int64_t kept) {
    const std::int64_t opened = counts_[kOpened];
    T* const row = map_.data() + at * shape_.width;
    for (std::int64_t i = 0; i < kept; i += 4) {
      Four sum = four(own + i);
      for (std::int64_t j = 0; j < opened; ++j) sum += share[j * stride] * four(Ue + j * eigen_.width + i);
      for (std::int64_t k = 0; k < std::min<std::int64_t>(4, kept - i); ++k)
        row[EpochShape::kHead + i + k] = static_cast<T>(sum[k]);
    }
  }

  // What rounding did to V is mended from the table itself, by one more map: VVᵀ = LLᵀ, V ← L⁻¹V.
  void sweep(const Table<T>& table, std::int64_t active) {
    const std::int64_t k = rank();
    std::vector<double> K(q_ * ldq_, 0.0), I(q_ * ldq_, 0.0);
    const Small L{K.data(), ldq_}, N{I.data(), ldq_};
    features_.sweep(table, active, L);
    *s_.doubt = 1.0;
    cholesky(L, k);
    for (std::int64_t j = 0; j < k; ++j) N.at(j, j) = 1.0;
    solve_lower(L, k, N);
    multiply_transposed_lower(L, k, s_.c);
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        map_[j * shape_.width + EpochShape::kHead + i] = static_cast<T>(N.at(i, j));
    features_.push(map_.data());
  }

  FrequentState<T> s_;
  std::int64_t room_;
  double* alpha_;
  bool diagonal_;
  std::int64_t m_, every_, q_, ld_, ldq_, ldm_;
  std::int64_t* counts_;
  Features features_;
  EpochShape shape_;
  LeadingEigen eigen_;
  std::vector<double> zeros_, xhat_, y_, v_, z_, g_;
  std::vector<Wide> wide_, wide_early_, wide_g_;
  std::vector<T> map_;                          // of the epoch's end: what V and G contribute to (w̄, V)
  double xx_ = 0, rest_ = 0, quadratic_ = 0;    // rest: of ‖x‖², outside of the span
  std::int64_t old_rank_ = 0, old_opened_ = 0;  // of the epoch that has ended
  bool outside_ = false, solved_ = false, ended_ = false;
  bool fresh_ = false;     // the last direction is the row's own, and has no curvature yet
  bool deferred_ = false;  // c and x̂ are those of the old basis until `finish`
};

}  // namespace skn
