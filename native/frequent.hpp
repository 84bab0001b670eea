// Frequent Directions and its kin in sparse time (SON Algorithms 6–10, RFD Algorithms 3 and 6).
//
// The sketch is S = [diag(D) V; G]: V has up to m − 1 orthonormal rows from the last shrink, G the gradients
// since then, up to m of them (at about unit length: only their directions matter). All small computation is
// done in an orthonormal basis W of their span, which G extends row by row: W = [V; C V + T G]. There SᵀS is
// a small matrix M = W SᵀS Wᵀ, kept beside H = (αI + M)⁻¹, and the weights are w̄ + Wᵀc.
//
// When G is full, M is diagonalised, the shrink rule is applied, and V ← N₁V + N₂G. SON represents V as FZ to
// avoid writing all of it, but N₁ is nearly singular whenever a direction is replaced, so F cannot be
// inverted. Here features go through N₁ when they are touched next (EpochMaps); the weights' part Vᵀc takes
// the same way into w̄. So does a gradient: a feature that one gradient of an epoch has touched keeps its
// value in its row of the table until then. Those that several have touched get a slot for all their values,
// and move on at the epoch's end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "epochs.hpp"
#include "leading_eigen.hpp"
#include "small.hpp"
#include "table.hpp"

namespace skn {

// How eigenvalues λ₁ ≥ λ₂ ≥ … become the squared lengths of at most m − 1 rows, and what the ridge gains.
struct ShrinkRule {
  double share;  // of the m directions, from the smallest up, that shrink: 1 for FD and RFD, β for PFD
  double ridge;  // of each shrink that goes into α: ½ for RFD, 0 otherwise

  // Shrinks in place; returns ρ = λ_m (0 if there are fewer that are more than rounding).
  double apply(std::vector<double>& values, std::int64_t m, double rounding) const {
    const auto n = static_cast<std::int64_t>(values.size());
    const double rho = n >= m && values[m - 1] > rounding ? values[m - 1] : 0.0;
    const auto spared = m - static_cast<std::int64_t>(std::floor(share * static_cast<double>(m) + 1e-9));
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = i >= m - 1 ? 0.0 : i < spared ? values[i] : values[i] - rho;
    return rho;
  }
};

template <class T>
struct FrequentState {
  std::int64_t m;
  ShrinkRule rule;
  std::int64_t* counts;  // see the enum in Frequent
  double* shrunk;        // Σρ: a certificate of the error
  double* doubt;         // how many times rounding V may be off from orthonormal
  double *M, *H;         // (2m − 1) × ld each
  double *C, *Tm;        // m × ldq and m × ldm: the opened directions in terms of V and of G
  double* c;             // ld
  std::int64_t* recent;  // the features that have slots
  T* slots;              // ldm each: their columns of G
  std::int64_t* group;   // the features that gradients of the open group of epochs have touched
  EpochState<T> epochs;
};

template <class T>
class Frequent {
 public:
  static constexpr bool kLazy = true;

  Frequent(const FrequentState<T>& s, double* alpha)
      : s_(s),
        alpha_(alpha),
        q_(std::max<std::int64_t>(s.m - 1, 1)),
        ld_(padded4(2 * s.m - 1)),
        ldq_(padded4(q_)),
        ldm_(padded4(s.m)),
        shape_{q_, s.m, Table<T>::padded(Table<T>::kSketch + columns(s.m))},
        epochs_(shape_, s.epochs),
        xhat_(ld_),
        y_(ld_),
        v_(ld_),
        z_(ldq_),
        g_(ldm_),
        run_(ldm_),
        map_(shape_.whole()),
        spread_(s.m) {
    for (std::int64_t k = 0; k < s.counts[kOpened]; ++k) spread_[k] = spread(k);
    gains_.push_back(0);
    for (std::int64_t epoch = 0; epoch < EpochState<T>::kGroup; ++epoch)
      for (std::int64_t k = 0; k <= s.m; ++k) gains_.push_back(epochs_.gain(epoch, std::min(k, s.m - 1)));
  }

  static std::int64_t columns(std::int64_t m) { return kV + std::max<std::int64_t>(m - 1, 1); }

