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
#include "learners/class_row.hpp"
#include "learners/class_steps.hpp"
#include "learners/class_temper.hpp"

namespace skn {

// The arrays of a bank of classes. To the sketch it is a bank of classes × kLanes experts.
template <class T>
struct ClassBankState {
  static constexpr std::int64_t kLanes = ClassSteps<T>::kLanes;

  BankState<T> bank;
  ClassFullState full;
  double* temper;                 // Temper::kNumbers
  std::int64_t classes, experts;  // experts of a class, without those with whole matrices
};

template <class T>
class ClassBank {
  using State = BankState<T>;

 public:
  static constexpr std::int64_t kLanes = ClassBankState<T>::kLanes, kMemories = ClassFull::kMemories;

  ClassBank(const ClassBankState<T>& state, const Table<T>& table)
      : s_(state.bank),
        table_(table),
        sketch_(state.bank, table),
        row_(state.bank, table, state.classes, state.experts),
        full_(state.full),
        temper_(state.temper, state.classes),
        K_(state.classes),
        E_(state.experts),
        ldm_(padded4(std::max<std::int64_t>(state.bank.m, 1))),
        sums_(table.stride),
        steps_(K_),
        scores_(K_ * kLanes),
        full_p_(kMemories * K_),
        p_(steps_.vectors() * ClassSteps<T>::kWidth),
        mixed_(K_),
        played_(K_),
        c_(ldm_),
        coordinates_(state.bank.m * kLanes),
        directions_(state.bank.m * kLanes),
        step_(p_.size()) {
    for (std::int64_t e = 0; e < E_; ++e) {
      const Expert& expert = s_.expert[e];
      steady_[e] = expert.steady;
      root_[e] = expert.root;
      multiplier_[e] = expert.multiplier;
      for (View view : {kPlain, kEven, kRestless, kRare}) sees_[view][e] = expert.sees(view) ? 1.0 : 0.0;
    }
  }

  // Learns the rows in order; labels are the numbers of classes, and out has the scores before each update.
  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    Row next;
    const auto ahead = [&](const Row& row) {
      if (table_.features > kNearPlaces) table_.prefetch_places(row.index(), row.size());
      coming_ = table_.bytes() > kNear ? next : Row();
      next = row;
    };
    stream(rows, 0, rows.count(), ahead, [&](const Row& row, std::int64_t i) {
      const double h = weights == nullptr ? 1.0 : weights[i];
      learn_row(row, static_cast<std::int64_t>(labels[i]), h, out + i * K_);
    });
    coming_ = Row();
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
  static constexpr int kUsual = 6;          // size of the sketch
  static constexpr double kNoStep = 1e-9;   // slopes below this teach nothing
  static constexpr double kNoWay = 1e-300;  // of steepest descent
  static constexpr double kSlope = 4;       // as that of the logistic loss in bank_loss.hpp
  static constexpr double kHeavy = 0.25;    // a restless expert's constant, as a share of the typical row

  // Of experts: how long their paths are, and what a way adds to the weights of features and of the constant.
  struct Steps {
    Four length, by_feature, by_constant;
  };

  void learn_row(const Row& row, std::int64_t label, double h, double* out) {
    if (h == 0) {
      peek(row, std::numeric_limits<std::int64_t>::max());
      return answer(out);
    }
    full_.look(row);
    row_.fetch(row);
    look(row.value());
    answer(out);
    const auto t = ++s_.counts[State::kRounds];
    const double clock = s_.scalars[State::kClock] += h;
    charge(label, h, clock);
    temper_.learn(mixed_.data(), mixed_.data(), label, h, t, clock);
    const double r = kSlope * std::sqrt(0.5 * distance(label));
    const std::int64_t stands_for = sketch_.stands_for(t);
    if (r >= kNoStep && row_.xx() > State::kNoLength) improve(row, label, r, h, stands_for, clock);
  }

