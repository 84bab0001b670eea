// A bank of online Newton learners for several classes (docs/class-bank.md): softmax, untuned.
//
// What does not depend on labels is there once for all classes: features' scales, the row as experts see it,
// the sketch U, λ (bank_sketch.hpp), every expert's metric, the whole matrices (class_bank_full.hpp). An
// expert has weights for each class; its scores become probabilities by softmax, and the experts' mixture is
// calibrated (class_temper.hpp).
//
// A table row: kLanes numbers for each class, the weights w̄ of its experts, so that a class is a vector; m
// sketch coordinates, padding, then the tail that rows of a bank have.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/elementary.hpp"
#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "learners/bank_loss.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_state.hpp"
#include "learners/class_bank_full.hpp"
#include "learners/class_steps.hpp"
#include "learners/class_temper.hpp"

namespace skn {

// The arrays of a bank of classes. To the sketch it is a bank of classes × kLanes experts.
template <class T>
struct ClassBankState {
  static constexpr std::int64_t kLanes = ClassSteps::kLanes;

  BankState<T> bank;
  ClassFullState full;
  double* temper;                 // Temper::kNumbers
  std::int64_t classes, experts;  // experts of a class, without those with whole matrices
};

template <class T>
class ClassBank {
  using State = BankState<T>;
  using Lanes8 = ClassSteps::Lanes;

 public:
  static constexpr std::int64_t kLanes = ClassBankState<T>::kLanes, kMemories = ClassFull::kMemories;

  ClassBank(const ClassBankState<T>& state, const Table<T>& table)
      : s_(state.bank),
        table_(table),
        sketch_(state.bank, table),
        full_(state.full),
        temper_(state.temper, state.classes),
        K_(state.classes),
        E_(state.experts),
        ldm_(padded4(std::max<std::int64_t>(state.bank.m, 1))),
        sums_(table.stride),
        steps_(K_),
        p_(K_ * kLanes),
        full_p_(kMemories * K_),
        mixed_(K_),
        played_(K_),
        direction_(kLanes * ldm_),
        step_(K_ * kLanes) {
    for (Seen& seen : seen_) seen.c.resize(ldm_);
    for (std::int64_t e = 0; e < kLanes; ++e) {
      const bool rare = e < E_ && s_.expert[e].sees(kRare);
      rare_[e] = T(rare);
      plain_[e] = T(!rare);
    }
  }