  // Σ x_i row_i, as if all features were up to date. Brings them to the start of the open group of epochs, or
  // up to now where gradients of earlier epochs wait, and notes which have gradients of this epoch.
  void gather(const Table<T>& table, const std::int64_t* index, const T* x, std::int64_t n, double* out) {
    table_ = table;
    x_ = x;
    touches_ = 0;
    early_.start(n);
    late_.start(n);
    const T now = static_cast<T>(epochs_.now()), start = static_cast<T>(epochs_.group_start());
    const T waiting = static_cast<T>(first_kind());  // kinds from here on are of this epoch
    // Reading comes first, since no branch waits for it: lines that are not in the cache come together.
    if (static_cast<std::int64_t>(stamps_.size()) < n) {
      stamps_.resize(static_cast<std::size_t>(n));
      touched_.resize(static_cast<std::size_t>(n));
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const T* columns = table.row(index[i]) + Table<T>::kSketch;
      stamps_[i] = {columns[kEpoch], columns[kKind]};
    }
    for (std::int64_t i = 0; i < n; ++i) {
      T* row = table.row(index[i]);
      Stamp stamp = stamps_[i];
      if (stamp.epoch < start) {
        wake(row);
        stamp.epoch = start;
      } else if (stamp.kind >= waiting) {
        touched_[touches_++] = {i, static_cast<std::int64_t>(stamp.kind - waiting),
                                row[Table<T>::kSketch + kValue]};
      } else if (stamp.kind != T(0) || (stamp.epoch != now && stamp.epoch != start)) {
        catch_up(row);
        stamp.epoch = now;
      }
      (stamp.epoch == now ? late_ : early_).add(index[i], x[i]);
    }
    combine<false>(sum_, out);
  }

  // All that was put off, for one feature.
  void settle(T* row) {
    T* columns = row + Table<T>::kSketch;
    if (columns[kEpoch] < static_cast<T>(epochs_.group_start())) wake(row);
    catch_up(row);
  }

  double begin(const double* columns, double xx, const T*) {
    xx_ = xx;
    products();
    express(columns + kV, g_.data());
    rest_ = xx_ - inside();
    if (rest_ < kDoubtful * xx_) look_closely();  // sums in T will not tell how far x reaches out
    outside_ = reaches_out();
    solved_ = false;
    return dot(s_.c, xhat_.data(), ld_);
  }

  // What the table does not show of a feature: its column of G.
  void extra(const T* row, T* out) const {
    std::fill(out, out + s_.m, T(0));
    const T* columns = row + Table<T>::kSketch;
    const std::int64_t kind = static_cast<std::int64_t>(columns[kKind]) - first_kind();
    if (kind == s_.m)
      std::copy_n(slot(columns[kValue]), s_.m, out);
    else if (kind >= 0)
      out[kind] = columns[kValue];
  }

  // α = 0 and x has a part outside the range of A, where moving costs nothing (SON Lemma 2).
  bool free() const { return *alpha_ == 0 && outside_; }

  double quadratic() {
    const double outside = steps_out() ? std::max(rest_, 0.0) / *alpha_ : 0.0;
    solve();
    return outside + quadratic_;
  }

  double move(double step) {
    solve();
    const double outside = steps_out() ? step / *alpha_ : 0.0;
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += outside * xhat_[j] - step * y_[j];
    return -outside;
  }

  double move_free(double excess) {
    const double step = excess / rest_;
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += step * xhat_[j];
    return -step;
  }

  double update(double r, double*, const Table<T>& table, std::int64_t active, const std::int64_t* index,
                std::int64_t n) {
    const std::int64_t row = s_.counts[kFilled]++;
    s_.counts[kMet] += n;
    record(row, table, index, n);
    solve();
    const double rr = r * r, damping = 1.0 + rr * quadratic_;
    // What is outside of a span that has as many directions as there are features is rounding.
    const bool opens = outside_ && size() < std::min(2 * s_.m - 1, active);
    if (opens) {
      open(row);
      grow_inverse(rr / damping);
    } else {
      rank_one(s_.H, -rr / damping, y_);
    }
    rank_one(s_.M, rr, xhat_);
    if (!(damping < kIllConditioned)) invert();
    solved_ = false;
    if (filled() == s_.m) shrink();
    return 0.0;
  }

