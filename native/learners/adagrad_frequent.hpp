// Frequent Directions under AdaGrad's metric: H = σI + (SᵀS + αI)^½, α = 0 for ADA-FD, growing for its robust
// form. Rows of S are the m − 1 that the last shrink left and the vectors v of the rounds since then, up to
// m.
//
// All small computation is done in an orthonormal basis W = [V; C V + T G] of the rows: V is from the last
// shrink, the others were opened by rows since then. There S has the singular values s and the vectors E,
// which follow each new row (SingularUpdate). Before a row is learned from, W is made to contain it, so that
// a step H⁻¹g is one of b alone, direction by direction: as (g − (a part of it))/h, in the features, it would
// lose as many digits as H has. Features go through the change of basis at an epoch's end when they are
// touched next.
//
// What a row has outside of W is its difference from a combination of the table's columns. Where that is
// small, products of columns tell little about it, and a direction made of them would not be orthogonal to
// the others: its error, divided by its length, goes into all that are made of it later. So it is then
// computed as it is, number by number, orthogonalised again until that changes nothing, and kept as a column
// of its own (`find`). That is a pass over all features: it is made where there are few, or rows have met as
// many since the last.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "curvature/delayed_maps.hpp"
#include "eigen/singular_update.hpp"
#include "learners/adagrad_basis.hpp"

namespace skn {

template <class T>
struct FrequentBasisState {
  std::int64_t m;
  double ridge;           // of each shrink that goes into α: ½ for the robust form, else 0
  std::int64_t* counts;   // see kRank and so on
  double* alpha;          // 1
  double* doubt;          // how many times rounding V may be off from orthonormal
  double *s, *E;          // ld and (2m − 1) × ld
  double *C, *Tm;         // m × ldq and m × ldm: the opened directions in terms of V and of G
  std::int64_t* touched;  // features since the last shrink, repeats included
  std::int64_t room;      // how many it has room for
  MapState<T> epochs;
};

// Columns of the table: count of epochs, V (q numbers), weights of further classes, G (m numbers). Further
// weights go through the epochs' maps like coordinates, each kept as it is and gaining what b leaves to w̄.
template <class T>
class FrequentBasis {
 public:
  static constexpr bool kLazy = true, kSpans = true, kSums = false;

  FrequentBasis(const FrequentBasisState<T>& s, const BlockColumns& columns)
      : s_(s),
        at_(columns),
        q_(std::max<std::int64_t>(s.m - 1, 1)),
        ld_(padded4(2 * s.m - 1)),
        ldq_(padded4(q_)),
        ldm_(padded4(s.m)),
        shape_{q_ + columns.weights - 1, padded4(q_ + columns.weights)},
        epochs_(shape_, s.epochs),
        E_{s.E, ld_},
        xhat_(ld_),
        v_(ld_),
        y_(ld_),
        map_(shape_.size()),
        gain_(s.m * shape_.width),
        spread_(s.m),
        column_(s.m) {
    for (std::int64_t k = 0; k < opened(); ++k) describe(k);
  }

  std::int64_t size() const { return s_.counts[kRank] + s_.counts[kOpened]; }
  std::int64_t ld() const { return ld_; }
  const double* x() const { return xhat_.data(); }

  void prepare(T* row) {
    T* columns = row + at_.basis;
    if (row[Table<T>::kScale] != T(0))
      epochs_.apply(static_cast<std::int64_t>(columns[0]), row + at_.weight, columns + 1);
    columns[0] = static_cast<T>(epochs_.now());
  }

  void begin(const double* row, double xx, const Coefficients&) {
    xx_ = xx;
    std::fill(xhat_.begin(), xhat_.end(), 0.0);
    combine(row + at_.basis + 1, row + at_.basis + 1 + shape_.q, xhat_.data());
    rest_ = xx_ - dot(xhat_.data(), xhat_.data(), ld_);
  }

  // Sums in T will not tell how far x reaches out of the span.
  bool doubtful() const { return sizeof(T) == 4 && rest_ < kDoubtful * xx_; }

