// The sketch of a bank (bank.hpp), shared by its experts: Robust Frequent Directions U, λ of the rows, in
// sparse time.
//
// During an epoch U is fixed, rows wait in a buffer, and expert k's weights are W_k = w̄_k + Uᵀb_k. At an
// epoch's end U ← N₁U + N₂·buffer, and Uᵀb_k joins w̄_k: a linear map that features go through when they are
// touched next (DelayedMaps).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rows.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/delayed_maps.hpp"
#include "eigen/symmetric_eigen.hpp"
#include "learners/bank_state.hpp"

namespace skn {

template <class T>
class BankSketch {
  using State = BankState<T>;

 public:
  BankSketch(const BankState<T>& state, const Table<T>& table)
      : s_(state),
        table_(table),
        K_(state.experts),
        m_(state.m),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        ldn_(padded4(std::max<std::int64_t>(state.n, 1))),
        shape_{std::max<std::int64_t>(state.m, 1),
               padded4(state.experts + std::max<std::int64_t>(state.m, 1)), state.experts, table.stride},
        epochs_(shape_, state.epochs),
        map_(shape_.size()) {}

  std::int64_t rank() const { return s_.bank_counts[State::kRank]; }
  std::int64_t now() const { return epochs_.now(); }

  // How many rows the row t stands for if it is to be taken into the sketch, else 0.
  std::int64_t stands_for(std::int64_t t) {
    std::int64_t& next = s_.bank_counts[State::kNext];
    if (m_ == 0 || t < next) return 0;
    const std::int64_t rows = t <= kOften * m_ ? 1 : std::max(kEvery, t / kPace);
    next = t + rows;
    return rows;
  }

  // Whether the buffer is to be worked into U: often at first, when rows have the most to tell.
  bool due(std::int64_t t) const { return filled() > 0 && filled() >= std::min(s_.n, 1 + t / 16); }

  // Brings a feature up to date.
  void settle(T* row) {
    T* tail = row + table_.stride - State::kTail;
    if (tail[State::kCount] == T(0) || tail[State::kEpoch] < T(0)) return;
    epochs_.apply(static_cast<std::int64_t>(tail[State::kEpoch]), row, row + K_);
    tail[State::kEpoch] = static_cast<T>(epochs_.now());
  }

  // As if all slopes so far had been `factor` times as large.
  void shrink(double factor) {
    for (std::int64_t j = 0; j < rank(); ++j) s_.lambda[j] *= factor * factor;
    s_.scalars[State::kRidge] *= factor * factor;
    for (std::int64_t i = 0; i < filled(); ++i) s_.buffer_length[i] *= factor;
  }

  // The table's weights in another unit: `factor` times as many.
  void rescale(double factor) {
    for (std::int64_t i = 0; i < s_.counts[State::kActive]; ++i) {
      T* row = table_.row(i + 1);
      settle(row);
      for (std::int64_t k = 0; k < K_; ++k) row[k] *= static_cast<T>(factor);
    }
  }

  // Forgets all rows, and the experts their weights.
  void restart() {
    for (std::int64_t i = 0; i < s_.counts[State::kActive]; ++i) {
      T* row = table_.row(i + 1);
      std::fill_n(row, table_.stride - State::kTail, T(0));
      row[table_.stride - State::kTail + State::kEpoch] = T(-1);
    }
    for (int count : {State::kRank, State::kFilled, State::kEntries, State::kTouched})
      s_.bank_counts[count] = 0;
    s_.scalars[State::kRidge] = 0;
    std::fill_n(s_.lambda, ldm_, 0.0);
    std::fill_n(s_.b, K_ * ldm_, 0.0);
    std::fill_n(s_.constant, K_ + m_, 0.0);
    epochs_.restart();
  }

