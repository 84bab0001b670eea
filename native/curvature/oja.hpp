// Oja's sketch in sparse time (SON Algorithms 4, 5 and 11).
//
// The sketch is S = diag(E)^½ V with orthonormal V (r ≤ m rows) and E = tΛ. V = FZ: the table holds Z, which
// changes only in the features of the current row, and F is small. The weights are w̄ + Vᵀc, w̄ in the table;
// a learner of several outputs (SharedNewton) has a w̄ and a c for each.
//
// The paper keeps b = Fᵀc and orthonormalises by Gram–Schmidt in O(m³). Here a round costs O(m²): with ŷ = Vĝ
// the rows of V + aĝᵀ have the Gram matrix I + aŷᵀ + ŷaᵀ + ‖ĝ‖²aaᵀ = LLᵀ, whose factor RankTwo knows. Then
// V ← L⁻¹(V + aĝᵀ), that is Z ← Z + F⁻¹aĝᵀ, F ← L⁻¹F, c ← Lᵀc, and w̄ loses (aᵀc)ĝ so that w stays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/rank_two.hpp"
#include "curvature/split.hpp"

namespace skn {

// Views of arrays that Python owns. ld = m padded to a multiple of four.
struct OjaState {
  std::int64_t m, block;
  std::int64_t* counts;  // t (rounds, or blocks), rank, entries touched since the last refresh, rows in the
                         // block, recent
  double* growth;        // log of the volume that Z has gained since the last look at its condition
  double* F;             // m × ld, lower triangular: it starts so, and L⁻¹F stays so
  double* energy;        // ld
  double* c;             // outputs × ld
  const double* rate;    // ld: Γ_t = rate/t; null: Γ ≈ E⁻¹, every direction at its own scale
  double *Y, *G;         // of the rows in the block: Vĝ (block × ld) and their Gram matrix (block × block)
  std::int64_t* recent;  // features touched in the block, repeats included
  std::int64_t room;     // how many it has room for
  std::int64_t outputs = 1;  // more than one: in blocks of one row
};

template <class T>
class Oja {
 public:
  static constexpr bool kLazy = false;

  // `scale`: how large scores are expected to be
  Oja(const OjaState& s, const double* alpha, double scale)
      : s_(s),
        ld_(padded4(s.m)),
        alpha_(alpha),
        scale_(scale),
        F_{s.F, ld_},
        two_(ld_),
        z_(ld_),
        xhat_(ld_),
        gain_(ld_),
        squares_(ld_),
        A_(ld_ * s.block),
        lost_(s.block),
        M_(ld_ * s.m),
        b_(ld_ * s.outputs),
        gained_(s.outputs),
        split_(ld_) {}

  // Where a table row has w̄ of an output: the first as ever, the others after the sketch.
  std::int64_t weight_column(std::int64_t output) const {
    return output == 0 ? Table<T>::kWeight : Table<T>::kSketch + s_.m + output - 1;
  }

  // The table's columns combined with x come in; what the sketch adds to wᵀx goes out.
  double begin(const double* columns, double xx, const T*) {
    xx_ = xx;
    inner_ = columns + s_.m;
    for (std::int64_t j = 0; j < s_.m; ++j) z_[j] = columns[j];
    for (std::int64_t j = 0; j < rank(); ++j) xhat_[j] = dot(F_.row(j), z_.data(), padded4(j + 1));
    cancels_ = written_ = false;
    return score(0);
  }

  // The row once more, when its features are active. If it is long in units of α, w̄ᵀx and cᵀx̂ would grow
  // against each other by ‖x‖²/α in every step, and what their sum is would be rounding: steps are then
  // written out in all features, if these are few.
  void attend(const Table<T>& table, std::int64_t active, const std::int64_t* index, const T* x,
              std::int64_t n) {
    written_ = active <= kFew && s_.block == 1 && xx_ > kLong * *alpha_;
    if (!written_) return;
    table_ = table;
    split_.read(table, active, index, x, n);
    written_ = split_.divide(table, F_, rank(), nullptr, xhat_.data());
  }