  void finish(const Table<T>& table, std::int64_t active) {
    if (!ended_) return;
    ended_ = false;
    end_epoch(table);
    // A sweep now and then costs little, keeps V orthonormal, and spares features long delays.
    if (epochs_.full() || s_.counts[kMet] > kSweep * active) sweep(table, active);
  }

 private:
  // Rank of V, directions that G has opened, rows in G, entries met since the last sweep, features of the
  // group, slots in use.
  enum { kRank, kOpened, kFilled, kMet, kMembers, kRecent };
  // Columns of the table. Kind 0: nothing waits. 1 + (m + 1)e + k: the value in gradient k of epoch e of the
  // open group; k = m stands for all gradients of the epoch, and the value is the number of a slot.
  enum { kEpoch, kKind, kValue, kV };
  struct Touched {
    std::int64_t at, gradient;
    T value;
  };
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  struct Stamp {
    T epoch, kind;
  };
  // Features of a row that stand at the same map.
  struct Part {
    std::vector<std::int64_t> index;
    std::vector<T> x;
    std::int64_t count = 0;

    void start(std::int64_t n) {
      count = 0;
      if (static_cast<std::int64_t>(index.size()) >= n) return;
      index.resize(static_cast<std::size_t>(n));
      x.resize(static_cast<std::size_t>(n));
    }
    void add(std::int64_t feature, T value) {
      index[count] = feature;
      x[count++] = value;
    }
    template <bool kExactly, class Sum>
    void gather(const Table<T>& table, Sum* out) const {
      if constexpr (kExactly)
        table.gather_exactly(index.data(), x.data(), count, out);
      else
        table.gather(index.data(), x.data(), count, out);
    }
  };
  static_assert(Table<T>::kSketch + kV == EpochShape::kHead);
  // Share of ‖x‖² outside the span below which it is rounding.
  static constexpr double kInside = sizeof(T) == 4 ? 3e-7 : 1e-12;
  static constexpr double kDoubtful = 1e-4;
  static constexpr double kNoise = 16.0 * std::numeric_limits<T>::epsilon();  // of a vector of length one
  static constexpr double kGone = 1e-13;  // share of λ₁ below which a direction has no length
  static constexpr double kIllConditioned =
      1e6;  // an update that takes this many digits from H: start afresh
  static constexpr std::int64_t kSweep = 16;
  static constexpr std::int64_t kAhead = 8;
  static constexpr std::int64_t kRun = 32;  // short sums in T, long ones in double, as in the table

  // Does x reach out of the span by more than rounding? A direction that was opened by little of a gradient
  // is a difference of long vectors, and so less sure than others; V inherits that until a sweep mends it.
  bool reaches_out() const {
    const double length = std::sqrt(xx_);
    double unsure = length * (*s_.doubt - 1.0);
    for (std::int64_t k = 0; k < s_.counts[kOpened]; ++k)
      unsure += std::abs(xhat_[rank() + k]) * (spread_[k] - 1.0);
    return rest_ > kInside * xx_ + kNoise * length * unsure;
  }

  // A step along x − Wᵀx̂, unless that is rounding and a small α would make much of it.
  bool steps_out() const { return *alpha_ > 0 && (outside_ || *alpha_ > kInside * xx_); }

  double spread(std::int64_t k) const {  // how long the vectors are that direction k is a difference of
    const double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    return std::max(1.0, std::sqrt(dot(C, C, ldq_) + dot(Tm, Tm, ldm_)));
  }

  std::int64_t rank() const { return s_.counts[kRank]; }
  std::int64_t filled() const { return s_.counts[kFilled]; }
  std::int64_t size() const { return s_.counts[kRank] + s_.counts[kOpened]; }
  double* H(std::int64_t i) const { return s_.H + i * ld_; }
  T* slot(T number) const { return s_.slots + static_cast<std::int64_t>(number) * ldm_; }

