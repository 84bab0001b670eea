// A bank of online Newton learners that needs no tuning, in sparse time (docs/untuned.md).
//
// The experts share features' scales and one Robust Frequent Directions sketch U, λ of the rows; each takes
// its own steps. During an epoch U is fixed, rows for the sketch wait in a buffer, and expert k's weights are
// W_k = w̄_k + Uᵀb_k. At an epoch's end U ← N₁U + N₂·buffer, and Uᵀb_k joins w̄_k: a linear map that features
// go through when they are touched next (DelayedMaps).
//
// A table row: K weights w̄, m sketch coordinates, padding, then the number of rows that had the feature, √Σx²
// and the epoch up to which the row has been brought (−1: no coordinates yet, nothing to bring).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "aggregate.hpp"
#include "delayed_maps.hpp"
#include "eigen.hpp"
#include "rows.hpp"
#include "small.hpp"
#include "table.hpp"

namespace skn {

// Step sizes: an expert's metric is a + f(U λ Uᵀ), its step `multiplier` long.
struct Expert {
  double constant, root;  // f = constant + root/√t
  double multiplier;
  double even;  // 1: sees rows of classes brought halfway to the typical length; 0: as they are
};

// Small matrices have rows of ldm (m padded to four) or ldn (n padded to four) doubles.
template <class T>
struct BankState {
  std::int64_t m, n, experts;  // size of the sketch, of its buffer
  const Expert* expert;
  std::int64_t* counts;       // rounds, active features, dimension
  std::int64_t* bank_counts;  // see the enum of Bank
  double* scalars;            // see the enum of Bank
  double* shares;             // v: one per expert
  double* lambda;             // ldm
  double* b;                  // experts × ldm
  double* constant;           // of the feature that is always 1: experts + m numbers; not used without it
  std::int64_t* buffer_index;
  T* buffer_value;
  std::int64_t* buffer_start;  // n + 1
  double* buffer_length;       // n: what the values are to be multiplied with
  double* buffer_c;            // n × ldm: U times the buffer's values
  double* buffer_gram;         // n × ldn: products of the buffer's values
  MapState<T> epochs;
  bool intercept;
};

template <class T>
class Bank {
 public:
  enum { kClock, kSquares, kRidge, kOffset, kLow, kHigh, kSeenLow, kSeenHigh, kRate, kScalars };

  // Rows learned from, rank of U, rows in the buffer, its entries, kind of labels, the row that is taken into
  // the sketch next, non-zeros since the last sweep.
  enum { kLearned, kRank, kFilled, kEntries, kLabels, kNext, kTouched, kBankCounts };