  double magnitude(const double* columns) const {
    double sum = 0;
    for (std::int64_t j = 0; j < rank(); ++j)
      for (std::int64_t k = 0; k <= j; ++k) sum += std::abs(s_.c[j] * F_.at(j, k)) * columns[k];
    return sum;
  }

  // What the sketch adds to an output's score.
  double score(std::int64_t output) {
    const double sum = dot(c(output), xhat_.data(), ld_);
    cancels_ = cancels_ || std::abs(sum) > kCancels * scale_;
    return sum;
  }

  // xᵀA⁻¹x, as a sum of positive parts.
  double quadratic() const {
    double inside = 0, shrunk = 0;
    for (std::int64_t j = 0; j < rank(); ++j) {
      const double square = xhat_[j] * xhat_[j];
      inside += square;
      shrunk += square / (*alpha_ + s_.energy[j]);
    }
    if (!(xx_ > 0)) return 0.0;
    if (written_) return split_.square() / *alpha_ + shrunk;
    // A projection divides by this. It must mend more than its own rounding spoils: about ε‖x‖²/α per step.
    const double a = outside();
    return std::fmax(std::fmax(xx_ - inside, 0.0) / a + shrunk, kNoise * xx_ / a);
  }

  // w ← w − step·A⁻¹x, but for the part −step/α·x, which goes to w̄.
  double move(double step, std::int64_t output = 0) {
    if (written_) {
      split_.add(table_, weight_column(output), -step / *alpha_);
      for (std::int64_t j = 0; j < rank(); ++j) c(output)[j] -= step * xhat_[j] / (*alpha_ + s_.energy[j]);
      return 0.0;
    }
    const double a = outside();
    for (std::int64_t j = 0; j < rank(); ++j)
      c(output)[j] += step / a * (*alpha_ - a + s_.energy[j]) / (*alpha_ + s_.energy[j]) * xhat_[j];
    return xx_ > 0 ? -step / a : 0.0;
  }

  bool free() const { return false; }
  double move_free(double) { return 0.0; }

  // Takes in ĝ = r·x. Adds to `columns` what the table's columns gain per unit of x; returns what w̄ gains.
  double update(double r, double* columns, const Table<T>& table, std::int64_t active,
                const std::int64_t* index, std::int64_t n) {
    s_.counts[kTouched] += n;
    active_ = active;
    updated_ = true;
    if (rank() < s_.m) open(columns);
    const double gained = s_.block > 1 ? gather_block(r, columns, table, index, n) : step(r, columns, table);
    written_ = written_ && split_.divide(table, F_, rank(), columns, xhat_.data());
    return gained;
  }

  // What an output's w̄ gained by the last update.
  double gained(std::int64_t output) const { return gained_[output]; }

  // Called when the row's features have been written.
  void finish(const Table<T>& table, std::int64_t active) {
    active_ = active;
    if (!updated_) pass(table);
    if (block_ended_) end_block(table);
    if (rebased_) orthonormalise(table);
    updated_ = block_ended_ = rebased_ = false;
  }

 private:
  enum { kTime, kRank, kTouched, kFilled, kRecent };
  static constexpr double kIndependent = 0.01;  // share of ‖x‖² outside the span that opens a direction
  static constexpr double kAmplified = 1000;    // float32 keeps four digits of V until a refresh
  static constexpr double kDirect = 1;          // log growth from which ĝ is written into V, not into Z
  static constexpr double kCancels = 1000;      // w̄ᵀx and cᵀVx this much larger than scores: fold c into w̄
  static constexpr double kFar = 1e5;  // lengths that a block may move a direction by, lest M be singular
  static constexpr double kNoise = 10 * std::numeric_limits<T>::epsilon(), kResolved = 10 * kNoise;
  static constexpr double kLong = sizeof(T) == 4 ? 1e3 : 1e6;  // ‖x‖²/α from which steps are written out
  static constexpr std::int64_t kFew = 256;                    // if there are no more features
  static constexpr std::int64_t kAmortise = 16;  // a refresh costs this share of the work since the last