  // The kind of gradient 0 of this epoch.
  std::int64_t first_kind() const { return 1 + (s_.m + 1) * (epochs_.now() - epochs_.group_start()); }

  void wake(T* row) {
    T* columns = row + Table<T>::kSketch;
    if (row[Table<T>::kScale] != T(0)) epochs_.wake(static_cast<std::int64_t>(columns[kEpoch]), row);
    columns[kEpoch] = static_cast<T>(epochs_.group_start());
  }

  // From an epoch of the open group up to now. Of gradients that wait, those of earlier epochs join.
  void catch_up(T* row) {
    T* columns = row + Table<T>::kSketch;
    const auto kind = static_cast<std::int64_t>(columns[kKind]);
    const bool joins = kind > 0 && kind < first_kind();
    if (columns[kEpoch] < static_cast<T>(epochs_.now()))
      epochs_.catch_up(static_cast<std::int64_t>(columns[kEpoch]), gains_[joins ? kind : 0],
                       joins ? columns[kValue] : T(0), row);
    columns[kEpoch] = static_cast<T>(epochs_.now());
    if (joins) columns[kKind] = columns[kValue] = T(0);
  }

  // The same for a feature with a slot, at the end of its epoch.
  void empty_slot(T* row) {
    T* columns = row + Table<T>::kSketch;
    epochs_.catch_up(static_cast<std::int64_t>(columns[kEpoch]),
                     epochs_.gain(epochs_.now() - 1 - epochs_.group_start(), 0), slot(columns[kValue]), row);
    columns[kEpoch] = static_cast<T>(epochs_.now());
    columns[kKind] = columns[kValue] = T(0);
  }

  // Features that stand at the start of the group move on together.
  template <bool kExactly, class Sum>
  void combine(std::vector<Sum>& early, Sum* out) const {
    late_.template gather<kExactly>(table_, out);
    if (early_.count == 0) return;
    early.resize(static_cast<std::size_t>(table_.stride));
    early_.template gather<kExactly>(table_, early.data());
    out[Table<T>::kWeight] += early[Table<T>::kWeight];
    const T* map = epochs_.since_group_start();
    for (std::int64_t k = 0; k < q_; ++k, map += shape_.width) {
      const Sum zk = early[EpochShape::kHead + k];
      for (std::int64_t c = 0; c < shape_.width; ++c) out[c] += zk * static_cast<Sum>(map[c]);
    }
  }

  void express(const double* z, const double* g) {  // x̂ = Wx, from z = Vx and g = Gx
    std::copy_n(z, q_, z_.begin());
    for (std::int64_t j = 0; j < size(); ++j) {
      const std::int64_t k = j - rank();
      xhat_[j] = k < 0 ? z_[j] : dot(s_.C + k * ldq_, z_.data(), ldq_) + dot(s_.Tm + k * ldm_, g, ldm_);
    }
    std::fill(xhat_.begin() + size(), xhat_.end(), 0.0);
  }

  double inside() const { return dot(xhat_.data(), xhat_.data(), ld_); }

  // x̂ and what is left of ‖x‖², with sums in the next wider numbers: two rows that differ by little span a
  // direction of which nothing but that difference is known.
  void look_closely() {
    wide_.resize(static_cast<std::size_t>(table_.stride));
    combine<true>(wide_early_, wide_.data());
    wide_g_.assign(static_cast<std::size_t>(s_.m), Wide(0));
    products_exactly(wide_g_);
    Wide rest = 0;
    for (const Part* part : {&late_, &early_})
      for (std::int64_t i = 0; i < part->count; ++i)
        rest += static_cast<Wide>(part->x[i]) * static_cast<Wide>(part->x[i]);
    const Wide* z = wide_.data() + EpochShape::kHead;
    for (std::int64_t j = 0; j < size(); ++j) {
      const std::int64_t k = j - rank();
      Wide sum = k < 0 ? z[j] : Wide(0);
      if (k >= 0) {
        for (std::int64_t i = 0; i < rank(); ++i) sum += static_cast<Wide>(s_.C[k * ldq_ + i]) * z[i];
        for (std::int64_t b = 0; b < s_.m; ++b) sum += static_cast<Wide>(s_.Tm[k * ldm_ + b]) * wide_g_[b];
      }
      xhat_[j] = static_cast<double>(sum);
      rest -= sum * sum;
    }
    rest_ = static_cast<double>(rest);
  }