  // W gains the part of x that is outside its span, if there is one.
  void open(const Table<T>& table, std::int64_t active, const RowView<T>& row, Coefficients& w,
            double* step) {
    s_.counts[kMet] += row.size;
    s_.counts[kSince] += row.size;
    if (!(xx_ > 0) || opened() == s_.m || size() >= active) return;
    const double enough = few(active) ? kHalf : kSweep * s_.counts[kSince] > active ? kDoubtful : 0.0;
    if (rest_ < enough * xx_)
      find(table, active, row, w);
    else if (reaches_out())
      deduce(row, w, step);
  }

  // Takes in v = r·x. Epochs are rounds, as in the papers: if they were gradients, it would be for rounding
  // to say when to shrink wherever a prediction equals its label.
  void take(double r, Coefficients&, double*) {
    for (std::int64_t j = 0; j < ld_; ++j) v_[j] = r * xhat_[j];
    if (r != 0) update_.add(s_.s, E_, size(), v_.data());
    if (++s_.counts[kFilled] == s_.m) shrink();
  }

  double floor() const { return std::sqrt(*s_.alpha); }

  double quadratic(double h) {  // xᵀH⁻¹x
    solve(xhat_.data(), h);
    return dot(xhat_.data(), y_.data(), ld_);
  }

  // β ← β − (H + cI)⁻¹(amount·x + c·β), h = σ + α^½ + c; a becomes `next` = a(1 − c/h).
  void descend(Coefficients& w, std::int64_t k, double amount, double c, double h, double next) {
    const double a = *w.a;
    double *b = w.B(k), *u = w.U(k);
    for (std::int64_t j = 0; j < ld_; ++j) v_[j] = amount * xhat_[j] + c * a * (u[j] + b[j]);
    solve(v_.data(), h);
    if (c == 0)
      axpy(-1.0 / a, y_.data(), b, ld_);
    else
      for (std::int64_t j = 0; j < ld_; ++j) b[j] = (a * (u[j] + b[j]) - y_[j]) / next - u[j];
  }

  // β = η(H + cI)⁻¹(w̄ + Wᵀc), where w̄ + Wᵀc = −Σg gains −slope·x: of the sum of gradients, too, W has all
  // that it can, and w̄ is the rest.
  void average(Coefficients& w, std::int64_t k, double slope, double h) {
    double *b = w.B(k), *u = w.U(k), *c = w.C(k);
    axpy(-slope, xhat_.data(), c, ld_);
    for (std::int64_t j = 0; j < ld_; ++j) v_[j] = u[j] + c[j];
    solve(v_.data(), h);
    for (std::int64_t j = 0; j < ld_; ++j) b[j] = h * y_[j] - u[j];
  }

  // out: rows P_j with H = hI + (PW)ᵀ(PW); returns how many.
  std::int64_t factor(std::vector<double>& out) {
    out.clear();
    const std::int64_t n = size();
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < ld_; ++i) out.push_back(E_.at(j, i) * std::sqrt(beyond(s_.s[j])));
    return n;
  }

  void coordinates(const T* row, double* out) const {  // the feature's column of W
    const T* columns = row + at_.basis + 1;
    std::fill(out, out + ld_, 0.0);
    combine(columns, columns + shape_.q, out);
  }

  void finish(const Table<T>& table, std::int64_t active, Coefficients& w) {
    if (ended_) {
      ended_ = false;
      change_basis(w);
      end_epoch(table, active);
      // A sweep now and then costs little, keeps V orthonormal, and spares features long delays.
      const bool due = epochs_.full() || s_.counts[kMet] > kSweep * active;
      if (due || (crooked() && (few(active) || kOften * s_.counts[kMet] > kSweep * active)))
        sweep(table, active, w);
    }
    if (*w.a < kSmall && !w.fixed) rescale(table, active, w);
  }