  // The row waits for the epoch's end.
  void keep(const Row& row, const T* x, double xx, const double* c, double length) {
    const std::int64_t place = s_.bank_counts[State::kFilled], start = s_.bank_counts[State::kEntries];
    if (place >= s_.n || start + row.size() > s_.room) return;  // no state that was learned
    ++s_.bank_counts[State::kFilled];
    s_.buffer_start[place] = start;
    s_.buffer_start[place + 1] = s_.bank_counts[State::kEntries] = start + row.size();
    std::copy_n(row.index(), row.size(), s_.buffer_index + start);
    std::copy_n(x, row.size(), s_.buffer_value + start);
    s_.buffer_length[place] = length;
    std::copy_n(c, ldm_, s_.buffer_c + place * ldm_);
    const double one = s_.intercept ? 1.0 : 0.0;
    double* const gram = s_.buffer_gram + place * ldn_;
    std::int64_t i = 0;
    for (; i + 2 <= place; i += 2) {  // two at a time: a step of one product has to wait for the last
      Product a(s_, i, place), b(s_, i + 1, place);
      while (a.open() && b.open()) a.step(), b.step();
      gram[i] = one + a.rest();
      gram[i + 1] = one + b.rest();
    }
    if (i < place) gram[i] = one + Product(s_, i, place).rest();
    s_.buffer_gram[place * ldn_ + place] = xx;
  }

  // [√λU; buffer] in an orthonormal basis [U; E] of its rows, E = CU + T·buffer; Robust Frequent Directions
  // there; U ← N₁U + N₂·buffer. The current row is the buffer's last: its c moves on to the new U. `unit` is
  // that of the table's weights.
  void end_epoch(double* c, double unit = 1.0) {
    const std::int64_t r = rank(), n = filled(), ld = padded4(r + n);
    std::vector<double> Y(n * ld, 0.0), C(n * ldm_, 0.0), Tm(n * ldn_, 0.0);
    std::int64_t opened = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double length = s_.buffer_length[i];
      double* y = &Y[i * ld];
      double inside = 0;
      for (std::int64_t j = 0; j < r; ++j) {
        y[j] = length * s_.buffer_c[i * ldm_ + j];
        inside += y[j] * y[j];
      }
      const double whole = length * length * s_.buffer_gram[i * ldn_ + i];
      for (std::int64_t e = 0; e < opened; ++e) {
        double sum = 0;  // ⟨row i, E_e⟩ = C_e·(U row) + T_e·(products with the buffer's rows)
        for (std::int64_t j = 0; j < r; ++j) sum += C[e * ldm_ + j] * y[j];
        for (std::int64_t b = 0; b < i; ++b)
          sum += Tm[e * ldn_ + b] * length * s_.buffer_length[b] * s_.buffer_gram[i * ldn_ + b];
        y[r + e] = sum;
        inside += sum * sum;
      }
      if (!(whole - inside > kInside * whole)) continue;
      const double rest = std::sqrt(whole - inside);
      double *Cn = &C[opened * ldm_], *Tn = &Tm[opened * ldn_];
      for (std::int64_t j = 0; j < r; ++j) Cn[j] = -y[j] / rest;
      Tn[i] = 1.0 / rest;
      for (std::int64_t e = 0; e < opened; ++e) {
        axpy(-y[r + e] / rest, &C[e * ldm_], Cn, ldm_);
        axpy(-y[r + e] / rest, &Tm[e * ldn_], Tn, ldn_);
      }
      y[r + opened++] = rest;
    }
    rotate(Y, C, Tm, opened, ld, c, unit);
    push_epoch(unit);
    if (epochs_.full() || s_.bank_counts[State::kTouched] >= kAmortise * s_.counts[State::kActive]) sweep();
  }

 private:
  // Rows taken into the sketch: all of the first 30m, then every 8th, later one in t/64.
  static constexpr std::int64_t kOften = 30, kEvery = 8, kPace = 64;
  static constexpr std::int64_t kAmortise = 16;  // a sweep costs this share of the work since the last
  static constexpr double kInside = sizeof(T) == 4 ? 1e-5 : 1e-11;  // share of ‖x‖² that is rounding
  static constexpr double kGone = 1e-13;  // share of λ₁ below which a direction has no length

  std::int64_t filled() const { return s_.bank_counts[State::kFilled]; }

  // Of two rows in the buffer, feature by feature, without branches that depend on them.
  class Product {
   public:
    Product(const BankState<T>& s, std::int64_t a, std::int64_t b)
        : index_(s.buffer_index),
          value_(s.buffer_value),
          i_(s.buffer_start[a]),
          j_(s.buffer_start[b]),
          end_i_(s.buffer_start[a + 1]),
          end_j_(s.buffer_start[b + 1]) {}