  void products() {  // g = Gx
    std::fill(g_.begin(), g_.end(), 0.0);
    std::fill(run_.begin(), run_.end(), T(0));
    std::int64_t length = 0;
    for (std::int64_t i = 0; i < touches_; ++i) {
      const Touched& t = touched_[i];
      if (t.gradient < s_.m) {
        g_[t.gradient] += static_cast<double>(x_[t.at]) * static_cast<double>(t.value);
        continue;
      }
      const T* G = slot(t.value);
      for (std::int64_t b = 0; b < ldm_; ++b) run_[b] += x_[t.at] * G[b];
      if (++length % kRun == 0) flush();
    }
    flush();
    double sum = 0;
    for (double product : g_) sum += product - product;
    if (sum != 0) {
      std::fill(g_.begin(), g_.end(), 0.0);
      products_exactly(g_);
    }
  }

  void flush() {
    for (std::int64_t b = 0; b < ldm_; ++b) g_[b] += static_cast<double>(run_[b]);
    std::fill(run_.begin(), run_.end(), T(0));
  }

  template <class Sum>
  void products_exactly(std::vector<Sum>& g) const {
    for (std::int64_t i = 0; i < touches_; ++i) {
      const Touched& t = touched_[i];
      const auto x = static_cast<Sum>(x_[t.at]);
      if (t.gradient < s_.m)
        g[t.gradient] += x * static_cast<Sum>(t.value);
      else
        for (std::int64_t b = 0; b < s_.m; ++b) g[b] += x * static_cast<Sum>(slot(t.value)[b]);
    }
  }

  // The row becomes gradient number `k`, at a length between one and two, so that products with long rows
  // stay in range: a power of two leaves its digits as they are.
  void record(std::int64_t k, const Table<T>& table, const std::int64_t* index, std::int64_t n) {
    const double scale = scale_of_row();
    const T start = static_cast<T>(epochs_.group_start());
    const std::int64_t first = first_kind();
    for (std::int64_t i = 0; i < n; ++i) {
      T* columns = table.row(index[i]) + Table<T>::kSketch;
      const T value = static_cast<T>(scale * static_cast<double>(x_[i]));
      if (columns[kKind] == T(0)) {
        if (columns[kEpoch] == start) s_.group[s_.counts[kMembers]++] = index[i];
        columns[kKind] = static_cast<T>(first + k);
        columns[kValue] = value;
        continue;
      }
      const std::int64_t gradient = static_cast<std::int64_t>(columns[kKind]) - first;
      if (gradient < s_.m) {
        const std::int64_t number = s_.counts[kRecent]++;
        s_.recent[number] = index[i];
        T* G = slot(static_cast<T>(number));
        std::fill(G, G + ldm_, T(0));
        G[gradient] = columns[kValue];
        columns[kKind] = static_cast<T>(first + s_.m);
        columns[kValue] = static_cast<T>(number);
      }
      slot(columns[kValue])[k] = value;
    }
  }

  double scale_of_row() const { return std::exp2(-std::floor(0.5 * std::log2(xx_))); }

  // W gains the part of gradient `row` outside its span.
  void open(std::int64_t row) {
    const std::int64_t n = size(), k = s_.counts[kOpened];
    const double length = std::sqrt(rest_);
    double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    std::fill(C, C + ldq_, 0.0);
    std::fill(Tm, Tm + ldm_, 0.0);
    for (std::int64_t j = 0; j < rank(); ++j) C[j] = -xhat_[j] / length;
    Tm[row] = 1.0 / (scale_of_row() * length);
    for (std::int64_t i = 0; i < k; ++i) {
      axpy(-xhat_[rank() + i] / length, s_.C + i * ldq_, C, ldq_);
      axpy(-xhat_[rank() + i] / length, s_.Tm + i * ldm_, Tm, ldm_);
    }
    spread_[k] = spread(k);
    for (std::int64_t j = 0; j <= n; ++j) s_.M[n * ld_ + j] = s_.M[j * ld_ + n] = 0;
    s_.c[n] = 0;
    xhat_[n] = length;
    rest_ = 0;
    outside_ = false;
    ++s_.counts[kOpened];
  }