  std::int64_t rank() const { return s_.counts[kRank]; }
  double* c(std::int64_t output) const { return s_.c + output * ld_; }

  // The metric of x − VᵀVx: α, but no less than what rounding leaves of ‖x‖² there, lest steps in a direction
  // that is nothing but rounding grow from row to row.
  double outside() const { return std::fmax(*alpha_, kResolved * xx_); }

  double* Y(std::int64_t b) const { return s_.Y + b * ld_; }
  double* A(std::int64_t b) { return A_.data() + b * ld_; }

  // The papers start from any orthonormal rows; here from the first rows that are independent of each other,
  // so that nothing of the size of the table is initialised. Z gains the row x/‖x‖.
  void open(double* columns) {
    double inside = 0;
    for (std::int64_t j = 0; j < rank(); ++j) inside += xhat_[j] * xhat_[j];
    const double rest = xx_ - inside;
    if (!(rest > kIndependent * xx_)) return;
    const std::int64_t k = s_.counts[kRank]++;
    const double norm = std::sqrt(xx_), length = std::sqrt(rest);
    double* f = F_.row(k);
    for (std::int64_t j = 0; j < ld_; ++j) f[j] = 0;
    for (std::int64_t j = 0; j < k; ++j) axpy(-xhat_[j] / length, F_.row(j), f, ld_);
    f[k] = norm / length;
    for (std::int64_t b = 0; b < s_.counts[kFilled]; ++b)  // rows that wait in the block
      Y(b)[k] = (inner_[b] - dot(xhat_.data(), Y(b), ld_)) / length;
    z_[k] = norm;
    xhat_[k] = length;
    s_.energy[k] = 0;
    for (std::int64_t o = 0; o < s_.outputs; ++o) c(o)[k] = 0;
    columns[k] = 1.0 / norm;
  }

  // A round without a gradient is a round: t and Λ, and blocks, continue, lest rounding decide when they do.
  void pass(const Table<T>& table) {
    if (s_.block > 1) {
      gather_block(0.0, nullptr, table, nullptr, 0);
    } else if (s_.rate != nullptr) {
      std::fill(squares_.begin(), squares_.end(), 0.0);
      advance(0.0);
    }
  }

  // Λ and Γ of Equation 4, given Σ(Vĝ)² and Σ‖ĝ‖² over the block. No direction moves by more than its own
  // length.
  void advance(double norms) {
    const auto t = static_cast<double>(++s_.counts[kTime]);
    for (std::int64_t j = 0; j < rank(); ++j) {
      if (s_.rate == nullptr) {
        s_.energy[j] += squares_[j];
        gain_[j] = norms > 0 ? 1.0 / std::max(s_.energy[j], norms) : 0.0;
      } else {
        const double gamma = std::fmin(1.0, s_.rate[j] / t);
        s_.energy[j] = t * ((1 - gamma) * s_.energy[j] / std::fmax(t - 1, 1.0) + gamma * squares_[j]);
        gain_[j] = gamma / static_cast<double>(s_.block);
      }
    }
  }

  // F shrinks while Z grows, and w̄ and Vᵀc grow against each other; before digits are lost, or when it costs
  // little, V itself is written out.
  bool refresh_due(double growth) {
    const std::int64_t entries = s_.counts[kTouched], cost = s_.m * active_;
    if (entries > kAmortise * cost || (cancels_ && 4 * entries > cost)) return true;
    *s_.growth += growth;
    if (*s_.growth < 1) return false;
    *s_.growth = 0;
    return amplification() * std::exp(growth) > kAmplified;
  }