  // Σ (P_k − y_k)²
  double distance(std::int64_t label) const {
    Four number = {0, 1, 2, 3}, sums{};
    const Four its = Four{} + static_cast<double>(label), one = Four{} + 1.0;
    std::int64_t k = 0;
    for (; k + 4 <= K_; k += 4, number += 4.0) {
      const Four residual = four(&mixed_[k]) - (number == its ? one : Four{});
      sums += residual * residual;
    }
    double sum = total(sums);
    for (; k < K_; ++k) {
      const double residual = mixed_[k] - (k == label ? 1.0 : 0.0);
      sum += residual * residual;
    }
    return sum;
  }

  // Logarithms of probabilities.
  void answer(double* out) const { logs(played_.data(), out, K_); }

  // The predictions of a row, nothing changed: work put off is done on copies.
  void peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    full_.look(Row(row.index(), row.value(), n));
    row_.peek(row.index(), n, sketch_);
    look(row.value());
  }

  // Reads features: x scaled, c = Ux, the probabilities of all experts, those mixed and those played.
  void look(const double* value) {
    row_.scale(value, std::numeric_limits<T>::max(), sketch_.now());
    row_.settle(sketch_);
    row_.gather(sums_.data(), K_ * kLanes + s_.m);
    const std::int64_t first = K_ * kLanes;
    for (std::int64_t j = 0; j < sketch_.rank(); ++j) c_[j] = sums_[first + j] + s_.constant[first + j];
    for (std::int64_t j = sketch_.rank(); j < ldm_; ++j) c_[j] = 0;
    view();
    score();
    mix();
    for (std::int64_t g = 0; g < experts() - E_; ++g) {
      one_against_the_rest(g, &full_p_[g * K_]);
      axpy(s_.shares[E_ + g], &full_p_[g * K_], mixed_.data(), K_);
    }
    temper_.play(mixed_.data(), mixed_.data(), played_.data());
  }

  // Σ_e v_e p_e of the experts that take steps.
  void mix() {
    Four shares{};
    for (std::int64_t e = 0; e < E_; ++e) shares[e] = s_.shares[e];
    const auto weighed = [&](std::int64_t k) {
      Four its;
      widen(&p_[k * kLanes], its);
      return Four(shares * its);
    };
    std::int64_t k = 0;
    for (; k + 4 <= K_; k += 4) {  // sums of four classes at once
      const Four a = weighed(k), b = weighed(k + 1), c = weighed(k + 2), d = weighed(k + 3);
      const Four ab = Four{a[0], b[0], a[2], b[2]} + Four{a[1], b[1], a[3], b[3]},
                 cd = Four{c[0], d[0], c[2], d[2]} + Four{c[1], d[1], c[3], d[3]};
      four(&mixed_[k]) = Four{ab[0], ab[1], cd[0], cd[1]} + Four{ab[2], ab[3], cd[2], cd[3]};
    }
    for (; k < K_; ++k) mixed_[k] = total(weighed(k));
  }

  // The experts' probabilities: of each its constant, features and the sketch as it sees them.
  void score() {
    if (s_.m == kUsual) return score_of<kUsual>(kUsual);
    score_of<0>(s_.m);
  }