 private:
  // Rank of V, directions opened since, rounds since, entries of `touched`, entries met since the last sweep,
  // and since the last pass over all features; whether G has columns that are not in the features of its rows
  // alone.
  enum { kRank, kOpened, kFilled, kTouched, kMet, kSince, kEverywhere };
  // Share of ‖x‖² outside the span below which it is rounding; what rounding a vector of length one gains.
  static constexpr double kInside = sizeof(T) == 4 ? 3e-7 : 1e-12;
  static constexpr double kDoubtful = 1e-4;
  static constexpr double kNoise = 16.0 * std::numeric_limits<T>::epsilon();
  static constexpr double kRounding = 4.0 * std::numeric_limits<T>::epsilon();
  static constexpr double kHalf = 0.25;  // what is left of a row is half as long: its digits are safe
  static constexpr double kMuch = 0.01;  // after a subtraction; less, and rounding shows in what is left
  static constexpr std::int64_t kSweep = 16, kOften = 4;
  static constexpr double kCrooked = sizeof(T) == 4 ? 1e-5 : 1e-12;  // error of V that is not built upon
  static constexpr double kWorst = 1e18, kUsual = 100;
  static constexpr double kGone = 1e-15;   // share of s₁ below which a direction has no length
  static constexpr double kSmall = 1e-12;  // of a: time to multiply it into the table

  std::int64_t rank() const { return s_.counts[kRank]; }
  std::int64_t opened() const { return s_.counts[kOpened]; }

  bool few(std::int64_t active) const {
    return active <= 2048 + 2 * ld_ * ld_;
  }  // a pass costs as the SVD does

  bool crooked() const { return *s_.doubt * std::numeric_limits<T>::epsilon() > kCrooked; }

  // (s² + α)^½ − α^½: what a direction has in the metric beyond those never seen
  double beyond(double s) const {
    const double sum = std::hypot(s, std::sqrt(*s_.alpha)) + std::sqrt(*s_.alpha);
    return sum > 0 ? s * (s / sum) : 0.0;
  }

  void solve(const double* v, double h) {  // y = W(H + …)⁻¹Wᵀv
    std::fill(y_.begin(), y_.end(), 0.0);
    for (std::int64_t j = 0; j < size(); ++j)
      axpy(dot(E_.row(j), v, ld_) / (h + beyond(s_.s[j])), E_.row(j), y_.data(), ld_);
  }

  template <class S>
  void combine(const S* V, const S* G, double* out) const {  // [V; C V + T G]
    for (std::int64_t j = 0; j < rank(); ++j) out[j] = static_cast<double>(V[j]);
    for (std::int64_t i = 0; i < opened(); ++i) {
      const double *C = s_.C + i * ldq_, *Tm = s_.Tm + i * ldm_;
      double sum = 0;
      if (column_[i]) {
        sum = static_cast<double>(G[i]);
      } else {
        for (std::int64_t k = 0; k < rank(); ++k) sum += C[k] * static_cast<double>(V[k]);
        for (std::int64_t k = 0; k <= i; ++k) sum += Tm[k] * static_cast<double>(G[k]);
      }
      out[rank() + i] = sum;
    }
  }

  // Does x reach out of the span by more than rounding? A direction that was opened by little of a gradient
  // is a difference of long vectors, and so less sure than others; V inherits that until a sweep mends it.
  // (Over many epochs the bound `doubt` grows far beyond errors that were ever seen.)
  bool reaches_out() const {
    const double length = std::sqrt(xx_);
    double unsure = length * (std::min(*s_.doubt, kUsual) - 1.0);
    for (std::int64_t k = 0; k < opened(); ++k) unsure += std::abs(xhat_[rank() + k]) * (spread_[k] - 1.0);
    return rest_ > kInside * xx_ + kNoise * length * unsure;
  }

  // Is direction k a column of G by itself? How long are the vectors that it is a difference of?
  void describe(std::int64_t k) {
    const double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    const double square = dot(C, C, ldq_) + dot(Tm, Tm, ldm_);
    column_[k] =
        Tm[k] == 1.0 && std::count(C, C + ldq_, 0.0) == ldq_ && std::count(Tm, Tm + ldm_, 0.0) == ldm_ - 1;
    spread_[k] = std::max(1.0, std::sqrt(square));
  }

  // One more direction, which x is in by `length`.
  std::int64_t add_direction(double length) {
    const std::int64_t n = size(), k = opened();
    std::fill_n(s_.C + k * ldq_, ldq_, 0.0);
    std::fill_n(s_.Tm + k * ldm_, ldm_, 0.0);
    std::fill_n(E_.row(n), ld_, 0.0);
    E_.at(n, n) = 1.0;
    s_.s[n] = 0.0;
    xhat_[n] = length;
    rest_ = 0;
    ++s_.counts[kOpened];
    return k;
  }