  // Learns the rows in order; labels are the numbers of classes, and out has the scores before each update.
  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, K_, [this](const Row& row, double y, double h, double* p) {
      learn_row(row, static_cast<std::int64_t>(y), h, p);
    });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, K_, [&](const Row& row, double* p) {
      peek(row, features);
      answer(p);
    });
  }

  // The probabilities that each expert gives: experts × classes numbers per row.
  void predict_experts(const Rows& rows, std::int64_t features, double* out) {
    RowReader reader(rows);
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      peek(reader[i], features);
      for (std::int64_t e = 0; e < E_; ++e)
        for (std::int64_t k = 0; k < K_; ++k) *out++ = p_[k * kLanes + e];
      out = std::copy_n(full_p_.data(), (experts() - E_) * K_, out);
    }
  }

  std::int64_t classes() const { return K_; }
  std::int64_t experts() const { return E_ + (full_.alive() ? kMemories : 0); }
  // How many places for features the experts with whole matrices may need to learn these rows.
  std::int64_t places_for(const Rows& rows) { return full_.alive() ? full_.needs(rows) : 0; }
  std::int64_t active() const { return s_.counts[State::kActive]; }
  std::int64_t settled_width() const { return table_.stride; }

  // Copies of the rows of all active features, up to date.
  void settled(T* out) {
    for (std::int64_t i = 0; i < active(); ++i) {
      T* row = out + i * table_.stride;
      std::copy_n(table_.row(i + 1), table_.stride, row);
      sketch_.settle(row);
    }
  }

 private:
  static constexpr double kNoStep = 1e-9;  // slopes below this teach nothing
  static constexpr double kSlope = 4;      // as that of the logistic loss in bank_loss.hpp
  static constexpr double kHeavy = 0.25;   // a restless expert's constant, as a share of the typical row

  // A row as experts see it: its features and the constant are multiplied by these.
  struct Seen {
    double features = 1, constant = 1, least = 0;
    std::vector<double> c;  // U times it
  };

  void learn_row(const Row& row, std::int64_t label, double h, double* out) {
    if (h == 0) {
      peek(row, std::numeric_limits<std::int64_t>::max());
      return answer(out);
    }
    full_.look(row);
    fetch(row);
    look(row.value(), row.size());
    answer(out);
    const auto t = ++s_.counts[State::kRounds];
    const double clock = s_.scalars[State::kClock] += h;
    double squares = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
      const double residual = mixed_[k] - (k == label ? 1.0 : 0.0);
      squares += residual * residual;
    }
    charge(label, h, clock);
    temper_.learn(mixed_.data(), mixed_.data(), label, h, t, clock);
    const double r = kSlope * std::sqrt(0.5 * squares);
    const std::int64_t stands_for = sketch_.stands_for(t);
    if (r >= kNoStep && xx_ > State::kNoLength) improve(row, label, r, h, stands_for, clock);
  }

  // Logarithms of probabilities.
  void answer(double* out) const {
    std::copy_n(played_.data(), K_, out);
    log_all(out, K_);
  }

  // The predictions of a row, nothing changed: work put off is done on copies.
  void peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    full_.look(Row(row.index(), row.value(), n));
    rows_.resize(static_cast<std::size_t>(n));
    std::size_t late = 0;
    const auto now = static_cast<T>(sketch_.now());
    for (std::int64_t i = 0; i < n; ++i) {
      rows_[i] = table_.packed_row(row.index()[i]);
      const T epoch = tail_of(rows_[i])[State::kEpoch];
      late += epoch >= T(0) && epoch < now;
    }
    copies_.resize(late * static_cast<std::size_t>(table_.stride));
    T* copy = copies_.data();
    for (std::int64_t i = 0; i < n && late > 0; ++i) {
      const T epoch = tail_of(rows_[i])[State::kEpoch];
      if (!(epoch >= T(0) && epoch < now)) continue;
      std::copy_n(rows_[i], table_.stride, copy);
      sketch_.settle(copy);
      rows_[i] = copy;
      copy += table_.stride;
    }
    look(row.value(), n);
  }

  T* tail_of(T* row) const { return row + table_.stride - State::kTail; }

  // Brings features up to date. Which need it is found out without a branch, so that many rows of the table
  // can be on their way from memory at once.
  void fetch(const Row& row) {
    const std::int64_t n = row.size();
    rows_.resize(static_cast<std::size_t>(n));
    behind_.resize(static_cast<std::size_t>(n + 1));
    T **rows = rows_.data(), **late = behind_.data();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const Bits now = std::bit_cast<Bits>(static_cast<T>(sketch_.now()));
    std::int64_t behind = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      rows[i] = table_.packed_row(row.index()[i]);
      late[behind] = rows[i];
      behind += std::bit_cast<Bits>(tail_of(rows[i])[State::kEpoch]) < now;  // negative: large as bits
    }
    for (std::int64_t i = 0; i < behind; ++i) sketch_.settle(late[i]);
  }

  // Reads features: x scaled, c = Ux, the probabilities of all experts, those mixed and those played.
  void look(const double* value, std::int64_t n) {
    scale(value, n);
    gather(n);
    std::vector<double>& c = seen_[kPlain].c;
    const std::int64_t first = K_ * kLanes;
    for (std::int64_t j = 0; j < sketch_.rank(); ++j) c[j] = sums_[first + j] + s_.constant[first + j];
    for (std::int64_t j = sketch_.rank(); j < ldm_; ++j) c[j] = 0;
    view();
    score();
    steps_.softmax(p_.data());
    Lanes8 shares{};
    std::copy_n(s_.shares, E_, shares.data());
    for (std::int64_t k = 0; k < K_; ++k) mixed_[k] = dot(shares.data(), &p_[k * kLanes], kLanes);
    for (std::int64_t g = 0; g < experts() - E_; ++g) {
      one_against_the_rest(g, &full_p_[g * K_]);
      axpy(s_.shares[E_ + g], &full_p_[g * K_], mixed_.data(), K_);
    }
    temper_.play(mixed_.data(), mixed_.data(), played_.data());
  }

  void score() {
    Lanes8 features{}, constant{};
    std::array<const double*, kLanes> c{};
    for (std::int64_t e = 0; e < E_; ++e) {
      const Seen& seen = seen_by(e);
      features[e] = seen.features;
      constant[e] = seen.constant;
      c[e] = s_.expert[e].sees(kRare) ? nullptr : seen.c.data();
    }
    for (std::int64_t at = 0; at < K_ * kLanes; at += kLanes) {
      double* const p = &p_[at];
      for (std::int64_t e = 0; e < kLanes; e += 4)
        four(p + e) =
            four(&constant[e]) * four(s_.constant + at + e) + four(&features[e]) * four(&sums_[at + e]);
      for (std::int64_t e = 0; e < kLanes; ++e)
        if (c[e] != nullptr) p[e] += dot(c[e], s_.b + (at + e) * ldm_, ldm_);
    }
  }

  // The experts with whole matrices learn each class against the rest: their probabilities, made to sum to 1.
  void one_against_the_rest(std::int64_t g, double* p) const {
    double sum = 0;
    for (std::int64_t k = 0; k < K_; ++k) sum += p[k] = sigmoid(within_odds(full_.odds(g, k)));
    for (std::int64_t k = 0; k < K_; ++k) p[k] /= sum;
  }

  static double within_odds(double odds) {
    return std::clamp(odds, -BankLoss::kLargestLogit, BankLoss::kLargestLogit);
  }

  // x_i divided by mean|x_i| (n/T)^¼, as in bank.hpp.
  void scale(const double* value, std::int64_t n) {
    for (auto* array : {&x_, &count_, &mean_, &rarity_}) array->resize(static_cast<std::size_t>(n));
    const T rows = static_cast<T>(s_.bank_counts[State::kLearned] + 1);
    T* __restrict x = x_.data();
    T* __restrict count = count_.data();
    T* __restrict mean = mean_.data();
    T* __restrict rarity = rarity_.data();
    for (std::int64_t i = 0; i < n; ++i) {
      const T* const tail = tail_of(rows_[i]);
      x[i] = static_cast<T>(value[i]);
      count[i] = tail[State::kCount];
      mean[i] = tail[State::kMean];
    }
    std::int32_t met = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      met += count[i] > T(0);
      count[i] += T(1);
      mean[i] += (std::abs(x[i]) - mean[i]) / count[i];
      mean[i] = std::max(mean[i], std::numeric_limits<T>::min());
      rarity[i] = std::sqrt(rows / count[i]);
      x[i] = x[i] / mean[i] * std::sqrt(rarity[i]);
    }
    fresh_ = met < n;
    xx_ = seen_xx_ = rare_xx_ = one();
    for (std::int64_t i = 0; i < n; ++i) {
      const double square = static_cast<double>(x[i]) * static_cast<double>(x[i]);
      xx_ += square;
      rare_xx_ += square * static_cast<double>(rarity[i]);
      seen_xx_ += count[i] > T(1) ? square : 0.0;
    }
  }

  // Σ x_i row_i: short sums in T, long ones in double.
  void gather(std::int64_t n) {
    constexpr std::int64_t kRun = 32, kBlock = 32;
    std::fill(sums_.begin(), sums_.end(), 0.0);
    const std::int64_t used = padded4(K_ * kLanes + s_.m);
    T part[kBlock];
    for (std::int64_t c = 0; c < used; c += kBlock) {
      const std::int64_t width = std::min(kBlock, table_.stride - c);
      for (std::int64_t start = 0; start < n; start += kRun) {
        const std::int64_t stop = std::min(start + kRun, n);
        if (width == kBlock) {
          Lanes<T, kBlock> sum;
          sum.zero();
          for (std::int64_t i = start; i < stop; ++i) sum.add(x_[i], rows_[i] + c);
          sum.store(part);
        } else {
          Lanes<T, kBlock / 2> sum;
          sum.zero();
          for (std::int64_t i = start; i < stop; ++i) sum.add(x_[i], rows_[i] + c);
          sum.store(part);
        }
        for (std::int64_t j = 0; j < width; ++j) sums_[c + j] += static_cast<double>(part[j]);
      }
    }
  }

  // How the row looks to experts of each kind, as in bank.hpp.
  void view() {
    const bool begun = s_.bank_counts[State::kLearned] > 0;
    const double length = begun ? typical() : 1.0;
    const bool evens = begun && seen_xx_ > State::kNoLength;
    seen_[kEven].features = seen_[kRestless].features = evens ? std::sqrt(length / seen_xx_) : 1.0;
    seen_[kRestless].constant = std::max(1.0, kHeavy * std::sqrt(std::max(length - 1.0, 0.0)));
    seen_[kRestless].least = evens && seen_xx_ <= one() ? length : 0.0;
    const auto rows = static_cast<double>(s_.bank_counts[State::kLearned] + 1);
    seen_[kRare].features = seen_[kRare].constant = 1.0 / std::sqrt(std::sqrt(rows));
    view_sketch();
  }

  void view_sketch() {
    const double *c = seen_[kPlain].c.data(), *constant = s_.constant + K_ * kLanes;
    for (int view : {kEven, kRestless}) {
      Seen& seen = seen_[view];
      for (std::int64_t j = 0; j < s_.m; ++j)
        seen.c[j] = seen.features * (c[j] - constant[j]) + seen.constant * constant[j];
    }
  }

  const Seen& seen_by(std::int64_t e) const { return seen_[static_cast<int>(s_.expert[e].view)]; }
  double one() const { return s_.intercept ? 1.0 : 0.0; }
  double typical() const {  // ‖x‖²
    return s_.scalars[State::kSquares] / static_cast<double>(s_.bank_counts[State::kLearned]);
  }

  // -- learning

  // Expert weights become v p(label), of which a part is redistributed.
  void charge(std::int64_t label, double h, double clock) {
    const std::int64_t n = experts();
    double cost[kLanes + kMemories];
    std::copy_n(&p_[label * kLanes], E_, cost);
    for (std::int64_t e = E_; e < n; ++e) cost[e] = full_p_[(e - E_) * K_ + label];
    log_all(cost, n);
    for (std::int64_t e = 0; e < n; ++e) cost[e] = -cost[e];
    reweigh(cost, h, 1.0 / (clock + 1.0), s_.shares, n);
  }

  // Scales, sketch, then the steps of every expert of every class.
  void improve(const Row& row, std::int64_t label, double r, double h, std::int64_t stands_for,
               double clock) {
    enter(row);
    s_.scalars[State::kSquares] += xx_;
    if (stands_for > 0) {
      double* c = seen_[kPlain].c.data();
      sketch_.keep(row, x_.data(), xx_, c, std::sqrt(h * static_cast<double>(stands_for)) * r);
      if (sketch_.due(s_.counts[State::kRounds])) {
        sketch_.end_epoch(c);
        view_sketch();
      }
    }
    const double root = 1.0 / std::sqrt(std::max(clock, 1.0)), first = typical(),
                 per = 1.0 / lifted(x_.data(), row.size(), xx_);
    Lanes8 length{}, by_feature{}, by_constant{}, by_b{};  // of a way: what it adds to these
    for (std::int64_t e = 0; e < E_; ++e) {
      const Expert& expert = s_.expert[e];
      const Seen& seen = seen_by(e);
      if (expert.sees(kRare)) {  // AdaGrad's step: a feature's own rate is 1/√n, that of the constant 1/√T
        const double rate = 1.0 / std::sqrt(static_cast<double>(s_.bank_counts[State::kLearned]));
        const double q = rate * seen.features * seen.features * rare_xx_;
        length[e] = h * expert.multiplier * q / (seen.features * std::sqrt(typical()));
        by_feature[e] = by_constant[e] = rate * seen.features / q;
        continue;
      }
      const double f = expert.steady + expert.root * root, a = first + 0.5 * f * s_.scalars[State::kRidge];
      const double* c = seen.c.data();
      const double xx = seen.features * seen.features * (xx_ - one()) + seen.constant * seen.constant * one();
      double* const direction = &direction_[e * ldm_];
      double q = std::max(0.0, std::max(xx, seen.least) - dot(c, c, ldm_)) / a;
      for (std::int64_t j = 0; j < ldm_; ++j) {
        const double g = 1.0 / (a + f * s_.lambda[j]);
        q += c[j] * c[j] * g;
        direction[j] = c[j] * (g - 1.0 / a);
      }
      length[e] = h * expert.multiplier * q;
      by_b[e] = 1.0 / q;
      by_feature[e] = seen.features / (a * q);
      by_constant[e] = seen.constant / (a * q);
    }
    if (!s_.intercept) by_constant.fill(0.0);
    const double* way = steps_.take(p_.data(), label, length);
    for (std::int64_t at = 0; at < K_ * kLanes; at += kLanes, way += kLanes) {
      for (std::int64_t e = 0; e < kLanes; e += 4)
        four(s_.constant + at + e) += four(way + e) * four(&by_constant[e]);
      for (std::int64_t e = 0; e < kLanes; ++e) {
        step_[at + e] = State::held(per * (way[e] * by_feature[e]));
        if (way[e] * by_b[e] != 0)
          axpy(way[e] * by_b[e], &direction_[e * ldm_], s_.b + (at + e) * ldm_, ldm_);
      }
    }
    scatter(row);
    if (!full_.alive()) return;
    if (full_.learn(row, mean_.data(), label, h, s_.bank_counts[State::kLearned])) return;
    std::fill_n(s_.shares + E_, kMemories, 0.0);
    double sum = 0;
    for (std::int64_t e = 0; e < E_; ++e) sum += s_.shares[e];
    for (std::int64_t e = 0; e < E_; ++e)
      s_.shares[e] = sum > 0 ? s_.shares[e] / sum : 1.0 / static_cast<double>(E_);
  }

  // Features met for the first time get a place.
  void enter(const Row& row) {
    ++s_.bank_counts[State::kLearned];
    s_.bank_counts[State::kTouched] += row.size();
    const std::int64_t* index = row.index();
    for (std::int64_t i = 0, n = fresh_ ? row.size() : 0; i < n; ++i) {
      if (count_[i] > T(1)) continue;
      rows_[i] = table_.row(table_.activate_packed(index[i], s_.counts[State::kActive]));
      T* tail = tail_of(rows_[i]);
      tail[State::kCount] = T(1);
      tail[State::kEpoch] = T(-1);
    }
    if (row.size() > 0 && index[row.size() - 1] >= s_.counts[State::kDimension])
      s_.counts[State::kDimension] = index[row.size() - 1] + 1;
  }

  // The experts' steps, and the row's scales, which become those of its features.
  void scatter(const Row& row) {
    live_.clear();
    for (std::int64_t k = 0; k < K_; ++k) {
      bool any = false;
      for (std::int64_t e = 0; e < kLanes; ++e) any |= step_[k * kLanes + e] != T(0);
      if (any) live_.push_back(k * kLanes);
    }
    for (std::int64_t i = 0; i < row.size(); ++i) {
      T* const to = rows_[i];
      Lanes<T, kLanes> x, w;
      x.zero();
      x.add(x_[i], plain_.data());
      x.add(x_[i] * rarity_[i], rare_.data());
      for (std::int64_t at : live_) {
        w.load(to + at);
        w.add(x, &step_[at]);
        w.store(to + at);
      }
      T* const tail = tail_of(to);
      tail[State::kCount] = count_[i];
      tail[State::kMean] = mean_[i];
    }
  }

  BankState<T> s_;
  Table<T> table_;
  BankSketch<T> sketch_;
  ClassFull full_;
  ClassTemper temper_;
  std::int64_t K_, E_, ldm_;
  std::array<Seen, kViews> seen_;
  std::vector<double> sums_;
  ClassSteps steps_;
  std::vector<double> p_, full_p_;  // p: classes × kLanes, those of whole matrices × classes
  std::vector<double> mixed_, played_, direction_;
  std::vector<T> step_;                 // classes × kLanes
  std::array<T, kLanes> plain_, rare_;  // 1 for experts of that kind, else 0
  std::vector<T> x_, count_, mean_, rarity_, copies_;
  std::vector<T*> rows_, behind_;
  std::vector<std::int64_t> live_;
  bool fresh_ = false;           // has the row features that were never seen before?
  double xx_ = 0, seen_xx_ = 0;  // ‖x‖² of the row scaled, and of the features that were seen before
  double rare_xx_ = 0;           // and Σ x²√(T/n)
};

}  // namespace skn