  void solve() {  // y = Hx̂
    if (solved_) return;
    quadratic_ = 0;
    for (std::int64_t k = 0; k < size(); ++k) {
      y_[k] = dot(H(k), xhat_.data(), ld_);
      quadratic_ += xhat_[k] * y_[k];
    }
    std::fill(y_.begin() + size(), y_.end(), 0.0);
    solved_ = true;
  }

  void rank_one(double* matrix, double scale, const std::vector<double>& v) {  // += scale·vvᵀ
    for (std::int64_t i = 0; i < size(); ++i) axpy(scale * v[i], v.data(), matrix + i * ld_, ld_);
  }

  // H after W has gained a direction and A the gradient (x̂, ℓ), beta = r²/(1 + r²x̂ᵀHx̂): in blocks, with S the
  // new direction's Schur complement. Nothing is subtracted that is close, so that α = 0 needs no other case.
  void grow_inverse(double beta) {
    const std::int64_t n = size() - 1;
    const double length = xhat_[n], S = *alpha_ + beta * length * length, inverse = S > 0 ? 1.0 / S : 0.0;
    rank_one(s_.H, -beta * *alpha_ * inverse, y_);
    for (std::int64_t j = 0; j < n; ++j) H(n)[j] = H(j)[n] = -beta * length * inverse * y_[j];
    H(n)[n] = inverse;
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
    const std::int64_t n = size(), old = rank(), opened = s_.counts[kOpened];
    eigen_.compute(s_.M, ld_, n, s_.m - 1);
    std::vector<double>& D = eigen_.values;
    const double least = kGone * (n > 0 ? D[0] : 0.0);
    const double rho = s_.rule.apply(D, s_.m, least);
    *s_.shrunk += rho;
    *alpha_ += s_.rule.ridge * rho;
    std::int64_t kept = 0;
    while (kept < std::min(n, s_.m - 1) && D[kept] > least) ++kept;

    // With the eigenvectors in the columns of U: V ← (U_V + Cᵀ U_e)ᵀV + (Tᵀ U_e)ᵀG, and
    // Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e).
    const double *U = eigen_.vectors.data(), *Ue = U + old * eigen_.width;
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t k = 0; k < old; ++k)
      map_row(k, s_.c[k], U + k * eigen_.width, Ue, s_.C + k, ldq_, kept);
    for (std::int64_t b = 0; b < s_.m; ++b) map_row(q_ + b, 0.0, nullptr, Ue, s_.Tm + b, ldm_, kept);

