// Frequent Directions under AdaGrad's metric: H = σI + (SᵀS + αI)^½, α = 0 for ADA-FD, growing for its robust
// form. The sketch is that of frequent.hpp: S = [diag(D) V; G], W = [V; C V + T G] an orthonormal basis of
// its rows, M = W SᵀS Wᵀ; features go through the change of basis at an epoch's end when they are touched
// next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "curvature/delayed_maps.hpp"
#include "curvature/frequent.hpp"
#include "eigen/symmetric_eigen.hpp"
#include "learners/adagrad_basis.hpp"

namespace skn {

template <class T>
struct FrequentBasisState {
  std::int64_t m;
  ShrinkRule rule;
  std::int64_t* counts;   // rank of V, directions that G has opened, rows in G, touched, met since a sweep
  double* alpha;          // 1
  double* doubt;          // how many times rounding V may be off from orthonormal
  double* M;              // (2m − 1) × ld
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
  static constexpr bool kLazy = true;

  FrequentBasis(const FrequentBasisState<T>& s, const BlockColumns& columns)
      : s_(s),
        at_(columns),
        q_(std::max<std::int64_t>(s.m - 1, 1)),
        ld_(padded4(2 * s.m - 1)),
        ldq_(padded4(q_)),
        ldm_(padded4(s.m)),
        shape_{q_ + columns.weights - 1, padded4(q_ + columns.weights)},
        epochs_(shape_, s.epochs),
        xhat_(ld_),
        map_(shape_.size()),
        gain_(s.m * shape_.width),
        spread_(s.m) {
    for (std::int64_t k = 0; k < opened(); ++k) spread_[k] = spread(k);
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
    inside_ = dot(xhat_.data(), xhat_.data(), ld_);
  }

  // Sums in T will not tell how far x reaches out of the span.
  bool doubtful() const { return sizeof(T) == 4 && xx_ - inside_ < kDoubtful * xx_; }

  void take(double r, Coefficients& w, double* step, const std::int64_t* index, std::int64_t n,
            std::int64_t active) {
    const std::int64_t row = s_.counts[kFilled]++;
    step[at_.basis + 1 + shape_.q + row] =
        1.0 / std::sqrt(xx_);  // at unit length: only its direction matters
    for (std::int64_t i = 0; i < n; ++i) s_.touched[s_.counts[kTouched]++] = index[i];
    s_.counts[kMet] += n;
    // What is outside of a span that has as many directions as there are features is rounding, unless it is
    // much: then one of those directions was.
    const bool room = size() < active || xx_ - inside_ > kDoubtful * xx_;
    if (reaches_out() && size() < 2 * s_.m - 1 && room) open(row, w);
    for (std::int64_t i = 0; i < size(); ++i)
      for (std::int64_t j = 0; j < size(); ++j) s_.M[i * ld_ + j] += r * xhat_[i] * (r * xhat_[j]);
    spectrum_.forget();
    if (s_.counts[kFilled] == s_.m) shrink(w);
  }

  double floor() const { return std::sqrt(*s_.alpha); }
  double steepest() {  // the largest eigenvalue of H − hI
    know();
    return beyond(spectrum_.largest());
  }

  void times_gram(const double* b, double* out) const { axpy(1.0, b, out, ld_); }  // W is orthonormal

  void filter(const double* v, double h, double* out) {  // out = Nv
    know();
    spectrum_.filter(v, [&](double value) { return beyond(value) / (h + beyond(value)); }, out);
  }