  // Rates that are given may replace V in one row, and then w̄ and Vᵀc swing against each other, by (aᵀc)ĝ.
  // Row after row that costs all digits of the weights; does this one swing its own score by much?
  bool swings(double r) const {
    if (s_.rate == nullptr) return false;
    double most = 0;
    for (std::int64_t o = 0; o < s_.outputs; ++o)
      most = std::max(most, std::abs(dot(two_.a.data(), c(o), ld_)));
    return most * std::abs(r) * xx_ > kCancels * scale_;
  }

  bool block_swings() {
    double most = 0;
    for (std::int64_t b = 0; s_.rate != nullptr && b < s_.block; ++b)
      most += std::abs(dot(A(b), s_.c, ld_)) * std::sqrt(s_.G[b * s_.block + b]);
    return most * std::sqrt(xx_) > kCancels * scale_;
  }

  // By how much V = FZ magnifies the rounding errors of Z: max_j Σ_k |F_jk|·‖Z_k‖, where ZZᵀ = F⁻¹F⁻ᵀ.
  double amplification() {
    const std::int64_t k = rank();
    std::vector<double> inverse(k * ld_, 0.0), norm(k, 0.0);
    for (std::int64_t j = 0; j < k; ++j) inverse[j * ld_ + j] = 1.0;
    solve_lower(F_, k, Small{inverse.data(), ld_});
    double largest = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      norm[j] = std::sqrt(dot(&inverse[j * ld_], &inverse[j * ld_], ld_));
      double sum = 0;
      for (std::int64_t i = 0; i <= j; ++i) sum += std::abs(F_.at(j, i)) * norm[i];
      largest = std::max(largest, sum);
    }
    return largest;
  }

  double step(double r, double* columns, const Table<T>& table) {
    const std::int64_t k = rank();
    for (std::int64_t j = 0; j < k; ++j) {
      two_.y[j] = r * xhat_[j];
      squares_[j] = two_.y[j] * two_.y[j];
    }
    advance(r * r * xx_);
    for (std::int64_t j = 0; j < k; ++j) two_.a[j] = gain_[j] * two_.y[j];
    const double growth = two_.factor(k, gain_.data(), r * r * xx_);
    if (refresh_due(growth) || swings(r)) rebase(table, columns);

    for (std::int64_t o = 0; o < s_.outputs; ++o) {
      gained_[o] = -dot(two_.a.data(), c(o), ld_) * r;
      two_.multiply_transposed(k, c(o));
    }
    for (std::int64_t j = 0; j < k; ++j) xhat_[j] = two_.p[j] / r;  // L⁻¹(Vx + a ĝᵀx)
    if (rebased_ && growth > kDirect) {
      two_.solve(k, F_);
      write_out(table, columns, nullptr);
      for (std::int64_t j = 0; j < k; ++j) columns[j] += r * two_.q[j];  // L⁻¹a ĝᵀ
    } else {
      std::copy_n(two_.a.data(), k, z_.data());
      solve_lower(F_, k, z_.data());  // δ = F⁻¹a
      for (std::int64_t j = 0; j < k; ++j) columns[j] += r * z_[j];
      two_.solve(k, F_);
    }
    return gained_[0];
  }

  // A row of the block waits in the table's extra columns; V stays until the block is full.
  double gather_block(double r, double* columns, const Table<T>& table, const std::int64_t* index,
                      std::int64_t n) {
    const std::int64_t b = s_.counts[kFilled]++;
    if (columns != nullptr) columns[s_.m + b] = r;
    for (std::int64_t j = 0; j < ld_; ++j) Y(b)[j] = j < rank() ? r * xhat_[j] : 0.0;
    for (std::int64_t l = 0; l <= b; ++l)
      s_.G[b * s_.block + l] = s_.G[l * s_.block + b] = l < b ? r * inner_[l] : r * r * xx_;
    const std::int64_t count = std::min(n, s_.room - s_.counts[kRecent]);
    if (index != nullptr) std::copy_n(index, count, s_.recent + s_.counts[kRecent]);
    s_.counts[kRecent] += count;
    if (s_.counts[kFilled] == s_.block) close_block(r, columns, table);
    return 0.0;
  }

