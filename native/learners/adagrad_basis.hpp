// Weights and metric of AdaGrad's sketched learners in sparse time.
//
// A sketch spans a small space with the rows of a matrix B: S itself for random projection, an orthonormal
// basis for Frequent Directions. There the metric is hI plus a small matrix, and the weights are
// β = a(w̄ + Bᵀb), where w̄ and B change in the features of the current row only; with u = Bw̄ kept beside them,
// decay (φ = l2) and dual averaging touch nothing but a, b and u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/projection.hpp"
#include "eigen/symmetric_eigen.hpp"
#include "learners/explicit_metric.hpp"

namespace skn {

// Where a sketch and its weights live in a row of the table. The first weight stands at `weight`, further
// ones (classes that share the sketch) at `further`.
struct BlockColumns {
  std::int64_t weights, weight, basis, further;
  std::int64_t column(std::int64_t k) const { return k == 0 ? weight : further + k - 1; }
};

// A row of the input in the precision of the table.
template <class T>
struct RowView {
  const std::int64_t* index;
  const T* value;
  std::int64_t size;
};

// The small numbers of all weights that share a basis.
struct Coefficients {
  std::int64_t count, ld;
  double *a, *b, *u;       // 1, count × ld, count × ld
  double* c;               // count × ld: dual averaging in a basis that contains all rows; see FrequentBasis
  bool fixed;              // dual averaging: b follows from the sum of gradients
  std::vector<double> wx;  // w̄ᵀx of the current row
  std::vector<double> gain;  // what w̄ gains per unit of x

  double* B(std::int64_t k) const { return b + k * ld; }
  double* U(std::int64_t k) const { return u + k * ld; }
  double* C(std::int64_t k) const { return c + k * ld; }

  void begin(const double* row, const BlockColumns& c) {
    for (std::int64_t k = 0; k < count; ++k) wx[k] = row[c.column(k)];
    std::fill(gain.begin(), gain.end(), 0.0);
  }

  // w̄_k ← w̄_k + amount·x, where z = Bx
  void add(std::int64_t k, double amount, const double* z, double xx) {
    gain[k] += amount;
    wx[k] += amount * xx;
    axpy(amount, z, U(k), ld);
  }
};

// E and the eigenvalues of a small symmetric matrix, computed when they are asked for.
class SmallSpectrum {
 public:
  void forget() { known_ = false; }
  void know(const double* matrix, std::int64_t ld, std::int64_t n) {
    if (known_) return;
    eigen_.compute(matrix, ld, n);
    known_ = true;
    work_.resize(n);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(eigen_.values.size()); }
  double value(std::int64_t j) const { return eigen_.values[j]; }
  double largest() const { return eigen_.values.empty() ? 0.0 : eigen_.values[0]; }
  const double* vector(std::int64_t j) const { return &eigen_.vectors[j * size()]; }

  template <class F>
  void filter(const double* v, F f, double* out) {  // out = E diag(f) Eᵀ v
    const std::int64_t n = size();
    for (std::int64_t j = 0; j < n; ++j) {
      const double* e = vector(j);
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += e[i] * v[i];
      work_[j] = sum * f(eigen_.values[j]);
    }
    std::fill(out, out + n, 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
      const double *e = vector(j), w = work_[j];
      for (std::int64_t i = 0; i < n; ++i) out[i] += w * e[i];
    }
  }

 private:
  SymmetricEigen eigen_;
  std::vector<double> work_;
  bool known_ = false;
};

struct ProjectionBasisState {
  std::int64_t m;
  std::uint64_t seed;
  std::int64_t* counts;  // rounds, entries touched since the last refresh; of dual averaging: see kWritten
  double* G;             // SSᵀ (m × ld)
  std::int64_t sums;     // column of −Σg in the table, which dual averaging keeps beside the weights
};

// ADA-GP and ADA-DP: S ← S + ρvᵀ with a fresh ρ ~ N(0, I/m), and H = σI + (SᵀS)^½. With SSᵀ = E diag(λ) Eᵀ,
// (H + cI)⁻¹ = (I − SᵀNS)/h, h = σ + c, N = E diag(1/(√λ(h + √λ))) Eᵀ.
//
// Where that would lose digits and features are few, steps are made feature by feature (ExplicitMetric): then
// b = 0, and the weights stand in the table.
template <class T>
class ProjectionBasis {
 public:
  static constexpr bool kLazy = false, kSpans = false, kSums = true;