  // x − Wᵀx̂ as a combination of V, G and x; x becomes a column of G, at unit length.
  void deduce(const RowView<T>& row, Coefficients& w, double* step) {
    const double length = std::sqrt(rest_);
    const std::int64_t k = add_direction(length), n = size() - 1;
    double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    for (std::int64_t j = 0; j < rank(); ++j) C[j] = -xhat_[j] / length;
    Tm[k] = std::sqrt(xx_) / length;
    for (std::int64_t i = 0; i < k; ++i) {
      axpy(-xhat_[rank() + i] / length, s_.C + i * ldq_, C, ldq_);
      axpy(-xhat_[rank() + i] / length, s_.Tm + i * ldm_, Tm, ldm_);
    }
    describe(k);
    for (std::int64_t j = 0; j < w.count; ++j) {
      w.U(j)[n] = (w.wx[j] - dot(w.U(j), xhat_.data(), ld_)) / length;
      w.B(j)[n] = w.C(j)[n] = 0;
    }
    step[at_.basis + 1 + shape_.q + k] = 1.0 / std::sqrt(xx_);
    const std::int64_t count = std::min(row.size, s_.room - s_.counts[kTouched]);
    std::copy_n(row.index, count, s_.touched + s_.counts[kTouched]);
    s_.counts[kTouched] += count;
  }

  // x − Wᵀx̂ itself, feature by feature. Rounding leaves a part of it in the span, which the next round takes
  // out; two rounds are enough, unless next to nothing remains, and then there is no direction.
  void find(const Table<T>& table, std::int64_t active, const RowView<T>& row, Coefficients& w) {
    s_.counts[kSince] = 0;
    table.sort_active(active);
    residual_.assign(static_cast<std::size_t>(active), 0.0);
    for (std::int64_t i = 0, k = 0; i < active; ++i) {
      if (k < row.size && row.index[k] == table.active[i]) residual_[i] = static_cast<double>(row.value[k++]);
      prepare(table.row(table.active[i]));
    }
    const double least = kRounding * std::sqrt(xx_);
    double before = std::sqrt(xx_), length = subtract(table, active, xhat_.data());
    for (int round = 0; round < 3 && length > least && length * length < kMuch * before * before; ++round) {
      before = length;
      project(table, active);
      for (std::int64_t j = 0; j < size(); ++j) xhat_[j] += v_[j];
      length = subtract(table, active, v_.data());
    }
    if (!(length > least)) return;
    const std::int64_t n = size(), k = add_direction(length), column = at_.basis + 1 + shape_.q + k;
    s_.Tm[k * ldm_ + k] = 1.0;
    describe(k);
    s_.counts[kEverywhere] = 1;
    for (std::int64_t j = 0; j < w.count; ++j) w.U(j)[n] = w.B(j)[n] = w.C(j)[n] = 0;
    for (std::int64_t i = 0; i < active; ++i) {
      T* at = table.row(table.active[i]);
      at[column] = static_cast<T>(residual_[i] / length);
      for (std::int64_t j = 0; j < w.count; ++j)
        w.U(j)[n] += static_cast<double>(at[column]) * static_cast<double>(at[at_.column(j)]);
    }
  }

  double subtract(const Table<T>& table, std::int64_t active,
                  const double* v) {  // residual −= Wᵀv; its length
    double sum = 0;
    for (std::int64_t i = 0; i < active; ++i) {
      coordinates(table.row(table.active[i]), y_.data());
      residual_[i] -= dot(y_.data(), v, ld_);
      sum += residual_[i] * residual_[i];
    }
    return std::sqrt(sum);
  }

  void project(const Table<T>& table, std::int64_t active) {  // v = W residual
    std::fill(v_.begin(), v_.end(), 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      coordinates(table.row(table.active[i]), y_.data());
      axpy(residual_[i], y_.data(), v_.data(), ld_);
    }
  }