    bool open() const { return i_ < end_i_ && j_ < end_j_; }
    void step() {
      const std::int64_t f = index_[i_], g = index_[j_];
      const double both = static_cast<double>(value_[i_]) * static_cast<double>(value_[j_]);
      sum_ += std::bit_cast<double>(std::bit_cast<std::uint64_t>(both) & -std::uint64_t{f == g});
      i_ += f <= g;
      j_ += g <= f;
    }
    double rest() {
      while (open()) step();
      return sum_;
    }

   private:
    const std::int64_t* index_;
    const T* value_;
    std::int64_t i_, j_, end_i_, end_j_;
    double sum_ = 0;
  };

  void rotate(const std::vector<double>& Y, const std::vector<double>& C, const std::vector<double>& Tm,
              std::int64_t opened, std::int64_t ld, double* now, double unit) {
    const std::int64_t r = rank(), n = filled(), size = r + opened;
    std::vector<double> M(size * ld, 0.0);
    for (std::int64_t j = 0; j < r; ++j) M[j * ld + j] = s_.lambda[j];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < size; ++j) axpy(Y[i * ld + j], &Y[i * ld], &M[j * ld], size);
    eigen_.compute(M.data(), ld, size);
    const double least = kGone * eigen_.values[0];
    const double delta = size > m_ && eigen_.values[m_] > least ? eigen_.values[m_] : 0.0;
    s_.scalars[State::kRidge] += delta;