  ProjectionBasis(const ProjectionBasisState& s, const BlockColumns& columns, double scale)
      : s_(s),
        at_(columns),
        scale_(scale),
        ld_(padded4(s.m)),
        G_{s.G, ld_},
        z_(ld_),
        rho_(ld_),
        q_(ld_),
        v_(ld_),
        y_(ld_) {}

  std::int64_t size() const { return s_.m; }
  std::int64_t ld() const { return ld_; }
  const double* x() const { return z_.data(); }

  void prepare(T*) {}

  void begin(const double* row, double xx, const Coefficients& w) {
    xx_ = xx;
    for (std::int64_t j = 0; j < s_.m; ++j) z_[j] = row[at_.basis + j];
    double most = 0;
    for (std::int64_t k = 0; k < w.count; ++k)
      most = std::max(most, std::abs(*w.a * dot(w.B(k), z_.data(), ld_)));
    cancels_ = most > kCancels * scale_;
    drowned_ = most * std::numeric_limits<T>::epsilon() > scale_;
  }

  bool doubtful() const { return false; }  // would sums in double tell more?

  void open(const Table<T>& table, std::int64_t active, const RowView<T>& row, Coefficients&, double*) {
    table_ = table;
    active_ = active;
    row_ = row;
    pending_ = 0;
    factored_ = false;
  }

  // Takes in v = r·x. Every round has its ρ, as in the paper: whether a gradient is zero or rounding must not
  // decide what the rows after it are multiplied with.
  void take(double r, Coefficients& w, double* step) {
    const std::int64_t round = s_.counts[kRounds]++;
    if (r == 0 || !(xx_ > 0)) return;
    s_.counts[kTouched] += row_.size;
    pending_ = r;
    factored_ = false;
    CounterNormal::fill(s_.seed, static_cast<std::uint64_t>(round), s_.m, rho_.data());
    for (std::int64_t j = 0; j < s_.m; ++j) {
      rho_[j] /= std::sqrt(static_cast<double>(s_.m));
      step[at_.basis + j] += r * rho_[j];
      q_[j] = r * z_[j] + 0.5 * r * r * xx_ * rho_[j];
    }
    for (std::int64_t i = 0; i < s_.m; ++i)  // SSᵀ + qρᵀ + ρqᵀ with q = Sv + ½‖v‖²ρ, S still the old one
      for (std::int64_t j = 0; j < s_.m; ++j) G_.at(i, j) += q_[i] * rho_[j] + rho_[i] * q_[j];
    axpy(r * xx_, rho_.data(), z_.data(), ld_);
    for (std::int64_t k = 0; k < w.count; ++k) {
      axpy(r * w.wx[k], rho_.data(), w.U(k), ld_);
      // Sᵀb has changed along x; w̄ makes up for it
      if (!w.fixed) w.add(k, -r * dot(rho_.data(), w.B(k), ld_), z_.data(), xx_);
    }
    spectrum_.forget();
  }

  double floor() const { return 0.0; }

  double quadratic(double h) {  // xᵀH⁻¹x
    if (delicate(h)) {
      factor_explicitly();
      explicit_.assign(metric_.length, 0.0);
      each([&](std::int64_t i, const T*, double x) { explicit_[i] = x; });
      return metric_.quadratic(explicit_.data(), h);
    }
    filter(z_.data(), h);
    const double outside = (xx_ - dot(z_.data(), y_.data(), ld_)) / h;
    const double steepest = std::sqrt(std::max(spectrum_.largest(), 0.0));
    return std::max(outside, xx_ / (h + steepest));  // whatever rounding did
  }

  // β ← β − (H + cI)⁻¹(amount·x + c·β), h = σ + c; a becomes `next` = a(1 − c/h).
  void descend(Coefficients& w, std::int64_t k, double amount, double c, double h, double next) {
    if (delicate(h)) return descend_explicitly(w, k, amount, c, h, next);
    std::fill(v_.begin(), v_.end(), 0.0);
    if (c != 0)  // Sβ
      for (std::int64_t j = 0; j < s_.m; ++j) v_[j] = c * *w.a * (dot(G_.row(j), w.B(k), ld_) + w.U(k)[j]);
    axpy(amount, z_.data(), v_.data(), s_.m);
    filter(v_.data(), h);
    for (std::int64_t j = 0; j < s_.m; ++j) w.B(k)[j] += y_[j] / (h * next);
    w.add(k, -amount / (h * next), z_.data(), xx_);
  }