  // The size of the sketch, m, is known to the compiler unless it is 0.
  template <int known>
  void score_of(std::int64_t m) {
    const std::int64_t end = known > 0 ? known : m;
    const double *own = s_.constant, *sum = sums_.data(), *b = s_.b, *c = coordinates_.data();
    double* score = scores_.data();
    Four largest = Four{} - INFINITY;
    const Four features = features_, constant = constant_;
    for (double* const stop = score + K_ * kLanes; score < stop;
         score += kLanes, own += kLanes, sum += kLanes) {
      Four its = constant * four(own) + features * four(sum);
      for (std::int64_t j = 0; j < end; ++j) its += four(c + j * kLanes) * four(b + j * kLanes);
      b += kLanes * ldm_;
      four(score) = its;
      largest = largest < its ? its : largest;
    }
    steps_.softmax(scores_.data(), largest, p_.data());
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

  // How the row looks to experts of each kind, as in bank.hpp: what its features and the constant are
  // multiplied by.
  void view() {
    const bool begun = s_.bank_counts[State::kLearned] > 0;
    const double length = begun ? typical() : 1.0;
    const bool evens = begun && row_.seen_xx() > State::kNoLength;
    const double even = evens ? std::sqrt(length / row_.seen_xx()) : 1.0,
                 heavy = std::max(1.0, kHeavy * std::sqrt(std::max(length - 1.0, 0.0))),
                 least = evens && row_.seen_xx() <= one() ? length : 0.0;
    const auto rows = static_cast<double>(s_.bank_counts[State::kLearned] + 1);
    rare_ = 1.0 / std::sqrt(std::sqrt(rows));
    features_ = sees_[kPlain] + (sees_[kEven] + sees_[kRestless]) * even + sees_[kRare] * rare_;
    constant_ = sees_[kPlain] + sees_[kEven] + sees_[kRestless] * heavy + sees_[kRare] * rare_;
    least_ = sees_[kRestless] * least;
    view_sketch();
  }

  // Rare experts do without the sketch.
  void view_sketch() {
    const double* const constant = s_.constant + K_ * kLanes;
    const Four features = sees_[kRare] > 0.0 ? Four{} : features_,
               its = sees_[kRare] > 0.0 ? Four{} : constant_;
    for (std::int64_t j = 0; j < s_.m; ++j)
      four(&coordinates_[j * kLanes]) = features * (c_[j] - constant[j]) + its * constant[j];
  }

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
    row_.enter(row);
    s_.scalars[State::kSquares] += row_.xx();
    if (stands_for > 0) {
      sketch_.keep(row, row_.x(), row_.xx(), c_.data(), std::sqrt(h * static_cast<double>(stands_for)) * r);
      if (sketch_.due(s_.counts[State::kRounds])) {
        sketch_.end_epoch(c_.data());
        view_sketch();
      }
    }
    Steps to;
    aim(h, clock, to);
    to.by_feature *= 1.0 / row_.lift();
    const std::int64_t part = coming_.size() / steps_.vectors() + 1;
    move(steps_.take(p_.data(), label, to.length, [&](std::int64_t v) { prefetch(v * part, part); }), to);
    row_.scatter(step_.data());
    if (!full_.alive()) return;
    if (full_.learn(row, row_.sizes(), label, h, s_.bank_counts[State::kLearned])) return;
    std::fill_n(s_.shares + E_, kMemories, 0.0);
    double sum = 0;
    for (std::int64_t e = 0; e < E_; ++e) sum += s_.shares[e];
    for (std::int64_t e = 0; e < E_; ++e)
      s_.shares[e] = sum > 0 ? s_.shares[e] / sum : 1.0 / static_cast<double>(E_);
  }

  // The next row's features come from memory while steps are computed, a few for each vector: all at once
  // they would have to wait for one another.
  void prefetch(std::int64_t begin, std::int64_t count) const {
    const std::int64_t stop = std::min(begin + count, coming_.size());
    if (begin < stop) table_.prefetch_packed(coming_.index() + begin, stop - begin);
  }