  // All squared singular values lose the m-th, and those that were not larger are gone. The basis changes
  // when the round is over.
  void shrink() {
    const std::int64_t n = size(), m = s_.m;
    const double last = n >= m ? s_.s[m - 1] : 0.0, least = kGone * (n > 0 ? s_.s[0] : 0.0);
    *s_.alpha += s_.ridge * last * last;
    kept_ = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double s = i < m - 1 ? std::sqrt(s_.s[i] - last) * std::sqrt(s_.s[i] + last) : 0.0;
      s_.s[i] = s > least ? s : 0.0;
      if (s > least) kept_ = i + 1;
    }
    ended_ = true;
  }

  // The small part of an epoch's end: what V and G contribute to w̄ and to the directions that are kept.
  void change_basis(Coefficients& w) {
    const std::int64_t n = size();
    std::fill(map_.begin(), map_.end(), T(0));
    std::fill(gain_.begin(), gain_.end(), T(0));
    for (std::int64_t k = 0; k < w.count; ++k) {
      if (k > 0) map_[(q_ + k - 1) * shape_.width + q_ + k] = T(1);  // further weights stay
      send(leave(w, k), k == 0 ? 0 : q_ + k);
    }
    // The error of VVᵀ goes into products of what V and G contribute.
    double most = 1.0;
    for (std::int64_t i = 0; i < kept_; ++i) most = std::max(most, send(E_.row(i), 1 + i));
    *s_.doubt = std::min(*s_.doubt * most + 1.0, kWorst);
    std::fill_n(s_.E, n * ld_, 0.0);
    for (std::int64_t i = 0; i < kept_; ++i) E_.at(i, i) = 1.0;
    s_.counts[kRank] = kept_;
    s_.counts[kOpened] = s_.counts[kFilled] = 0;
  }

  // The coefficients of weight k in the directions that are kept; returns what of Wᵀb, or of the sum of
  // gradients Wᵀc, is left to w̄. Mirror descent leaves all of it, dual averaging what V cannot take.
  const double* leave(Coefficients& w, std::int64_t k) {
    double *b = w.B(k), *u = w.U(k), *inside = w.fixed ? w.C(k) : b;
    std::copy_n(inside, ld_, y_.begin());
    std::fill(v_.begin(), v_.end(), 0.0);
    for (std::int64_t i = 0; i < kept_; ++i) {
      v_[i] = dot(E_.row(i), u, ld_) + dot(E_.row(i), inside, ld_);
      if (w.fixed) axpy(-v_[i], E_.row(i), y_.data(), ld_);
    }
    if (!w.fixed) {
      std::copy_n(v_.begin(), ld_, u);
      std::fill_n(b, ld_, 0.0);
      return y_.data();
    }
    std::fill_n(inside, ld_, 0.0);
    std::vector<double> next_u(ld_, 0.0), next_b(ld_, 0.0);
    for (std::int64_t i = 0; i < kept_;
         ++i) {  // rounding leaves a little of V in w̄, which counts for much there
      const double* e = E_.row(i);
      next_u[i] = dot(e, u, ld_) + dot(e, y_.data(), ld_);
      next_b[i] = dot(e, b, ld_) - dot(e, y_.data(), ld_);
      inside[i] = v_[i] - next_u[i];
    }
    std::copy_n(next_u.begin(), ld_, u);
    std::copy_n(next_b.begin(), ld_, b);
    return y_.data();
  }

  // Wᵀe = Vᵀ(e_V + Cᵀe_o) + Gᵀ(Tᵀe_o) goes to a column of the map; returns the square of its length.
  double send(const double* e, std::int64_t column) {
    const double* o = e + rank();
    double square = 0;
    for (std::int64_t k = 0; k < rank(); ++k) {
      double sum = e[k];
      for (std::int64_t i = 0; i < opened(); ++i) sum += o[i] * s_.C[i * ldq_ + k];
      map_[k * shape_.width + column] = static_cast<T>(sum);
      square += sum * sum;
    }
    for (std::int64_t g = 0; g < opened(); ++g) {
      double sum = 0;
      for (std::int64_t i = g; i < opened(); ++i) sum += o[i] * s_.Tm[i * ldm_ + g];
      gain_[g * shape_.width + column] = static_cast<T>(sum);
      square += sum * sum;
    }
    return square;
  }

  // Features in which G has numbers go through the map at once, and take these along.
  void end_epoch(const Table<T>& table, std::int64_t active) {
    if (s_.counts[kEverywhere] != 0) {
      for (std::int64_t i = 0; i < active; ++i) prepare(table.row(table.active[i]));
      advance(table, table.active, active);
    } else {
      advance(table, s_.touched, s_.counts[kTouched]);
    }
    epochs_.push(map_.data());
    s_.counts[kTouched] = s_.counts[kEverywhere] = 0;
  }

  void advance(const Table<T>& table, const std::int64_t* features, std::int64_t n) {
    const std::int64_t next = epochs_.now() + 1;
    for (std::int64_t i = 0; i < n; ++i) {
      T* row = table.row(features[i]);
      T &w = row[at_.weight], *columns = row + at_.basis, *z = columns + 1, *g = z + shape_.q;
      if (static_cast<std::int64_t>(columns[0]) == next) continue;  // met before in the list
      columns[0] = static_cast<T>(next);
      epochs_.multiply(map_.data(), &w, z);
      for (std::int64_t b = 0; b < s_.m; ++b) {
        if (g[b] == T(0)) continue;
        const T* image = &gain_[b * shape_.width];
        w += g[b] * image[0];
        for (std::int64_t j = 0; j < shape_.q; ++j) z[j] += g[b] * image[1 + j];
        g[b] = T(0);
      }
    }
  }

  // All features are brought up to date, and the count of maps starts again. What rounding did to V is mended
  // by one more map: VVᵀ = LLᵀ, V ← L⁻¹V.
  void sweep(const Table<T>& table, std::int64_t active, Coefficients& w) {
    const std::int64_t n = rank();
    std::vector<double> K(q_ * ldq_, 0.0), I(q_ * ldq_, 0.0), z(ld_, 0.0);
    const Small L{K.data(), ldq_}, N{I.data(), ldq_};
    std::fill(w.u, w.u + w.count * ld_, 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      T* row = table.row(table.active[i]);
      prepare(row);
      row[at_.basis] = T(0);
      coordinates(row, z.data());
      for (std::int64_t j = 0; j < n; ++j) axpy(z[j], z.data(), L.row(j), padded4(j + 1));
      for (std::int64_t k = 0; k < w.count; ++k)
        axpy(static_cast<double>(row[at_.column(k)]), z.data(), w.U(k), ld_);
    }
    epochs_.restart();
    s_.counts[kMet] = 0;
    *s_.doubt = 1.0;
    cholesky(L, n);
    for (std::int64_t j = 0; j < n; ++j) N.at(j, j) = 1.0;
    solve_lower(L, n, N);
    for (std::int64_t k = 0; k < w.count; ++k) {
      solve_lower(L, n, w.U(k));
      multiply_transposed_lower(L, n, w.C(k));
    }
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t k = 1; k < w.count; ++k) map_[(q_ + k - 1) * shape_.width + q_ + k] = T(1);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) map_[j * shape_.width + 1 + i] = static_cast<T>(N.at(i, j));
    epochs_.push(map_.data());
  }

  void rescale(const Table<T>& table, std::int64_t active, Coefficients& w) {
    for (std::int64_t i = 0; i < active; ++i) {
      T* row = table.row(table.active[i]);
      prepare(row);
      for (std::int64_t k = 0; k < w.count; ++k)
        row[at_.column(k)] = static_cast<T>(*w.a * static_cast<double>(row[at_.column(k)]));
    }
    for (std::int64_t j = 0; j < w.count * ld_; ++j) w.b[j] *= *w.a, w.u[j] *= *w.a;
    *w.a = 1.0;
  }

  FrequentBasisState<T> s_;
  BlockColumns at_;
  std::int64_t q_, ld_, ldq_, ldm_;
  MapShape shape_;
  DelayedMaps<T> epochs_;
  Small E_;
  std::vector<double> xhat_, v_, y_;
  std::vector<T> map_, gain_;  // of the epoch's end: what V and G contribute to weights and V
  // Of the opened directions: how long the vectors are that they are differences of; is each a column of G?
  std::vector<double> spread_;
  std::vector<char> column_;
  std::vector<double> residual_;
  SingularUpdate update_;
  std::int64_t kept_ = 0;
  double xx_ = 0, rest_ = 0;  // rest: of ‖x‖², outside of the span
  bool ended_ = false;
};

}  // namespace skn