    std::fill(map_.begin(), map_.end(), T(0));
    gain_.assign(n * m_, 0.0);
    for (std::int64_t j = 0; j < r; ++j)
      for (std::int64_t k = 0; k < K_; ++k)
        map_[j * shape_.width + k] = State::held(s_.coordinate(k, j, ldm_) / unit);
    std::int64_t kept = 0;
    const double* last = &Y[(n - 1) * ld];
    for (std::int64_t i = 0; i < std::min(size, m_); ++i) {
      if (!(eigen_.values[i] - delta > least)) continue;
      const double* e = &eigen_.vectors[i * size];
      for (std::int64_t j = 0; j < r; ++j) {
        double N1 = e[j];
        for (std::int64_t o = 0; o < opened; ++o) N1 += e[r + o] * C[o * ldm_ + j];
        map_[j * shape_.width + K_ + kept] = static_cast<T>(N1);
      }
      for (std::int64_t b = 0; b < n; ++b) {
        double N2 = 0;
        for (std::int64_t o = 0; o < opened; ++o) N2 += e[r + o] * Tm[o * ldn_ + b];
        gain_[b * m_ + kept] = N2 * s_.buffer_length[b];
      }
      double c = 0;
      for (std::int64_t j = 0; j < size; ++j) c += e[j] * last[j];
      now[kept] = c / s_.buffer_length[n - 1];
      s_.lambda[kept++] = eigen_.values[i] - delta;
    }
    for (std::int64_t j = kept; j < m_; ++j) now[j] = s_.lambda[j] = 0;
    s_.bank_counts[State::kRank] = kept;
  }

  // Features of the buffer go through the map at once, and take in the buffer's rows.
  void push_epoch(double unit) {
    const auto next = static_cast<T>(epochs_.now() + 1);
    for (std::int64_t i = 0; i < s_.bank_counts[State::kEntries]; ++i) {
      T* row = table_.packed_row(s_.buffer_index[i]);
      T& epoch = row[table_.stride - State::kTail + State::kEpoch];
      if (epoch == next) continue;  // met before in the list
      if (epoch >= T(0)) epochs_.multiply(map_.data(), row, row + K_);
      epoch = next;
    }
    std::vector<T> gain(m_);
    for (std::int64_t b = 0; b < filled(); ++b) {
      const double* const its = &gain_[b * m_];
      if (!std::all_of(its, its + m_, [](double g) { return std::abs(g) < State::kHeaviest; })) {
        take_exactly(b);
        continue;
      }
      for (std::int64_t j = 0; j < m_; ++j) gain[j] = static_cast<T>(its[j]);
      for (std::int64_t i = s_.buffer_start[b]; i < s_.buffer_start[b + 1]; ++i) {
        T* z = table_.packed_row(s_.buffer_index[i]) + K_;
        for (std::int64_t j = 0; j < m_; ++j) z[j] += s_.buffer_value[i] * gain[j];
      }
    }
    if (s_.intercept) {
      std::vector<double> z(m_, 0.0);
      for (std::int64_t j = 0; j < m_; ++j) {
        const double old = s_.constant[K_ + j];
        const T* image = &map_[j * shape_.width];
        for (std::int64_t k = 0; k < K_; ++k) s_.constant[k] += old * unit * static_cast<double>(image[k]);
        for (std::int64_t i = 0; i < m_; ++i) z[i] += old * static_cast<double>(image[K_ + i]);
      }
      for (std::int64_t b = 0; b < filled(); ++b)
        for (std::int64_t j = 0; j < m_; ++j) z[j] += gain_[b * m_ + j];
      std::copy_n(z.data(), m_, s_.constant + K_);
    }
    epochs_.push(map_.data());
    std::fill(s_.b, s_.b + K_ * ldm_, 0.0);
    s_.bank_counts[State::kFilled] = s_.bank_counts[State::kEntries] = 0;
  }

  // A row of the buffer that is too short for its gain to be a number of type T.
  void take_exactly(std::int64_t b) {
    for (std::int64_t i = s_.buffer_start[b]; i < s_.buffer_start[b + 1]; ++i) {
      T* z = table_.packed_row(s_.buffer_index[i]) + K_;
      const auto x = static_cast<double>(s_.buffer_value[i]);
      for (std::int64_t j = 0; j < m_; ++j)
        z[j] = State::held(static_cast<double>(z[j]) + x * gain_[b * m_ + j]);
    }
  }

  // All features are brought up to date, and the count of epochs starts again. What rounding did to U is
  // mended by one more map: UUᵀ = LLᵀ, U ← L⁻¹U.
  void sweep() {
    s_.bank_counts[State::kTouched] = 0;
    std::vector<double> G(m_ * ldm_, 0.0), I(m_ * ldm_, 0.0), z(ldm_, 0.0);
    const Small L{G.data(), ldm_}, N{I.data(), ldm_};
    const auto add = [&] {
      for (std::int64_t j = 0; j < m_; ++j) axpy(z[j], z.data(), L.row(j), padded4(j + 1));
    };
    for (std::int64_t i = 0, active = s_.counts[State::kActive]; i < active; ++i) {
      T* row = table_.row(i + 1);
      T& epoch = row[table_.stride - State::kTail + State::kEpoch];
      if (epoch < T(0)) continue;
      settle(row);
      epoch = T(0);
      for (std::int64_t j = 0; j < m_; ++j) z[j] = static_cast<double>(row[K_ + j]);
      add();
    }
    epochs_.restart();
    if (s_.intercept) {
      std::copy_n(s_.constant + K_, m_, z.data());
      add();
    }
    cholesky(L, rank());
    for (std::int64_t j = 0; j < rank(); ++j) N.at(j, j) = 1.0;
    solve_lower(L, rank(), N);
    std::fill(map_.begin(), map_.end(), T(0));
    for (std::int64_t i = 0; i < rank(); ++i)
      for (std::int64_t j = 0; j <= i; ++j) map_[j * shape_.width + K_ + i] = static_cast<T>(N.at(i, j));
    epochs_.push(map_.data());
    if (!s_.intercept) return;
    std::fill(z.begin(), z.end(), 0.0);
    for (std::int64_t i = 0; i < rank(); ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        z[i] += s_.constant[K_ + j] * static_cast<double>(static_cast<T>(N.at(i, j)));
    std::copy_n(z.data(), m_, s_.constant + K_);
  }

  BankState<T> s_;
  Table<T> table_;
  std::int64_t K_, m_, ldm_, ldn_;
  MapShape shape_;
  DelayedMaps<T> epochs_;
  SymmetricEigen eigen_;
  std::vector<double> gain_;
  std::vector<T> map_;
};

}  // namespace skn