  // How long the paths of experts are, and where their steps lead.
  void aim(double h, double clock, Steps& to) {
    const double root = 1.0 / std::sqrt(std::max(clock, 1.0));
    const Four f = steady_ + root_ * root, a = typical() + 0.5 * f * s_.scalars[State::kRidge],
               per_a = 1.0 / a;
    const Four xx = features_ * features_ * (row_.xx() - one()) + constant_ * constant_ * one();
    Four rest = xx < least_ ? least_ : xx, q{};
    for (std::int64_t j = 0; j < s_.m; ++j) {
      const Four c = four(&coordinates_[j * kLanes]), g = 1.0 / (a + f * s_.lambda[j]);
      rest -= c * c;
      q += c * c * g;
      four(&directions_[j * kLanes]) = c * (g - per_a);
    }
    q += (rest > 0.0 ? rest : Four{}) * per_a;
    q = q < kNoWay ? Four{} + kNoWay : q;
    const Four per_q = 1.0 / q, per = 1.0 / (a * q);
    for (std::int64_t j = 0; j < s_.m; ++j) four(&directions_[j * kLanes]) *= per_q;
    to.length = h * multiplier_ * q;
    to.by_feature = features_ * per;
    to.by_constant = constant_ * per;
    aim_rarely(h, to);
    if (!s_.intercept) to.by_constant = Four{};
  }

  // AdaGrad's step: a feature's own rate is 1/√n, that of the constant 1/√T.
  void aim_rarely(double h, Steps& to) const {
    const double rate = 1.0 / std::sqrt(static_cast<double>(s_.bank_counts[State::kLearned]));
    const double q = rate * rare_ * rare_ * row_.rare_xx(), length = q / (rare_ * std::sqrt(typical()));
    const auto rare = sees_[kRare] > 0.0;
    const Four by = Four{} + rate * rare_ / q;
    to.length = rare ? h * multiplier_ * length : to.length;
    to.by_feature = rare ? by : to.by_feature;
    to.by_constant = rare ? by : to.by_constant;
  }

  // Scores move by these ways: what that adds to constants, to b, and to the weight of a feature for x = 1.
  void move(const T* way, const Steps& to) {
    if (s_.m == kUsual) return move_of<kUsual>(kUsual, way, to);
    move_of<0>(s_.m, way, to);
  }

  template <int known>
  void move_of(std::int64_t m, const T* way, const Steps& to) {
    const std::int64_t end = known > 0 ? known : m;
    const Four by_feature = to.by_feature, by_constant = to.by_constant;
    const double* const direction = directions_.data();
    double *constant = s_.constant, *b = s_.b;
    T* step = step_.data();
    for (const T* const stop = way + K_ * kLanes; way < stop;
         way += kLanes, constant += kLanes, step += kLanes) {
      Four its;
      widen(way, its);
      four(constant) += its * by_constant;
      for (std::int64_t j = 0; j < end; ++j) four(b + j * kLanes) += its * four(direction + j * kLanes);
      b += kLanes * ldm_;
      store_held(its * by_feature, step);
    }
  }

  // Steps as the table can have them.
  static void store_held(const Four& steps, T* to) {
    const Four below = steps > State::kHeaviest ? Four{} + State::kHeaviest : steps;
    narrow(below < -State::kHeaviest ? Four{} - State::kHeaviest : below, to);
  }

  BankState<T> s_;
  Table<T> table_;
  BankSketch<T> sketch_;
  ClassRow<T> row_;
  ClassFull full_;
  ClassTemper temper_;
  std::int64_t K_, E_, ldm_;
  // Of experts, one number each: theirs, and how they see the row.
  Four steady_{}, root_{}, multiplier_{}, features_{}, constant_{}, least_{};
  Four sees_[kViews] = {};  // 1 for those of the view, else 0
  double rare_ = 1;         // what the rare ones multiply a row with
  std::vector<double> sums_;
  ClassSteps<T> steps_;
  std::vector<double> scores_, full_p_;  // classes × kLanes, those of whole matrices × classes
  std::vector<T> p_;                     // classes × kLanes
  std::vector<double> mixed_, played_;
  std::vector<double> c_;                         // U times the row
  std::vector<double> coordinates_, directions_;  // m × kLanes: that as experts see it, and of steps in it
  std::vector<T> step_;                           // classes × kLanes
  Row coming_;                                    // what is learned next
};

}  // namespace skn