  // β = a(w̄ − SᵀNSw̄), a = η/h, where w̄ = −Σg gains −slope·x
  void average(Coefficients& w, std::int64_t k, double slope, double h) {
    if (delicate(h)) return average_explicitly(w, k, slope, h);
    if (s_.counts[kWritten] != 0) restore_sums(w);
    w.add(k, -slope, z_.data(), xx_);
    filter(w.U(k), h);
    for (std::int64_t j = 0; j < s_.m; ++j) w.B(k)[j] = -y_[j];
  }

  // out: rows P_j with H = hI + (PB)ᵀ(PB); returns how many.
  std::int64_t factor(std::vector<double>& out) {
    know();
    out.clear();
    for (std::int64_t j = 0; j < s_.m && spectrum_.value(j) > negligible(); ++j)
      for (std::int64_t i = 0; i < ld_; ++i)
        out.push_back(i < s_.m ? spectrum_.vector(j)[i] / std::pow(spectrum_.value(j), 0.25) : 0.0);
    return static_cast<std::int64_t>(out.size()) / ld_;
  }

  void coordinates(const T* row, double* out) const {  // the feature's column of B
    for (std::int64_t j = 0; j < s_.m; ++j) out[j] = static_cast<double>(row[at_.basis + j]);
  }

  void finish(const Table<T>& table, std::int64_t active, Coefficients& w) {
    const std::int64_t entries = s_.counts[kTouched], cost = s_.m * active;
    if (drowned_ || *w.a < kSmall || entries > kAmortise * cost || (cancels_ && 4 * entries > cost))
      refresh(table, active, w);
  }

 private:
  // The last of dual averaging alone: are the weights in the table those of the learner, instead of −Σg?
  enum { kRounds, kTouched, kWritten };
  static constexpr double kThin = 1e-6;     // λ below this share of the largest: SSᵀ has few digits of it
  static constexpr double kSteep = 1e4;     // H is so much larger than h: so many digits are lost
  static constexpr double kCancels = 1000;  // aw̄ᵀx and abᵀz this much larger than scores: fold b into w̄
  static constexpr std::int64_t kAmortise = 16;  // a refresh costs this share of the work since the last
  static constexpr double kSmall = 1e-12;        // of a: time to multiply it into the table
  static constexpr std::int64_t kFew = 256, kFewPerRow = 16;  // a pass over them costs little more than SSᵀ

  double negligible() const {
    return spectrum_.largest() * static_cast<double>(s_.m) * std::numeric_limits<double>::epsilon();
  }

  void know() { spectrum_.know(s_.G, ld_, s_.m); }

  // Would a step in terms of S lose digits, and are features so few that it can be made feature by feature?
  bool delicate(double h) {
    if (sizeof(T) == 4 || active_ > kFew + kFewPerRow * s_.m) return false;
    know();
    const double largest = spectrum_.largest();
    if (!(largest > 0)) return false;
    if (std::sqrt(largest) > kSteep * h) return true;
    const std::int64_t rank = std::min({s_.m, s_.counts[kRounds], active_});
    return rank > 0 && spectrum_.value(rank - 1) < kThin * largest;
  }

  // Calls f(i, row of the table, value in the current row) for the i-th feature that was seen.
  template <class F>
  void each(F f) const {
    for (std::int64_t i = 0, k = 0; i < active_; ++i) {
      while (k < row_.size && row_.index[k] < table_.active[i]) ++k;
      const bool here = k < row_.size && row_.index[k] == table_.active[i];
      f(i, table_.row(table_.active[i]), here ? static_cast<double>(row_.value[k]) : 0.0);
    }
  }

  // S as it is after this round, whose ρvᵀ has not come to the table yet.
  void factor_explicitly() {
    if (factored_) return;
    table_.sort_active(active_);
    metric_.resize(s_.m, active_);
    each([&](std::int64_t i, const T* row, double x) {
      for (std::int64_t j = 0; j < s_.m; ++j)
        metric_.row(j)[i] =
            static_cast<double>(row[at_.basis + j]) + (pending_ != 0 ? pending_ * rho_[j] * x : 0.0);
    });
    metric_.factor();
    factored_ = true;
  }