  Bank(const Aggregate& aggregate, const BankState<T>& state, const Table<T>& table)
      : aggregate_(aggregate),
        s_(state),
        table_(table),
        K_(state.experts),
        m_(state.m),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        ldn_(padded4(std::max<std::int64_t>(state.n, 1))),
        shape_{std::max<std::int64_t>(state.m, 1),
               padded4(state.experts + std::max<std::int64_t>(state.m, 1)), state.experts},
        epochs_(shape_, state.epochs),
        sums_(table.stride),
        c_(ldm_),
        even_c_(ldm_),
        p_(K_),
        up_(K_),
        down_(K_),
        step_(K_),
        direction_(ldm_),
        map_(shape_.size()) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    stream(
        rows, 0, rows.count(), [this](const Row& next) { table_.prefetch(next.index(), next.size()); },
        [&](const Row& row, std::int64_t i) {
          out[i] = learn_row(row, labels[i], weights == nullptr ? 1.0 : weights[i]);
        });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    Row row;
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      rows.load(i, row);
      out[i] = peek(row, features);
    }
  }

  // What each expert would predict: experts numbers per row.
  void predict_experts(const Rows& rows, std::int64_t features, double* out) {
    Row row;
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      rows.load(i, row);
      peek(row, features);
      for (std::int64_t k = 0; k < K_; ++k) out[i * K_ + k] = middle() + half() * p_[k];
    }
  }

  // Copies of the rows of all active features, up to date.
  void settled(T* out) {
    for (std::int64_t i = 0; i < s_.counts[kActive]; ++i) {
      T* row = out + i * table_.stride;
      std::copy_n(table_.row(table_.active[i]), table_.stride, row);
      settle(row);
    }
  }

 private:
  enum { kRounds, kActive, kDimension };
  enum { kNone, kSigns, kRange };  // labels: none so far, only −1 and +1, anything
  // Rows taken into the sketch: all of the first 30m, then every 8th, later one in t/64.
  static constexpr std::int64_t kOften = 30, kEvery = 8, kPace = 64;
  static constexpr std::int64_t kAmortise = 16;  // a sweep costs this share of the work since the last
  static constexpr std::int64_t kFree = 8;       // rows in which the range of labels grows at will
  static constexpr double kNoStep = 1e-9;        // slopes below this teach nothing
  static constexpr double kInside = sizeof(T) == 4 ? 1e-5 : 1e-11;  // share of ‖x‖² that is rounding
  static constexpr double kGone = 1e-13;  // share of λ₁ below which a direction has no length

  double middle() const {
    return aggregate_.logistic() ? 0.0 : 0.5 * s_.scalars[kLow] + 0.5 * s_.scalars[kHigh];
  }
  double half() const {
    return aggregate_.logistic() ? 1.0 : 0.5 * s_.scalars[kHigh] - 0.5 * s_.scalars[kLow];
  }
  std::int64_t rank() const { return s_.bank_counts[kRank]; }
  std::int64_t filled() const { return s_.bank_counts[kFilled]; }

  double learn_row(const Row& row, double label, double h) {
    if (h == 0) return peek(row, std::numeric_limits<std::int64_t>::max());
    const double played = look(table_, row.index(), row.value(), row.size());
    const double prediction =
        s_.bank_counts[kLabels] == kNone && !aggregate_.logistic() ? 0.0 : middle() + half() * played;
    if (s_.bank_counts[kLabels] == kNone) meet(label);
    const auto t = ++s_.counts[kRounds];
    const double clock = s_.scalars[kClock] += h;
    const double y = aggregate_.logistic() ? label
                     : half() > 0
                         ? (std::clamp(label, s_.scalars[kLow], s_.scalars[kHigh]) - middle()) / half()
                         : 0.0;
    if (half() > 0 && !wild(label)) {
      charge(y, h, clock);
      const double r = aggregate_.slope(played, y);
      const std::int64_t rows = stands_for(t);
      if (std::abs(r) >= kNoStep && xx_ > 0) improve(row, y, r, h, rows, clock);
    }
    if (!aggregate_.logistic()) widen(label);
    return prediction;
  }

  // How many rows the row t stands for if it is to be taken into the sketch, else 0.
  std::int64_t stands_for(std::int64_t t) {
    std::int64_t& next = s_.bank_counts[kNext];
    if (m_ == 0 || t < next) return 0;
    const std::int64_t rows = t <= kOften * m_ ? 1 : std::max(kEvery, t / kPace);
    next = t + rows;
    return rows;
  }

  // Scales, sketch, then every expert's step.
  void improve(const Row& row, double y, double r, double h, std::int64_t rows, double clock) {
    enter(row);
    s_.scalars[kSquares] += xx_;
    if (rows > 0) keep(row, std::sqrt(h * static_cast<double>(rows)) * std::abs(r));
    if (filled() > 0 && filled() >= std::min(s_.n, 1 + s_.counts[kRounds] / 16)) end_epoch();

    const double *even_c = evened(), one = s_.intercept ? 1.0 : 0.0;
    const double even_xx = factor_ * factor_ * (xx_ - one) + one, first = typical();
    const double root = 1.0 / std::sqrt(std::max(clock, 1.0));
    const double* c = c_.data();
    double* direction = direction_.data();
    double f = -1, a = 0, q = 0, even = -1;
    for (std::int64_t k = 0; k < K_; ++k) {
      const Expert& expert = s_.expert[k];
      const double its_f = expert.constant + expert.root * root;
      if (its_f != f || expert.even != even) {  // experts of one kind stand together
        f = its_f;
        even = expert.even;
        c = even != 0 ? even_c : c_.data();
        a = first + 0.5 * f * s_.scalars[kRidge];
        q = std::max(0.0, (even != 0 ? even_xx : xx_) - dot(c, c, ldm_)) / a;
        for (std::int64_t j = 0; j < ldm_; ++j) {
          const double g = 1.0 / (a + f * s_.lambda[j]);
          q += c[j] * c[j] * g;
          direction[j] = c[j] * (g - 1.0 / a);
        }
      }
      const double step = half() * aggregate_.travel(p_[k], y, h * expert.multiplier * q) / q;
      step_[k] = step / a;
      axpy(step, direction, s_.b + k * ldm_, ldm_);
    }
    scatter(row);
  }

  void scatter(const Row& row) {
    if (s_.intercept)
      for (std::int64_t k = 0; k < K_; ++k) s_.constant[k] += step_[k];
    for (std::int64_t k = 0; k < K_; ++k)
      if (s_.expert[k].even != 0) step_[k] *= factor_;
    std::int64_t k = 0;
    if (table_.stride >= 8) {
      T step[8] = {};
      for (; k < std::min<std::int64_t>(K_, 8); ++k) step[k] = static_cast<T>(step_[k]);
      scatter_eight(row.index(), x_.data(), row.size(), step);
    }
    for (; k < K_; ++k)
      for (std::int64_t i = 0; i < row.size(); ++i)
        table_.row(row.index()[i])[k] += x_[i] * static_cast<T>(step_[k]);
  }

  void scatter_eight(const std::int64_t* index, const T* x, std::int64_t n, const T* step) const {
    T s[8];
    for (int k = 0; k < 8; ++k) s[k] = step[k];
    for (std::int64_t i = 0; i < n; ++i) {
      T *w = table_.row(index[i]), sum[8];
      const T xi = x[i];
      for (int k = 0; k < 8; ++k) sum[k] = w[k] + xi * s[k];  // apart, so that the compiler sees no aliases
      for (int k = 0; k < 8; ++k) w[k] = sum[k];
    }
  }

  // Reads features: x scaled, c = Ux, the experts' predictions. Returns the one played.
  double look(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n) {
    fetch(table, index, value, n);
    scale(n);
    table.gather(index, x_.data(), n, sums_.data());
    for (std::int64_t j = 0; j < rank(); ++j) c_[j] = sums_[K_ + j] + s_.constant[K_ + j];
    for (std::int64_t j = rank(); j < ldm_; ++j) c_[j] = 0;
    const double* even = evened();
    for (std::int64_t k = 0; k < K_; ++k) {
      const bool evens = s_.expert[k].even != 0;
      const double score = s_.scalars[kOffset] + s_.constant[k] + (evens ? factor_ : 1.0) * sums_[k] +
                           dot(evens ? even : c_.data(), s_.b + k * ldm_, ldm_);
      if (aggregate_.logistic())
        p_[k] = std::clamp(score, -Aggregate::kLargestLogit, Aggregate::kLargestLogit);
      else
        p_[k] =
            half() > 0 ? (std::clamp(score, s_.scalars[kLow], s_.scalars[kHigh]) - middle()) / half() : 0.0;
    }
    return aggregate_.mix(p_.data(), s_.shares, K_, up_.data(), down_.data());
  }

  // The prediction of a row, nothing changed: work put off is done on copies.
  double peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    copies_.resize(static_cast<std::size_t>(n * table_.stride));
    places_.resize(static_cast<std::size_t>(n));
    Table<T> table = table_;
    table.rows = copies_.data();
    for (std::int64_t i = 0; i < n; ++i) {
      places_[i] = i;
      std::copy_n(table_.row(row.index()[i]), table_.stride, table.row(i));
    }
    const double played = look(table, places_.data(), row.value(), n);
    if (s_.bank_counts[kLabels] == kNone && !aggregate_.logistic()) return 0.0;
    return middle() + half() * played;
  }

  // Brings features up to date and reads their scales. Which need it is found out without a branch, so that
  // many rows of the table can be on their way from memory at once.
  void fetch(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n) {
    for (auto* array : {&x_, &count_, &root_}) array->resize(static_cast<std::size_t>(n));
    behind_.resize(static_cast<std::size_t>(n + 1));
    const auto now = static_cast<T>(epochs_.now());
    std::int64_t behind = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      T* row = table.row(index[i]);
      const T* tail = row + table_.stride - kTail;
      x_[i] = static_cast<T>(value[i]);
      count_[i] = tail[kCount];
      root_[i] = tail[kRoot];
      behind_[behind] = row;
      behind += (tail[kCount] != T(0)) & (tail[kEpoch] >= T(0)) & (tail[kEpoch] != now);
    }
    for (std::int64_t i = 0; i < behind; ++i) settle(behind_[i]);
  }

  // x_i divided by the geometric mean of its root mean squares over the rows that have it and over all rows,
  // this one included: √Σx²/(nT)^¼. Only relative quantities are formed, which stay in range whatever the
  // unit of x_i.
  void scale(std::int64_t n) {
    const T rows = static_cast<T>(s_.bank_counts[kLearned] + 1);
    T* __restrict x = x_.data();
    T* __restrict count = count_.data();
    T* __restrict root = root_.data();
    for (std::int64_t i = 0; i < n; ++i) {
      const T most = std::max(std::max(root[i], std::abs(x[i])), std::numeric_limits<T>::min());
      const T before = root[i] / most, now = x[i] / most,
              relative = std::max(std::sqrt(before * before + now * now), T(1e-30));
      root[i] = most * relative;
      count[i] += T(1);
      x[i] = now / relative * std::sqrt(std::sqrt(count[i] * rows));
    }
    xx_ = s_.intercept ? 1.0 : 0.0;
    for (std::int64_t i = 0; i < n; ++i) xx_ += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    // Classes hardly depend on how long a row is (a long text is not more of its class): some experts see
    // rows halfway to the typical length. Numbers to be predicted may well, so there all see rows as they
    // are.
    factor_ = 1;
    if (s_.bank_counts[kLabels] == kSigns && s_.bank_counts[kLearned] > 0) {
      double seen = s_.intercept ? 1.0 : 0.0;  // features never seen count as zero, here too
      for (std::int64_t i = 0; i < n; ++i)
        seen += count[i] > T(1) ? static_cast<double>(x[i]) * static_cast<double>(x[i]) : 0.0;
      if (seen > 0) factor_ = std::sqrt(std::sqrt(typical() / seen));
    }
  }

  double typical() const {  // ‖x‖²
    return s_.scalars[kSquares] / static_cast<double>(s_.bank_counts[kLearned]);
  }

  // c for a row whose features are multiplied by factor_, the constant not.
  const double* evened() {
    for (std::int64_t j = 0; j < rank(); ++j)
      even_c_[j] = factor_ * (c_[j] - s_.constant[K_ + j]) + s_.constant[K_ + j];
    for (std::int64_t j = rank(); j < ldm_; ++j) even_c_[j] = 0;
    return even_c_.data();
  }

  // The row's scales become those of its features.
  void enter(const Row& row) {
    ++s_.bank_counts[kLearned];
    s_.bank_counts[kTouched] += row.size();
    for (std::int64_t i = 0; i < row.size(); ++i) {
      T* tail = table_.row(row.index()[i]) + table_.stride - kTail;
      if (count_[i] == T(1)) {
        table_.active[s_.counts[kActive]++] = row.index()[i];
        tail[kEpoch] = T(-1);
      }
      tail[kCount] = count_[i];
      tail[kRoot] = root_[i];
    }
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
  }

  void settle(T* row) {
    T* tail = row + table_.stride - kTail;
    if (tail[kCount] == T(0) || tail[kEpoch] < T(0)) return;
    epochs_.apply(static_cast<std::int64_t>(tail[kEpoch]), row, row + K_);
    tail[kEpoch] = static_cast<T>(epochs_.now());
  }

  // -- labels

  void meet(double label) {
    if (aggregate_.logistic() || std::abs(label) == 1.0) {
      s_.bank_counts[kLabels] = kSigns;
      s_.scalars[kSeenLow] = s_.scalars[kSeenHigh] = label;
    } else {
      s_.bank_counts[kLabels] = kRange;
      s_.scalars[kOffset] = s_.scalars[kLow] = s_.scalars[kHigh] = label;
      s_.scalars[kSeenLow] = s_.scalars[kSeenHigh] = label;
    }
  }

  // Farther from the range than it is wide: taken into the range, up to a point, but not learned.
  bool wild(double label) const {
    const double low = s_.scalars[kLow], high = s_.scalars[kHigh];
    return s_.bank_counts[kLabels] == kRange && s_.counts[kRounds] > kFree &&
           (label > high + (high - low) || label < low - (high - low));
  }

  void charge(double y, double h, double clock) {
    const double rate = aggregate_.rate(clock, K_);
    double& old = s_.scalars[kRate];
    if (old > 0 && rate != old) temper(rate / old);
    old = rate;
    aggregate_.charge(p_.data(), y, h, rate, 1.0 / (clock + 1.0), s_.shares, K_, up_.data(), down_.data());
  }

  void temper(double power) {  // v ← v^power
    double sum = 0;
    for (std::int64_t k = 0; k < K_; ++k) sum += s_.shares[k] = std::pow(s_.shares[k], power);
    for (std::int64_t k = 0; k < K_; ++k) s_.shares[k] /= sum;
  }

  // The range of labels grows after the row that showed it has been learned, as the nearest label within;
  // past the first rows at most twofold, so that one wild label does not take the measure from all others.
  void widen(double label) {
    double &low = s_.scalars[kLow], &high = s_.scalars[kHigh];
    s_.scalars[kSeenLow] = std::min(s_.scalars[kSeenLow], label);
    s_.scalars[kSeenHigh] = std::max(s_.scalars[kSeenHigh], label);
    if (s_.bank_counts[kLabels] == kSigns && std::abs(label) == 1.0) return;
    const bool signs = s_.bank_counts[kLabels] == kSigns;
    const double old = half(), room = s_.counts[kRounds] > kFree && old > 0 ? 2 * old : INFINITY;
    s_.bank_counts[kLabels] = kRange;
    low = std::max(low - room, signs ? s_.scalars[kSeenLow] : std::min(low, label));
    high = std::min(high + room, signs ? s_.scalars[kSeenHigh] : std::max(high, label));
    if (!(old > 0) || half() == old) return;
    const double shrink = old / half();
    for (std::int64_t j = 0; j < rank(); ++j) s_.lambda[j] *= shrink * shrink;
    s_.scalars[kRidge] *= shrink * shrink;
    for (std::int64_t i = 0; i < filled(); ++i) s_.buffer_length[i] *= shrink;
    if (aggregate_.squared()) temper(shrink * shrink);
  }

  // -- sketch

  // The row waits for the epoch's end.
  void keep(const Row& row, double length) {
    const std::int64_t place = s_.bank_counts[kFilled]++, start = s_.bank_counts[kEntries];
    s_.buffer_start[place] = start;
    s_.buffer_start[place + 1] = s_.bank_counts[kEntries] = start + row.size();
    std::copy_n(row.index(), row.size(), s_.buffer_index + start);
    std::copy_n(x_.data(), row.size(), s_.buffer_value + start);
    s_.buffer_length[place] = length;
    std::copy_n(c_.data(), ldm_, s_.buffer_c + place * ldm_);
    for (std::int64_t i = 0; i < place; ++i)
      s_.buffer_gram[place * ldn_ + i] = (s_.intercept ? 1.0 : 0.0) + product(i, place);
    s_.buffer_gram[place * ldn_ + place] = xx_;
  }

  double product(std::int64_t a, std::int64_t b) const {  // of two rows in the buffer
    const std::int64_t *ia = s_.buffer_index + s_.buffer_start[a], *ib = s_.buffer_index + s_.buffer_start[b];
    const T *va = s_.buffer_value + s_.buffer_start[a], *vb = s_.buffer_value + s_.buffer_start[b];
    const std::int64_t na = s_.buffer_start[a + 1] - s_.buffer_start[a],
                       nb = s_.buffer_start[b + 1] - s_.buffer_start[b];
    double sum = 0;
    for (std::int64_t i = 0, j = 0; i < na && j < nb;) {  // without branches that depend on the data
      const std::int64_t f = ia[i], g = ib[j];
      sum += f == g ? static_cast<double>(va[i]) * static_cast<double>(vb[j]) : 0.0;
      i += f <= g;
      j += g <= f;
    }
    return sum;
  }

  // [√λU; buffer] in an orthonormal basis [U; E] of its rows, E = CU + T·buffer; Robust Frequent Directions
  // there; U ← N₁U + N₂·buffer. The current row is the buffer's last: its c moves on to the new U.
  void end_epoch() {
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
    rotate(Y, C, Tm, opened, ld);
    push_epoch();
    if (epochs_.full() || s_.bank_counts[kTouched] >= kAmortise * s_.counts[kActive]) sweep();
  }

  void rotate(const std::vector<double>& Y, const std::vector<double>& C, const std::vector<double>& Tm,
              std::int64_t opened, std::int64_t ld) {
    const std::int64_t r = rank(), n = filled(), size = r + opened;
    std::vector<double> M(size * ld, 0.0);
    for (std::int64_t j = 0; j < r; ++j) M[j * ld + j] = s_.lambda[j];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < size; ++j) axpy(Y[i * ld + j], &Y[i * ld], &M[j * ld], size);
    eigen_.compute(M.data(), ld, size);
    const double least = kGone * eigen_.values[0];
    const double delta = size > m_ && eigen_.values[m_] > least ? eigen_.values[m_] : 0.0;
    s_.scalars[kRidge] += delta;

    std::fill(map_.begin(), map_.end(), T(0));
    gain_.assign(n * m_, 0.0);
    for (std::int64_t j = 0; j < r; ++j)
      for (std::int64_t k = 0; k < K_; ++k) map_[j * shape_.width + k] = static_cast<T>(s_.b[k * ldm_ + j]);
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
      c_[kept] = c / s_.buffer_length[n - 1];
      s_.lambda[kept++] = eigen_.values[i] - delta;
    }
    for (std::int64_t j = kept; j < m_; ++j) c_[j] = s_.lambda[j] = 0;
    s_.bank_counts[kRank] = kept;
  }

  // Features of the buffer go through the map at once, and take in the buffer's rows.
  void push_epoch() {
    const auto next = static_cast<T>(epochs_.now() + 1);
    for (std::int64_t i = 0; i < s_.bank_counts[kEntries]; ++i) {
      T* row = table_.row(s_.buffer_index[i]);
      T& epoch = row[table_.stride - kTail + kEpoch];
      if (epoch == next) continue;  // met before in the list
      if (epoch >= T(0)) epochs_.multiply(map_.data(), row, row + K_);
      epoch = next;
    }
    std::vector<T> gain(m_);
    for (std::int64_t b = 0; b < filled(); ++b) {
      for (std::int64_t j = 0; j < m_; ++j) gain[j] = static_cast<T>(gain_[b * m_ + j]);
      for (std::int64_t i = s_.buffer_start[b]; i < s_.buffer_start[b + 1]; ++i) {
        T* z = table_.row(s_.buffer_index[i]) + K_;
        for (std::int64_t j = 0; j < m_; ++j) z[j] += s_.buffer_value[i] * gain[j];
      }
    }
    if (s_.intercept) {
      std::vector<double> z(m_, 0.0);
      for (std::int64_t j = 0; j < m_; ++j) {
        const double old = s_.constant[K_ + j];
        const T* image = &map_[j * shape_.width];
        for (std::int64_t k = 0; k < K_; ++k) s_.constant[k] += old * static_cast<double>(image[k]);
        for (std::int64_t i = 0; i < m_; ++i) z[i] += old * static_cast<double>(image[K_ + i]);
      }
      for (std::int64_t b = 0; b < filled(); ++b)
        for (std::int64_t j = 0; j < m_; ++j) z[j] += gain_[b * m_ + j];
      std::copy_n(z.data(), m_, s_.constant + K_);
    }
    epochs_.push(map_.data());
    std::fill(s_.b, s_.b + K_ * ldm_, 0.0);
    s_.bank_counts[kFilled] = s_.bank_counts[kEntries] = 0;
  }

  // All features are brought up to date, and the count of epochs starts again. What rounding did to U is
  // mended by one more map: UUᵀ = LLᵀ, U ← L⁻¹U.
  void sweep() {
    s_.bank_counts[kTouched] = 0;
    std::vector<double> G(m_ * ldm_, 0.0), I(m_ * ldm_, 0.0), z(ldm_, 0.0);
    const Small L{G.data(), ldm_}, N{I.data(), ldm_};
    const auto add = [&] {
      for (std::int64_t j = 0; j < m_; ++j) axpy(z[j], z.data(), L.row(j), padded4(j + 1));
    };
    for (std::int64_t i = 0; i < s_.counts[kActive]; ++i) {
      T* row = table_.row(table_.active[i]);
      T& epoch = row[table_.stride - kTail + kEpoch];
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

  enum { kCount, kRoot, kEpoch, kTail };  // the last columns of a table row

  Aggregate aggregate_;
  BankState<T> s_;
  Table<T> table_;
  std::int64_t K_, m_, ldm_, ldn_;
  MapShape shape_;
  DelayedMaps<T> epochs_;
  SymmetricEigen eigen_;
  std::vector<double> sums_, c_, even_c_, p_, up_, down_, step_, direction_, gain_;
  std::vector<T> map_, x_, count_, root_, copies_;
  std::vector<std::int64_t> places_;
  std::vector<T*> behind_;
  double xx_ = 0, factor_ = 1;
};

}  // namespace skn