  // out: rows P_j with H = hI + (PW)ᵀ(PW); returns how many.
  std::int64_t factor(std::vector<double>& out) {
    know();
    out.clear();
    const std::int64_t n = size();
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < ld_; ++i)
        out.push_back(i < n ? spectrum_.vector(j)[i] * std::sqrt(beyond(spectrum_.value(j))) : 0.0);
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
      end_epoch(table);
      // A sweep now and then costs little, keeps V orthonormal, and spares features long delays.
      if (epochs_.full() || s_.counts[kMet] > kSweep * active) sweep(table, active, w);
    }
    if (*w.a < kSmall && !w.fixed) rescale(table, active, w);
  }

 private:
  enum { kRank, kOpened, kFilled, kTouched, kMet };
  // Share of ‖x‖² outside the span below which it is rounding; what rounding a vector of length one gains.
  static constexpr double kInside = sizeof(T) == 4 ? 3e-7 : 1e-12;
  static constexpr double kDoubtful = 1e-4;
  static constexpr double kNoise = 16.0 * std::numeric_limits<T>::epsilon();
  static constexpr std::int64_t kSweep = 16;
  static constexpr double kGone = 1e-13;   // share of λ₁ below which a direction has no length
  static constexpr double kSmall = 1e-12;  // of a: time to multiply it into the table

  std::int64_t rank() const { return s_.counts[kRank]; }
  std::int64_t opened() const { return s_.counts[kOpened]; }
  void know() { spectrum_.know(s_.M, ld_, size()); }

  // (λ + α)^½ − α^½: what a direction has in the metric beyond those never seen
  double beyond(double value) const {
    const double positive = std::max(value, 0.0),
                 sum = std::sqrt(positive + *s_.alpha) + std::sqrt(*s_.alpha);
    return sum > 0 ? positive / sum : 0.0;
  }

  template <class S>
  void combine(const S* V, const S* G, double* out) const {  // [V; C V + T G]
    for (std::int64_t j = 0; j < rank(); ++j) out[j] = static_cast<double>(V[j]);
    for (std::int64_t i = 0; i < opened(); ++i) {
      const double *C = s_.C + i * ldq_, *Tm = s_.Tm + i * ldm_;
      double sum = 0;
      for (std::int64_t k = 0; k < rank(); ++k) sum += C[k] * static_cast<double>(V[k]);
      for (std::int64_t k = 0; k < s_.counts[kFilled]; ++k) sum += Tm[k] * static_cast<double>(G[k]);
      out[rank() + i] = sum;
    }
  }

  // Does x reach out of the span by more than rounding? A direction that was opened by little of a gradient
  // is a difference of long vectors, and so less sure than others; V inherits that until a sweep mends it.
  bool reaches_out() const {
    const double length = std::sqrt(xx_);
    double unsure = length * (*s_.doubt - 1.0);
    for (std::int64_t k = 0; k < opened(); ++k) unsure += std::abs(xhat_[rank() + k]) * (spread_[k] - 1.0);
    return xx_ - inside_ > kInside * xx_ + kNoise * length * unsure;
  }

  double spread(std::int64_t k) const {  // how long the vectors are that direction k is a difference of
    const double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    return std::max(1.0, std::sqrt(dot(C, C, ldq_) + dot(Tm, Tm, ldm_)));
  }

  // W gains the part of x that is outside its span.
  void open(std::int64_t row, Coefficients& w) {
    const double length = std::sqrt(xx_ - inside_);
    const std::int64_t k = opened(), n = size();
    double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    std::fill(C, C + ldq_, 0.0);
    std::fill(Tm, Tm + ldm_, 0.0);
    for (std::int64_t j = 0; j < rank(); ++j) C[j] = -xhat_[j] / length;
    Tm[row] = std::sqrt(xx_) / length;
    for (std::int64_t i = 0; i < k; ++i) {
      axpy(-xhat_[rank() + i] / length, s_.C + i * ldq_, C, ldq_);
      axpy(-xhat_[rank() + i] / length, s_.Tm + i * ldm_, Tm, ldm_);
    }
    spread_[k] = spread(k);
    for (std::int64_t j = 0; j <= n; ++j) s_.M[n * ld_ + j] = s_.M[j * ld_ + n] = 0;
    for (std::int64_t j = 0; j < w.count; ++j) {
      w.U(j)[n] = (w.wx[j] - dot(w.U(j), xhat_.data(), ld_)) / length;
      w.B(j)[n] = 0;
    }
    xhat_[n] = length;
    inside_ = xx_;
    ++s_.counts[kOpened];
  }

  // The small part of an epoch's end. The current row moves on in the new basis.
  void shrink(Coefficients& w) {
    const std::int64_t n = size();
    know();
    std::vector<double> D(n);
    for (std::int64_t i = 0; i < n; ++i) D[i] = spectrum_.value(i);
    const double least = kGone * spectrum_.largest();
    *s_.alpha += s_.rule.ridge * s_.rule.apply(D, s_.m, least);

    std::fill(map_.begin(), map_.end(), T(0));
    std::fill(gain_.begin(), gain_.end(), T(0));
    for (std::int64_t k = 1; k < w.count; ++k)  // further weights stay
      map_[(q_ + k - 1) * shape_.width + q_ + k] = T(1);
    if (!w.fixed) {  // Bᵀb goes into w̄
      for (std::int64_t k = 0; k < w.count; ++k) {
        send(w.B(k), k == 0 ? 0 : q_ + k);
        axpy(1.0, w.B(k), w.U(k), ld_);
        std::fill(w.B(k), w.B(k) + ld_, 0.0);
      }
    }
    std::vector<double> next(ld_, 0.0), u(w.count * ld_, 0.0);
    std::fill(s_.M, s_.M + (2 * s_.m - 1) * ld_, 0.0);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < std::min(n, s_.m - 1); ++i) {
      if (!(D[i] > least)) continue;
      const double* e = spectrum_.vector(i);
      double unsure = 1.0;
      for (std::int64_t k = 0; k < opened(); ++k) unsure += std::abs(e[rank() + k]) * (spread_[k] - 1.0);
      *s_.doubt = std::max(*s_.doubt, unsure);
      send(e, 1 + kept);
      for (std::int64_t k = 0; k < n; ++k) next[kept] += e[k] * xhat_[k];
      for (std::int64_t j = 0; j < w.count; ++j)
        for (std::int64_t k = 0; k < n; ++k) u[j * ld_ + kept] += e[k] * w.U(j)[k];
      s_.M[kept * ld_ + kept] = D[i];
      ++kept;
    }
    std::copy(u.begin(), u.end(), w.u);
    xhat_ = next;
    inside_ = dot(xhat_.data(), xhat_.data(), ld_);
    s_.counts[kRank] = kept;
    s_.counts[kOpened] = 0;
    spectrum_.forget();
    ended_ = true;
  }

  // Wᵀe = Vᵀ(e_V + Cᵀe_o) + Gᵀ(Tᵀe_o) goes to a column of the map.
  void send(const double* e, std::int64_t column) {
    const double* o = e + rank();
    for (std::int64_t k = 0; k < rank(); ++k) {
      double sum = e[k];
      for (std::int64_t i = 0; i < opened(); ++i) sum += o[i] * s_.C[i * ldq_ + k];
      map_[k * shape_.width + column] = static_cast<T>(sum);
    }
    for (std::int64_t g = 0; g < s_.m; ++g) {
      double sum = 0;
      for (std::int64_t i = 0; i < opened(); ++i) sum += o[i] * s_.Tm[i * ldm_ + g];
      gain_[g * shape_.width + column] = static_cast<T>(sum);
    }
  }

  // Features of this epoch's gradients go through the map at once, and take their gradients along.
  void end_epoch(const Table<T>& table) {
    const std::int64_t next = epochs_.now() + 1;
    for (std::int64_t i = 0; i < s_.counts[kTouched]; ++i) {
      T* row = table.row(s_.touched[i]);
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
    epochs_.push(map_.data());
    s_.counts[kFilled] = s_.counts[kTouched] = 0;
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
      multiply_transposed_lower(L, n, w.B(k));
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
  std::vector<double> xhat_;
  std::vector<T> map_, gain_;   // of the epoch's end: what V and G contribute to weights and V
  std::vector<double> spread_;  // of the opened directions
  SmallSpectrum spectrum_;
  double xx_ = 0, inside_ = 0;
  bool ended_ = false;
};

}  // namespace skn