  void descend_explicitly(Coefficients& w, std::int64_t k, double amount, double c, double h, double next) {
    factor_explicitly();
    explicit_.assign(metric_.length, 0.0);
    std::vector<double> beta(metric_.length, 0.0), s(ld_, 0.0);
    each([&](std::int64_t i, const T* row, double x) {
      coordinates(row, s.data());
      if (pending_ != 0) axpy(pending_ * x, rho_.data(), s.data(), s_.m);
      const double own = static_cast<double>(row[at_.column(k)]) + w.gain[k] * x;
      beta[i] = *w.a * (own + dot(s.data(), w.B(k), ld_));
      explicit_[i] = amount * x + c * beta[i];
    });
    metric_.solve(explicit_.data(), h);
    for (std::int64_t i = 0; i < metric_.length; ++i) explicit_[i] = (beta[i] - explicit_[i]) / next;
    write(w, k);
  }

  void average_explicitly(Coefficients& w, std::int64_t k, double slope, double h) {
    factor_explicitly();
    explicit_.assign(metric_.length, 0.0);
    each([&](std::int64_t i, const T* row, double x) {
      explicit_[i] = static_cast<double>(row[s_.sums + k]) - slope * x;
    });
    metric_.solve(explicit_.data(), h);
    for (double& weight : explicit_) weight *= h;  // a = η/h
    write(w, k);
    s_.counts[kWritten] = 1;
  }

  // The weights in the table are those of `explicit_`.
  void write(Coefficients& w, std::int64_t k) {
    w.gain[k] = w.wx[k] = 0;
    std::fill_n(w.B(k), ld_, 0.0);
    each([&](std::int64_t i, T* row, double x) {
      row[at_.column(k)] = static_cast<T>(explicit_[i]);
      w.wx[k] += explicit_[i] * x;
    });
    metric_.multiply(explicit_.data(), w.U(k));
  }

  // Dual averaging in terms of S again: w̄ = −Σg, without the gradient of this round.
  void restore_sums(Coefficients& w) {
    s_.counts[kWritten] = 0;
    std::fill(w.u, w.u + w.count * ld_, 0.0);
    std::fill(w.wx.begin(), w.wx.end(), 0.0);
    std::vector<double> s(ld_, 0.0);
    each([&](std::int64_t, T* row, double x) {
      coordinates(row, s.data());
      if (pending_ != 0) axpy(pending_ * x, rho_.data(), s.data(), s_.m);
      for (std::int64_t k = 0; k < w.count; ++k) {
        row[at_.column(k)] = row[s_.sums + k];
        const double sum = static_cast<double>(row[s_.sums + k]);
        w.wx[k] += sum * x;
        axpy(sum, s.data(), w.U(k), ld_);
      }
    });
  }

  void filter(const double* v, double h) {  // y = Nv
    know();
    const double least = negligible();
    spectrum_.filter(
        v,
        [&](double value) { return value > least ? 1.0 / (std::sqrt(value) * (h + std::sqrt(value))) : 0.0; },
        y_.data());
  }

  // w̄ ← β, b ← 0, a ← 1, and SSᵀ and u afresh from the table.
  void refresh(const Table<T>& table, std::int64_t active, Coefficients& w) {
    table.sort_active(active);
    std::fill(s_.G, s_.G + s_.m * ld_, 0.0);
    std::fill(w.u, w.u + w.count * ld_, 0.0);
    std::vector<double> v(ld_, 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      if (i + 8 < active) table.prefetch(table.active + i + 8, 1);
      T* row = table.row(table.active[i]);
      coordinates(row, v.data());
      for (std::int64_t j = 0; j < s_.m; ++j) axpy(v[j], v.data(), G_.row(j), ld_);
      for (std::int64_t k = 0; k < w.count; ++k) {
        T& weight = row[at_.column(k)];
        if (!w.fixed)
          weight = static_cast<T>(*w.a * (static_cast<double>(weight) + dot(v.data(), w.B(k), ld_)));
        axpy(static_cast<double>(weight), v.data(), w.U(k), ld_);
      }
    }
    if (!w.fixed) {
      std::fill(w.b, w.b + w.count * ld_, 0.0);
      *w.a = 1.0;
    }
    s_.counts[kTouched] = 0;
    spectrum_.forget();
  }

  ProjectionBasisState s_;
  BlockColumns at_;
  double scale_;
  std::int64_t ld_;
  Small G_;
  std::vector<double> z_, rho_, q_, v_, y_;
  SmallSpectrum spectrum_;
  Table<T> table_{};  // of the round that is under way, with its row
  std::int64_t active_ = 0;
  RowView<T> row_{};
  double pending_ = 0;  // r, if rρxᵀ is not in the table yet
  ExplicitMetric metric_;
  bool factored_ = false;
  std::vector<double> explicit_;  // a number for each feature
  double xx_ = 0;
  bool cancels_ = false, drowned_ = false;
};

}  // namespace skn