    std::fill(v_.begin(), v_.end(), 0.0);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = 0; i < kept; ++i) v_[i] += U[k * eigen_.width + i] * xhat_[k];
    for (std::int64_t i = 0; i < kept; ++i) {
      double unsure = 1.0;
      for (std::int64_t k = 0; k < opened; ++k)
        unsure += std::abs(Ue[k * eigen_.width + i]) * (spread_[k] - 1.0);
      *s_.doubt = std::max(*s_.doubt, unsure);
    }
    std::fill(s_.M, s_.M + (2 * s_.m - 1) * ld_, 0.0);
    std::fill(s_.H, s_.H + (2 * s_.m - 1) * ld_, 0.0);
    for (std::int64_t i = 0; i < kept; ++i) {
      s_.M[i * ld_ + i] = D[i];
      H(i)[i] = 1.0 / (*alpha_ + D[i]);
    }
    s_.counts[kRank] = kept;
    s_.counts[kOpened] = 0;
    xhat_ = v_;
    rest_ = xx_ - inside();
    outside_ = reaches_out();
    std::fill(s_.c, s_.c + ld_, 0.0);
    ended_ = true;
  }

  // What one row of V or G contributes to w̄ and to the rows of V that are kept: `own` is its part of U, and
  // it is in the opened directions by `share`, `stride` apart.
  void map_row(std::int64_t at, double weight, const double* own, const double* Ue, const double* share,
               std::int64_t stride, std::int64_t kept) {
    const std::int64_t width = eigen_.width, old = rank();
    part_.resize(static_cast<std::size_t>(width));
    double* const sum = part_.data();
    for (std::int64_t i = 0; i < width; ++i) sum[i] = own != nullptr ? own[i] : 0.0;
    for (std::int64_t j = 0; j < s_.counts[kOpened]; ++j) {
      const double f = share[j * stride];
      if (f == 0) continue;
      weight += s_.c[old + j] * f;
      axpy(f, Ue + j * width, sum, width);
    }
    T* const row = map_.data() + at * shape_.width;
    row[Table<T>::kWeight] = static_cast<T>(weight);
    for (std::int64_t i = 0; i < kept; ++i) row[EpochShape::kHead + i] = static_cast<T>(sum[i]);
  }

  // Features with slots move on at once, all of the group when it is full.
  void end_epoch(const Table<T>& table) {
    epochs_.push(map_.data());
    for (std::int64_t i = 0; i < s_.counts[kRecent]; ++i) empty_slot(table.row(s_.recent[i]));
    s_.counts[kFilled] = s_.counts[kRecent] = 0;
    if (!epochs_.group_is_full()) return;
    const std::int64_t members = s_.counts[kMembers];
    for (std::int64_t i = 0; i < members; ++i) {
      if (i + kAhead < members) __builtin_prefetch(table.row(s_.group[i + kAhead]), 1);
      catch_up(table.row(s_.group[i]));
    }
    s_.counts[kMembers] = 0;
    epochs_.close_group();
  }

  // All features are brought up to date, and the count of maps starts again. What rounding did to V is mended
  // by one more map: VVᵀ = LLᵀ, V ← L⁻¹V.
  void sweep(const Table<T>& table, std::int64_t active) {
    const std::int64_t k = rank();
    std::vector<double> K(q_ * ldq_, 0.0), I(q_ * ldq_, 0.0), z(ldq_, 0.0);
    const Small L{K.data(), ldq_}, N{I.data(), ldq_};
    for (std::int64_t i = 0; i < active; ++i) {
      T* row = table.row(table.active[i]);
      settle(row);
      row[Table<T>::kSketch + kEpoch] = T(0);
      for (std::int64_t j = 0; j < k; ++j) z[j] = static_cast<double>(row[Table<T>::kSketch + kV + j]);
      for (std::int64_t j = 0; j < k; ++j) axpy(z[j], z.data(), L.row(j), padded4(j + 1));
    }
    epochs_.restart();
    s_.counts[kMet] = s_.counts[kMembers] = 0;
    *s_.doubt = 1.0;
    cholesky(L, k);
    for (std::int64_t j = 0; j < k; ++j) N.at(j, j) = 1.0;
    solve_lower(L, k, N);
    multiply_transposed_lower(L, k, s_.c);
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        map_[j * shape_.width + EpochShape::kHead + i] = static_cast<T>(N.at(i, j));
    epochs_.push(map_.data());
  }

  FrequentState<T> s_;
  double* alpha_;
  std::int64_t q_, ld_, ldq_, ldm_;
  EpochShape shape_;
  EpochMaps<T> epochs_;
  LeadingEigen eigen_;
  std::vector<Touched> touched_;  // features of the row with gradients of this epoch
  std::vector<Stamp> stamps_;
  std::vector<std::int64_t> gains_;  // by kind
  Part early_, late_;                // features of the row that stand at the group's start; at now
  std::vector<double> sum_, part_, xhat_, y_, v_, z_, g_;
  std::vector<Wide> wide_, wide_early_, wide_g_;
  std::vector<T> run_, map_;    // map: of the epoch's end, what V and G contribute to (w̄, V)
  std::vector<double> spread_;  // of the opened directions
  Table<T> table_{};            // of the row that was gathered
  const T* x_ = nullptr;
  double xx_ = 0, rest_ = 0, quadratic_ = 0;  // rest: of ‖x‖², outside of the span
  std::int64_t touches_ = 0;
  bool outside_ = false, solved_ = false, ended_ = false;
};

}  // namespace skn
