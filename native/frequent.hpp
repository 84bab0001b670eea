// Frequent Directions and its kin in sparse time (SON Algorithms 6–10, RFD Algorithms 3 and 6).
//
// The sketch is S = [diag(D) V; G]: V has up to m − 1 orthonormal rows from the last shrink, G the gradients
// since then, up to m of them, which wait in the table's columns (at unit length: only their directions
// matter there). All small computation is done in an orthonormal basis W of their span, which G extends row
// by row: W = [V; C V + T G]. There SᵀS is a small matrix M = W SᵀS Wᵀ, kept beside the Cholesky factor U of
// αI + M, and the weights are w̄ + Wᵀc.
//
// When G is full, M is diagonalised, the shrink rule is applied, and V ← N₁V + N₂G. SON represents V as FZ to
// avoid writing all of it, but N₁ is nearly singular whenever a direction is replaced, so F cannot be
// inverted. Here features go through N₁ when they are touched next (EpochMaps); the weights' part Vᵀc takes
// the same way into w̄.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "eigen.hpp"
#include "epochs.hpp"
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
  std::int64_t* counts;  // rank of V, directions that G has opened, rows in G, recent
  double* shrunk;        // Σρ: a certificate of the error
  double *M, *U;         // (2m − 1) × ld each
  double *C, *Tm;        // m × ldq and m × ldm: the opened directions in terms of V and of G
  double* c;             // ld
  std::int64_t* recent;  // features touched since the last shrink, repeats included
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
        shape_{q_, padded4(1 + q_)},
        epochs_(shape_, s.epochs),
        xhat_(ld_),
        y_(ld_),
        v_(ld_),
        map_(shape_.size()),
        gain_(s.m * shape_.width) {}

  // Brings the features of a row up to date.
  void prepare(const Table<T>& table, const std::int64_t* index, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) settle(table.row(index[i]));
  }

  void settle(T* row) {
    T* columns = row + Table<T>::kSketch;
    if (row[Table<T>::kScale] != T(0))
      epochs_.apply(static_cast<std::int64_t>(columns[0]), row + Table<T>::kWeight, columns + 1);
    columns[0] = static_cast<T>(epochs_.now());
  }

  double begin(const double* columns, double xx) {
    xx_ = xx;
    z_ = columns + 1;
    g_ = z_ + q_;
    double score = 0;
    inside_ = 0;
    for (std::int64_t j = 0; j < size(); ++j) {
      if (j < rank()) {
        xhat_[j] = z_[j];
      } else {
        const double *C = s_.C + (j - rank()) * ldq_, *Tm = s_.Tm + (j - rank()) * ldm_;
        double sum = 0;
        for (std::int64_t k = 0; k < rank(); ++k) sum += C[k] * z_[k];
        for (std::int64_t k = 0; k < filled(); ++k) sum += Tm[k] * g_[k];
        xhat_[j] = sum;
      }
      score += s_.c[j] * xhat_[j];
      inside_ += xhat_[j] * xhat_[j];
    }
    solved_ = false;
    return score;
  }

  // α = 0 and x has a part outside the range of A, where moving costs nothing (SON Lemma 2).
  bool free() const { return *alpha_ == 0 && xx_ - inside_ > kInside * xx_; }

  double quadratic() {
    const double outside = *alpha_ > 0 ? std::max(xx_ - inside_, 0.0) / *alpha_ : 0.0;
    solve();
    return outside + quadratic_;
  }

  double move(double step) {
    solve();
    const double outside = *alpha_ > 0 ? step / *alpha_ : 0.0;
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += outside * xhat_[j] - step * y_[j];
    return -outside;
  }

  double move_free(double excess) {
    const double step = excess / (xx_ - inside_);
    for (std::int64_t j = 0; j < size(); ++j) s_.c[j] += step * xhat_[j];
    return -step;
  }

  double update(double r, double* columns, const Table<T>&, std::int64_t, const std::int64_t* index,
                std::int64_t n) {
    const std::int64_t row = s_.counts[kFilled]++;
    columns[1 + q_ + row] = 1.0 / std::sqrt(xx_);  // x/‖x‖: products with long rows stay in range
    for (std::int64_t i = 0; i < n; ++i) s_.recent[s_.counts[kRecent]++] = index[i];
    if (xx_ - inside_ > kInside * xx_ && size() < 2 * s_.m - 1) open(row);
    for (std::int64_t j = 0; j < size(); ++j) v_[j] = r * xhat_[j];
    for (std::int64_t i = 0; i < size(); ++i)
      for (std::int64_t j = 0; j < size(); ++j) s_.M[i * ld_ + j] += v_[i] * v_[j];
    update_factor();
    solved_ = false;
    if (filled() == s_.m) shrink();
    return 0.0;
  }

  void finish(const Table<T>& table, std::int64_t active) {
    if (!ended_) return;
    ended_ = false;
    end_epoch(table);
    if (epochs_.full()) sweep(table, active);
  }

 private:
  enum { kRank, kOpened, kFilled, kRecent };
  // Share of ‖x‖² outside the span below which it is rounding.
  static constexpr double kInside = sizeof(T) == 4 ? 5e-7 : 1e-12;
  static constexpr double kGone = 1e-13;  // share of λ₁ below which a direction has no length

  std::int64_t rank() const { return s_.counts[kRank]; }
  std::int64_t filled() const { return s_.counts[kFilled]; }
  std::int64_t size() const { return s_.counts[kRank] + s_.counts[kOpened]; }
  double* U(std::int64_t i) const { return s_.U + i * ld_; }

  // W gains the part of ĝ = r·x that is outside its span.
  void open(std::int64_t row) {
    const double length = std::sqrt(xx_ - inside_);
    const std::int64_t k = s_.counts[kOpened], n = size();
    double *C = s_.C + k * ldq_, *Tm = s_.Tm + k * ldm_;
    std::fill(C, C + ldq_, 0.0);
    std::fill(Tm, Tm + ldm_, 0.0);
    for (std::int64_t j = 0; j < rank(); ++j) C[j] = -xhat_[j] / length;
    Tm[row] = std::sqrt(xx_) / length;
    for (std::int64_t i = 0; i < k; ++i) {
      axpy(-xhat_[rank() + i] / length, s_.C + i * ldq_, C, ldq_);
      axpy(-xhat_[rank() + i] / length, s_.Tm + i * ldm_, Tm, ldm_);
    }
    for (std::int64_t j = 0; j <= n; ++j) s_.M[n * ld_ + j] = s_.M[j * ld_ + n] = 0;
    for (std::int64_t j = 0; j <= n; ++j) U(j)[n] = 0;
    U(n)[n] = std::sqrt(*alpha_);
    s_.c[n] = 0;
    xhat_[n] = length;
    inside_ = xx_;
    ++s_.counts[kOpened];
  }

  void solve() {  // y = (αI + M)⁻¹x̂
    if (solved_) return;
    const std::int64_t n = size();
    quadratic_ = 0;
    for (std::int64_t k = 0; k < n; ++k) v_[k] = xhat_[k];
    for (std::int64_t k = 0; k < n; ++k) {
      v_[k] /= U(k)[k];
      quadratic_ += v_[k] * v_[k];
      for (std::int64_t j = k + 1; j < n; ++j) v_[j] -= v_[k] * U(k)[j];
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      double sum = v_[k];
      for (std::int64_t j = k + 1; j < n; ++j) sum -= U(k)[j] * y_[j];
      y_[k] = sum / U(k)[k];
    }
    solved_ = true;
  }

  void update_factor() {  // UᵀU ← UᵀU + vvᵀ
    const std::int64_t n = size();
    for (std::int64_t k = 0; k < n; ++k) {
      if (v_[k] == 0) continue;
      double* u = U(k);
      const double length = std::sqrt(u[k] * u[k] + v_[k] * v_[k]), cosine = u[k] / length,
                   sine = v_[k] / length;
      u[k] = length;
      for (std::int64_t j = k + 1; j < n; ++j) {
        const double old = u[j];
        u[j] = cosine * old + sine * v_[j];
        v_[j] = cosine * v_[j] - sine * old;
      }
    }
  }

  // The small part of an epoch's end. The current row moves on in the new basis.
  void shrink() {
    const std::int64_t n = size(), old = rank(), opened = s_.counts[kOpened];
    eigen_.compute(s_.M, ld_, n);
    std::vector<double> D = eigen_.values;
    const double least = kGone * (n > 0 ? eigen_.values[0] : 0.0);
    const double rho = s_.rule.apply(D, s_.m, least);
    *s_.shrunk += rho;
    *alpha_ += s_.rule.ridge * rho;

    // Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e)
    std::fill(map_.begin(), map_.end(), T(0));
    std::fill(gain_.begin(), gain_.end(), T(0));
    for (std::int64_t k = 0; k < old; ++k) {
      double r = s_.c[k];
      for (std::int64_t i = 0; i < opened; ++i) r += s_.c[old + i] * s_.C[i * ldq_ + k];
      map_[k * shape_.width] = static_cast<T>(r);
    }
    for (std::int64_t b = 0; b < s_.m; ++b) gain_[b * shape_.width] = static_cast<T>(along(s_.c + old, b));

    std::int64_t kept = 0;
    std::fill(v_.begin(), v_.end(), 0.0);
    std::fill(s_.M, s_.M + (2 * s_.m - 1) * ld_, 0.0);
    std::fill(s_.U, s_.U + (2 * s_.m - 1) * ld_, 0.0);
    for (std::int64_t i = 0; i < std::min(n, s_.m - 1); ++i) {
      if (!(D[i] > least)) continue;
      const double* e = &eigen_.vectors[i * n];
      for (std::int64_t k = 0; k < old; ++k) {
        double N1 = e[k];
        for (std::int64_t j = 0; j < opened; ++j) N1 += e[old + j] * s_.C[j * ldq_ + k];
        map_[k * shape_.width + 1 + kept] = static_cast<T>(N1);
      }
      for (std::int64_t b = 0; b < s_.m; ++b)
        gain_[b * shape_.width + 1 + kept] = static_cast<T>(along(e + old, b));
      for (std::int64_t k = 0; k < n; ++k) v_[kept] += e[k] * xhat_[k];
      s_.M[kept * ld_ + kept] = D[i];
      U(kept)[kept] = std::sqrt(*alpha_ + D[i]);
      ++kept;
    }
    s_.counts[kRank] = kept;
    s_.counts[kOpened] = 0;
    xhat_ = v_;
    std::fill(s_.c, s_.c + ld_, 0.0);
    ended_ = true;
  }

  double along(const double* e, std::int64_t b) const {  // (Tᵀe)_b
    double sum = 0;
    for (std::int64_t i = 0; i < s_.counts[kOpened]; ++i) sum += e[i] * s_.Tm[i * ldm_ + b];
    return sum;
  }

  // Features of this epoch's gradients go through the map at once, and take their gradients along.
  void end_epoch(const Table<T>& table) {
    const std::int64_t next = epochs_.now() + 1;
    for (std::int64_t i = 0; i < s_.counts[kRecent]; ++i) {
      T* row = table.row(s_.recent[i]);
      T &w = row[Table<T>::kWeight], *columns = row + Table<T>::kSketch, *z = columns + 1, *g = z + q_;
      if (static_cast<std::int64_t>(columns[0]) == next) continue;  // met before in the list
      columns[0] = static_cast<T>(next);
      epochs_.multiply(map_.data(), &w, z);
      for (std::int64_t b = 0; b < s_.m; ++b) {
        if (g[b] == T(0)) continue;
        const T* image = &gain_[b * shape_.width];
        w += g[b] * image[0];
        for (std::int64_t j = 0; j < q_; ++j) z[j] += g[b] * image[1 + j];
        g[b] = T(0);
      }
    }
    epochs_.push(map_.data());
    s_.counts[kFilled] = s_.counts[kRecent] = 0;
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
      row[Table<T>::kSketch] = T(0);
      for (std::int64_t j = 0; j < k; ++j) z[j] = static_cast<double>(row[Table<T>::kSketch + 1 + j]);
      for (std::int64_t j = 0; j < k; ++j) axpy(z[j], z.data(), L.row(j), padded4(j + 1));
    }
    epochs_.restart();
    cholesky(L, k);
    for (std::int64_t j = 0; j < k; ++j) N.at(j, j) = 1.0;
    solve_lower(L, k, N);
    multiply_transposed_lower(L, k, s_.c);
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j <= i; ++j) map_[j * shape_.width + 1 + i] = static_cast<T>(N.at(i, j));
    epochs_.push(map_.data());
  }

  FrequentState<T> s_;
  double* alpha_;
  std::int64_t q_, ld_, ldq_, ldm_;
  EpochShape shape_;
  EpochMaps<T> epochs_;
  SymmetricEigen eigen_;
  std::vector<double> xhat_, y_, v_;
  std::vector<T> map_, gain_;  // of the epoch's end: what V and G contribute to (w̄, V)
  const double *z_ = nullptr, *g_ = nullptr;
  double xx_ = 0, inside_ = 0, quadratic_ = 0;
  bool solved_ = false, ended_ = false;
};

}  // namespace skn