  // V ← L⁻¹(V + Σ_b a_b ĝ_bᵀ) with LLᵀ = I + Σ(a_b ŷ_bᵀ + ŷ_b a_bᵀ) + Σ G_bl a_b a_lᵀ: what concerns small
  // matrices and the current row. end_block does the rest.
  void close_block(double r, double* columns, const Table<T>& table) {
    const std::int64_t k = rank(), B = s_.block;
    for (std::int64_t j = 0; j < k; ++j) {
      squares_[j] = 0;
      for (std::int64_t b = 0; b < B; ++b) squares_[j] += Y(b)[j] * Y(b)[j];
    }
    double norms = 0;
    for (std::int64_t b = 0; b < B; ++b) norms += s_.G[b * B + b];
    advance(norms);
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t j = 0; j < k; ++j) A(b)[j] = std::fmin(gain_[j], kFar / norms) * Y(b)[j];
    const Small M{M_.data(), ld_};
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        M.at(i, j) = i == j ? 1.0 : 0.0;
        for (std::int64_t b = 0; b < B; ++b) {
          double along = Y(b)[j];  // ĝ_bᵀ(v_j + Σ_l a_lj ĝ_l)
          for (std::int64_t l = 0; l < B; ++l) along += s_.G[b * B + l] * A(l)[j];
          M.at(i, j) += A(b)[i] * along + Y(b)[i] * A(b)[j];
        }
      }
    cholesky(M, k);
    growth_ = 0;
    for (std::int64_t j = 0; j < k; ++j) growth_ += std::log(std::fmax(M.at(j, j), 1e-300));
    if (refresh_due(growth_) || block_swings()) rebase(table, columns);
    for (std::int64_t b = 0; b < B; ++b) lost_[b] = dot(A(b), s_.c, ld_);
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t j = 0; j < k; ++j) xhat_[j] += A(b)[j] * (b + 1 < B ? inner_[b] : r * xx_);
    solve_lower(M, k, xhat_.data());
    multiply_transposed_lower(M, k, s_.c);
    block_ended_ = true;
  }

  void end_block(const Table<T>& table) {
    const std::int64_t k = rank(), B = s_.block;
    const Small M{M_.data(), ld_};
    if (rebased_ && growth_ > kDirect) {
      solve_lower(M, k, F_);
      write_out(table, nullptr, nullptr);
      for (std::int64_t b = 0; b < B; ++b) solve_lower(M, k, A(b));
    } else {
      for (std::int64_t b = 0; b < B; ++b) solve_lower(F_, k, A(b));  // δ_b = F⁻¹a_b
      solve_lower(M, k, F_);
    }
    for (std::int64_t i = 0; i < s_.counts[kRecent]; ++i) {
      T* row = table.row_of(s_.recent[i]);
      T* z = row + Table<T>::kSketch;
      for (std::int64_t b = 0; b < B; ++b) {
        const auto g = static_cast<double>(z[s_.m + b]);  // zero if this feature came earlier in the list
        if (g == 0) continue;
        row[Table<T>::kWeight] -= static_cast<T>(lost_[b] * g);
        for (std::int64_t j = 0; j < k; ++j) z[j] += static_cast<T>(A(b)[j] * g);
        z[s_.m + b] = T(0);
      }
    }
    s_.counts[kFilled] = s_.counts[kRecent] = 0;
  }

  // Starts afresh from what is: Z ← V, and w̄ ← w (c would only be cancelled by a w̄ that grows against it).
  void rebase(const Table<T>& table, double* columns) {
    table.sort_active(active_);
    std::fill(b_.begin(), b_.end(), 0.0);
    for (std::int64_t o = 0; o < s_.outputs; ++o)
      for (std::int64_t j = 0; j < rank(); ++j) axpy(c(o)[j], F_.row(j), &b_[o * ld_], ld_);  // b = Fᵀc
    write_out(table, columns, b_.data());
    std::fill(s_.c, s_.c + s_.outputs * ld_, 0.0);
    *s_.growth = 0;
    s_.counts[kTouched] = 0;
    rebased_ = true;
  }

  // Z ← FZ, F ← I, w̄ ← w̄ + Zᵀb; `columns` is what this row is about to add to Z.
  void write_out(const Table<T>& table, double* columns, const double* b) {
    const std::int64_t k = rank();
    for_active(table, [&](T* row, const double* z, const double* v) {
      for (std::int64_t o = 0; b != nullptr && o < s_.outputs; ++o) {
        T& weight = row[weight_column(o)];
        weight = static_cast<T>(static_cast<double>(weight) + dot(z, b + o * ld_, ld_));
      }
      for (std::int64_t j = 0; j < k; ++j) row[Table<T>::kSketch + j] = static_cast<T>(v[j]);
    });
    if (columns != nullptr) {
      for (std::int64_t j = 0; j < k; ++j) z_[j] = columns[j];
      for (std::int64_t j = 0; j < k; ++j) columns[j] = dot(F_.row(j), z_.data(), ld_);
    }
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < ld_; ++j) F_.at(i, j) = i == j ? 1.0 : 0.0;
  }

  // What rounding did to V is mended from the table itself: ZZᵀ = LLᵀ, F ← L⁻¹F.
  void orthonormalise(const Table<T>& table) {
    const std::int64_t k = rank();
    const Small M{M_.data(), ld_};
    std::fill(M_.begin(), M_.end(), 0.0);
    for_active(table, [&](T*, const double*, const double* v) {
      for (std::int64_t j = 0; j < k; ++j) axpy(v[j], v, M.row(j), padded4(j + 1));
    });
    cholesky(M, k);
    solve_lower(M, k, F_);
    for (std::int64_t o = 0; o < s_.outputs; ++o) multiply_transposed_lower(M, k, c(o));
  }

  // Calls visit(row, z, v) for every active feature, with its column of Z and that of V = FZ.
  template <class Visit>
  void for_active(const Table<T>& table, Visit visit) {
    const std::int64_t k = rank();
    std::vector<double> across(k * ld_, 0.0), z(ld_, 0.0), v(ld_);  // Fᵀ, so that no sum is across a vector
    const Small Ft{across.data(), ld_};
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < k; ++j) Ft.at(j, i) = F_.at(i, j);
    for (std::int64_t i = 0; i < active_; ++i) {
      table.prefetch_active(i, active_);
      T* row = table.row_of(table.active[i]);
      for (std::int64_t j = 0; j < k; ++j) z[j] = static_cast<double>(row[Table<T>::kSketch + j]);
      combine_rows(z.data(), Ft, k, v.data());
      visit(row, z.data(), v.data());
    }
  }

  OjaState s_;
  std::int64_t ld_;
  const double* alpha_;
  double scale_;
  Small F_;
  RankTwo two_;
  std::vector<double> z_, xhat_, gain_, squares_;
  std::vector<double> A_, lost_, M_;  // of a block: gains ∘ Y, aᵀc, and the factor L
  std::vector<double> b_, gained_;    // of each output
  Split<T> split_;                    // of a row whose steps are written out
  Table<T> table_{};
  const double* inner_ = nullptr;  // Gx: the current row against the rows of the block
  double xx_ = 0, growth_ = 0;
  std::int64_t active_ = 0;
  bool updated_ = false, block_ended_ = false, rebased_ = false, cancels_ = false, written_ = false;
};

}  // namespace skn
