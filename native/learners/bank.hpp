// A bank of online Newton learners that needs no tuning, in sparse time (docs/untuned.md).
//
// The experts share features' scales and one sketch U, λ of the rows (bank_sketch.hpp); each takes its own
// steps. One more knows nothing but labels. While there are few features, experts with whole matrices join
// them (bank_full.hpp). Predictions are aggregated (aggregate.hpp) in the range of the labels
// (bank_labels.hpp), and if labels are classes stacked (bank_stack.hpp).
//
// A table row: K weights w̄, m sketch coordinates, padding, then the number of rows that had the feature, the
// mean of |x| over them and the epoch up to which the row has been brought (−1: no coordinates yet, nothing
// to bring).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "learners/aggregate.hpp"
#include "learners/bank_full.hpp"
#include "learners/bank_labels.hpp"
#include "learners/bank_loss.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_stack.hpp"
#include "learners/bank_state.hpp"

namespace skn {

template <class T>
class Bank {
  using State = BankState<T>;

 public:
  Bank(const BankLoss& loss, const BankState<T>& state, const Table<T>& table)
      : loss_(loss),
        aggregate_{loss},
        s_(state),
        table_(table),
        labels_(state, loss),
        sketch_(state, table),
        full_(state.full),
        stack_(loss, state.clip, state.stack),
        K_(state.experts),
        first_(state.experts + 1),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        sums_(table.stride),
        p_(first_ + BankFull::kMemories),
        odds_(K_),
        up_(first_ + BankFull::kMemories),
        down_(first_ + BankFull::kMemories),
        length_(K_),
        way_(K_),
        step_(K_),
        rare_step_(K_),
        direction_(K_ * ldm_),
        aim_(K_) {
    for (Seen& seen : seen_) seen.c.resize(ldm_);
    for (std::int64_t k = 0; k < K_; ++k) view_.push_back(static_cast<std::uint8_t>(s_.expert[k].view));
  }

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, 1,
               [this](const Row& row, double y, double h, double* p) { *p = learn_row(row, y, h); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, 1, [&](const Row& row, double* p) { *p = peek(row, features); });
  }

  // What each expert would predict: experts numbers per row.
  void predict_experts(const Rows& rows, std::int64_t features, double* out) {
    RowReader reader(rows);
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      peek(reader[i], features);
      for (std::int64_t k = 0; k < experts(); ++k) *out++ = labels_.middle() + labels_.half() * p_[k];
    }
  }

  // Nothing is known of labels, so predictions are 0.
  bool knows_no_labels() const { return labels_.none(); }

  std::int64_t experts() const { return first_ + (whole() ? BankFull::kMemories : 0); }
  // How many places for features the experts with whole matrices may need to learn these rows, 0 if there is
  // room for them; −1 if these experts have left, but not their memory.
  std::int64_t places_for(const Rows& rows) {
    if (!whole()) return full_.room() > 0 ? -1 : 0;
    const std::int64_t needed = full_.needs(rows);
    return needed > full_.room() ? needed : 0;
  }
  std::int64_t active() const { return s_.counts[State::kActive]; }
  std::int64_t settled_width() const { return table_.stride; }

  // Copies of the rows of all active features, up to date.
  void settled(T* out) {
    for (std::int64_t i = 0; i < s_.counts[State::kActive]; ++i) {
      T* row = out + i * table_.stride;
      std::copy_n(table_.row(i + 1), table_.stride, row);
      sketch_.settle(row);
    }
  }

 private:
  static constexpr double kNoStep = 1e-9;    // slopes below this teach nothing
  static constexpr T kWild = 16;             // mean sizes
  static constexpr double kHeavy = 0.25;     // a restless expert's constant, as a share of the typical row
  static constexpr std::int64_t kDense = 8;  // a row with a share of one in so many of all features is dense

  // A row as experts see it: its features and the constant are multiplied by these.
  struct Seen {
    double features = 1, constant = 1;
    double least = 0;       // its ‖x‖² in a step: what it lacks counts as a feature that no other row has
    std::vector<double> c;  // U times it
  };

  // An expert's step: along (1/a)x + direction·U, q long for every unit of the path.
  struct Aim {
    double a, q;
    const double* direction;
  };

  double learn_row(const Row& row, double label, double h) {
    if (h == 0) return peek(row, std::numeric_limits<std::int64_t>::max());
    if (whole()) full_.look(row);
    find(row);
    const double played = look(table_, place_.data(), row.value(), row.size());
    const double prediction = score(played), own = others_;
    const bool stacks = stacked();
    if (labels_.none()) labels_.meet(label);
    const auto t = ++s_.counts[State::kRounds];
    const double clock = s_.scalars[State::kClock] += h;
    if (labels_.open() && !labels_.wild(label)) {
      const double y = labels_.learned(label);
      charge(y, h, clock);
      if (stacks && std::abs(y) == 1.0) stack_.learn(y, h, clock);
      measure(own, y, h);
      labels_.learn_usual(p_[K_], y, h, miss_);
      const double r = labels_.reached(own, y) ? 0.0 : loss_.slope(own, y, miss_);
      const std::int64_t rows = sketch_.stands_for(t);
      if (std::abs(r) >= kNoStep && xx_ > State::kNoLength) improve(row, y, r, h, rows, clock);
    }
    const double unit = labels_.weight_unit();
    if (const double shrink = labels_.widen(label, h); shrink != 1.0 && loss_.squared()) {
      sketch_.shrink(shrink);
      Aggregate::temper(shrink * shrink, s_.shares, experts());
    }
    if (labels_.weight_unit() != unit) sketch_.rescale(unit / labels_.weight_unit());
    return prediction;
  }

  // The prediction of a row, nothing changed: work put off is done on copies.
  double peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    copies_.resize(static_cast<std::size_t>(n * table_.stride));
    place_.resize(static_cast<std::size_t>(n));
    Table<T> table = table_;
    table.rows = copies_.data();
    for (std::int64_t i = 0; i < n; ++i) {
      place_[i] = i;
      std::copy_n(table_.packed_row(row.index()[i]), table_.stride, table.row(i));
    }
    if (whole()) full_.look(Row(row.index(), row.value(), n));
    return score(look(table, place_.data(), row.value(), n));
  }

  // Where the row's features are in the table.
  void find(const Row& row) {
    const std::int64_t n = row.size();
    if (static_cast<std::int64_t>(place_.size()) < n) place_.resize(static_cast<std::size_t>(n));
    std::int64_t* const place = place_.data();
    const std::int64_t* const index = row.index();
    const std::int32_t* const places = table_.places;
    for (std::int64_t k = 0; k < n; ++k) place[k] = places[index[k]];
  }

  double score(double p) const {
    return labels_.none() && !loss_.logistic() ? 0.0 : labels_.middle() + labels_.half() * p;
  }

  // Reads features at these places: x scaled, c = Ux, the experts' predictions. Returns the one played.
  double look(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n) {
    labels_.look();
    unit_ = labels_.weight_unit();
    fetch(table, index, value, n);
    scale(n);
    gather(table, index, n);
    std::vector<double>& c = seen_[kPlain].c;
    for (std::int64_t j = 0; j < sketch_.rank(); ++j) c[j] = sums_[K_ + j] + s_.constant[K_ + j];
    for (std::int64_t j = sketch_.rank(); j < ldm_; ++j) c[j] = 0;
    view();
    for (std::int64_t k = 0; k < K_; ++k) {
      const Seen& seen = seen_by(k);
      const double score = s_.scalars[State::kOffset] + seen.constant * s_.constant[k] +
                           seen.features * unit_ * sums_[k] + dot(seen.c.data(), s_.b + k * ldm_, ldm_);
      if (s_.expert[k].sees(kRare) && labels_.rare_odds()) {
        odds_[k] = labels_.within_odds(score);
        p_[k] = labels_.of_odds(odds_[k]);
      } else {
        p_[k] = labels_.within(score);
      }
    }
    p_[K_] = labels_.within(labels_.usual());
    if (whole()) look_whole();
    const Aggregate::Played played =
        aggregate_.mix(p_.data(), s_.shares, experts(), K_, up_.data(), down_.data());
    others_ = played.others;
    if (!stacked()) return played.all;
    return stack_.play(played.all, p_.data(), K_, p_.data() + first_, experts() - first_);
  }

  // Is what the experts say together heard beside what their weights make of it?
  bool stacked() const { return loss_.mixable() && labels_.classes(); }

  bool whole() const { return s_.has_full && full_.alive(); }

  // Weights of few features, and of rows that have many of them all, may be large and cancel, which rounded
  // sums would show.
  void gather(const Table<T>& table, const std::int64_t* index, std::int64_t n) {
    if (whole() || kDense * met_ >= s_.counts[State::kActive]) {
      table.gather_exactly(index, x_.data(), n, sums_.data());
    } else {
      table.gather(index, x_.data(), n, sums_.data());
    }
  }

  // The predictions of the experts with whole matrices.
  void look_whole() {
    for (std::int64_t g = 0; g < BankFull::kMemories; ++g) {
      double& p = p_[first_ + g];
      if (!labels_.classes()) {
        p = labels_.within(s_.scalars[State::kOffset] + full_.score(g));
      } else if (loss_.logistic()) {
        p = labels_.within(full_.odds(g));
      } else {
        const double likely = labels_.of_odds(labels_.within_odds(full_.odds(g)));
        p = loss_.squared() ? likely : labels_.within(likely);
      }
    }
  }

  // Brings features up to date and reads their scales. Which need it is found out without a branch, so that
  // many rows of the table can be on their way from memory at once.
  void fetch(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n) {
    if (static_cast<std::int64_t>(behind_.size()) <= n) {
      for (auto* array : {&x_, &count_, &mean_, &rarity_}) array->resize(static_cast<std::size_t>(n));
      behind_.resize(static_cast<std::size_t>(n + 1));
    }
    T *x = x_.data(), *count = count_.data(), *mean = mean_.data(), **late = behind_.data();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const Bits now = std::bit_cast<Bits>(static_cast<T>(sketch_.now()));
    const std::int64_t stride = table.stride;
    T* const tails = table.rows + stride - State::kTail;
    std::int64_t behind = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      T* const tail = tails + index[i] * stride;
      x[i] = static_cast<T>(value[i]);
      count[i] = tail[State::kCount];
      mean[i] = tail[State::kMean];
      late[behind] = tail;
      behind += std::bit_cast<Bits>(tail[State::kEpoch]) < now;  // negative numbers are large as bits
    }
    for (std::int64_t i = 0; i < behind; ++i) sketch_.settle(late[i] + State::kTail - stride);
  }

  // x_i divided by mean|x_i| (n/T)^¼: its mean size in the n rows that have it, less for rare features. The
  // present row is included. A few wild values hardly move a mean, while they would set a maximum or a root
  // mean square. If labels are classes, which hardly depend on how wild a value is, it counts as kWild mean
  // sizes at most: what all other rows say about a feature that is rarely far from its usual value would have
  // weight hundreds of times over where it is. Only relative quantities are formed, which stay in range
  // whatever the unit of x_i.
  void scale(std::int64_t n) {
    const T rows = static_cast<T>(s_.bank_counts[State::kLearned] + 1);
    const T most = labels_.classes() ? kWild : std::numeric_limits<T>::max();
    T* __restrict x = x_.data();
    T* __restrict count = count_.data();
    T* __restrict mean = mean_.data();
    T* __restrict rarity = rarity_.data();
    std::int32_t met = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      met += count[i] > T(0);
      count[i] += T(1);
      mean[i] += (std::abs(x[i]) - mean[i]) / count[i];
      mean[i] = std::max(mean[i], std::numeric_limits<T>::min());
      rarity[i] = std::sqrt(rows / count[i]);
      x[i] = std::clamp(x[i] / mean[i], -most, most) * std::sqrt(rarity[i]);
    }
    met_ = met;
    fresh_ = met < n;
    double all[4] = {}, seen[4] = {},
           rare[4] = {};  // independent sums, which the compiler turns into vectors
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (int j = 0; j < 4; ++j) {
        const double square = static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
        all[j] += square;
        rare[j] += square * static_cast<double>(rarity[i + j]);
        seen[j] += count[i + j] > T(1) ? square : 0.0;
      }
    for (; i < n; ++i) {
      const double square = static_cast<double>(x[i]) * static_cast<double>(x[i]);
      all[i % 4] += square;
      rare[i % 4] += square * static_cast<double>(rarity[i]);
      seen[i % 4] += count[i] > T(1) ? square : 0.0;
    }
    xx_ = one() + ((all[0] + all[1]) + (all[2] + all[3]));
    rare_xx_ = one() + ((rare[0] + rare[1]) + (rare[2] + rare[3]));
    seen_xx_ = one() + ((seen[0] + seen[1]) + (seen[2] + seen[3]));
  }

  // How the row looks to experts of each kind. A class hardly depends on how long a row is (a long text is
  // not more of its class than a short one), a number to be predicted may well. Features never seen count as
  // zero.
  void view() {
    const double length = s_.bank_counts[State::kLearned] > 0 ? typical() : 1.0;
    const bool evens =
        labels_.classes() && s_.bank_counts[State::kLearned] > 0 && seen_xx_ > State::kNoLength;
    seen_[kEven].features = seen_[kRestless].features = evens ? std::sqrt(length / seen_xx_) : 1.0;
    seen_[kRestless].constant = std::max(1.0, kHeavy * std::sqrt(std::max(length - 1.0, 0.0)));
    // Else a row without known features, such as an empty text, would move the constant all the way to its
    // label, and with it every prediction.
    seen_[kRestless].least = evens && seen_xx_ <= one() ? length : 0.0;
    const auto rows = static_cast<double>(s_.bank_counts[State::kLearned] + 1);
    seen_[kRare].features = seen_[kRare].constant = 1.0 / std::sqrt(std::sqrt(rows));
    view_sketch();
  }

  void view_sketch() {
    const double *c = seen_[kPlain].c.data(), *constant = s_.constant + K_;
    for (int view : {kEven, kRestless}) {
      Seen& seen = seen_[view];
      for (std::int64_t j = 0; j < s_.m; ++j)
        seen.c[j] = seen.features * (c[j] - constant[j]) + seen.constant * constant[j];
    }
  }

  const Seen& seen_by(std::int64_t k) const { return seen_[view_[k]]; }
  double one() const { return s_.intercept ? 1.0 : 0.0; }
  double typical() const {  // ‖x‖²
    return s_.scalars[State::kSquares] / static_cast<double>(s_.bank_counts[State::kLearned]);
  }

  // -- learning

  void charge(double y, double h, double clock) {
    aggregate_.charge(p_.data(), y, h, 1.0 / (clock + 1.0), s_.shares, experts(), up_.data(), down_.data(),
                      {s_.scalars[State::kRate], s_.scalars[State::kGaps]});
  }

  // How far predictions are from labels on average, this one included: the scale of the steps, where the
  // slope of the loss does not tell it.
  void measure(double p, double y, double h) {
    if (loss_.mixable()) return;
    s_.scalars[State::kMissed] += h * loss_.missed(p, y);
    s_.scalars[State::kExpected] += h * loss_.expected(p);
    miss_ = std::max(s_.scalars[State::kMissed] / s_.scalars[State::kExpected],
                     std::numeric_limits<double>::min());
  }

  // Scales, sketch, then every expert's step.
  void improve(const Row& row, double y, double r, double h, std::int64_t rows, double clock) {
    enter(row);
    s_.scalars[State::kSquares] += xx_;
    if (rows > 0) {
      double* c = seen_[kPlain].c.data();
      sketch_.keep(row, x_.data(), xx_, c, std::sqrt(h * static_cast<double>(rows)) * std::abs(r));
      if (sketch_.due(s_.counts[State::kRounds])) {
        sketch_.end_epoch(c, unit_);
        view_sketch();
      }
    }
    aim(h, 1.0 / std::sqrt(std::max(clock, 1.0)));
    travel(y);
    for (std::int64_t k = 0; k < K_; ++k) {
      const Seen& seen = seen_by(k);
      const Aim& aim = aim_[k];
      const double way = follows_odds(k) ? way_[k] : labels_.half() * labels_.stopped(p_[k], way_[k]);
      if (s_.expert[k].sees(kRare)) {
        step_[k] = 0;
        rare_step_[k] = aim.a * seen.features * way / aim.q;
        if (s_.intercept) s_.constant[k] += rare_step_[k];
      } else {
        const double step = way / aim.q;
        axpy(step, aim.direction, s_.b + k * ldm_, ldm_);
        if (s_.intercept) s_.constant[k] += step / aim.a * seen.constant;
        step_[k] = step / aim.a * seen.features;
        rare_step_[k] = 0;
      }
    }
    scatter(row);
    if (whole()) improve_whole(row, y, h);
  }

  // The metric of each expert at this row, and how long its path is.
  void aim(double h, double root) {
    const double first = typical();
    double* direction = direction_.data();
    double f = -1, view = -1, a = 0, q = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
      const Expert& expert = s_.expert[k];
      const Seen& seen = seen_by(k);
      if (expert.sees(kRare)) {  // AdaGrad's step: a feature's own rate is 1/√n, that of the constant 1/√T
        const double rate = 1.0 / std::sqrt(static_cast<double>(s_.bank_counts[State::kLearned]));
        const double its_q = rate * seen.features * seen.features * rare_xx_;
        aim_[k] = {rate, its_q, nullptr};
        length_[k] = h * expert.multiplier * its_q / (seen.features * std::sqrt(first));
        continue;
      }
      const double its_f = expert.steady + expert.root * root;
      if (its_f != f || expert.view != view) {  // experts of one kind stand together
        f = its_f;
        view = expert.view;
        a = first + 0.5 * f * s_.scalars[State::kRidge];
        direction = &direction_[k * ldm_];
        const double* c = seen.c.data();
        const double xx =
            seen.features * seen.features * (xx_ - one()) + seen.constant * seen.constant * one();
        q = std::max(0.0, std::max(xx, seen.least) - dot(c, c, ldm_)) / a;
        const double flat = 1.0 / a;
        for (std::int64_t j = 0; j < ldm_; j += 4) {
          const Four each = four(c + j), g = 1.0 / (a + f * four(s_.lambda + j)), squares = each * each * g;
          four(direction + j) = each * (g - flat);
          for (int i = 0; i < 4; ++i) q += squares[i];
        }
      }
      aim_[k] = {a, q, direction};
      length_[k] = h * expert.multiplier * q;
    }
  }

  bool follows_odds(std::int64_t k) const { return s_.expert[k].sees(kRare) && labels_.rare_odds(); }

  void travel(double y) {
    if (loss_.logistic())
      return BankLoss::travel_odds<Aggregate::kMost>(p_.data(), y, length_.data(), way_.data(),
                                                     static_cast<int>(K_));
    for (std::int64_t k = 0; k < K_; ++k)
      way_[k] = follows_odds(k) ? BankLoss::travel_odds(odds_[k], y, length_[k])
                                : loss_.travel(p_[k], y, length_[k], miss_);
  }

  void improve_whole(const Row& row, double y, double h) {
    const bool classes = labels_.classes();
    const double target = classes ? y : labels_.middle() + labels_.half() * y - s_.scalars[State::kOffset];
    const std::int64_t all = experts();
    const std::int64_t rows = s_.bank_counts[State::kLearned];
    if (full_.learn(row, mean_.data(), target, h, rows, classes, s_.shares + first_)) return;
    Aggregate::leave(s_.shares, first_, all);
  }

  // Features met for the first time get a place.
  void enter(const Row& row) {
    ++s_.bank_counts[State::kLearned];
    s_.bank_counts[State::kTouched] += row.size();
    for (std::int64_t i = 0, n = fresh_ ? row.size() : 0; i < n; ++i) {
      if (count_[i] > T(1)) continue;
      place_[i] = table_.activate_packed(row.index()[i], s_.counts[State::kActive]);
      T* tail = table_.row(place_[i]) + table_.stride - State::kTail;
      tail[State::kCount] = T(1);
      tail[State::kEpoch] = T(-1);
    }
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[State::kDimension])
      s_.counts[State::kDimension] = row.index()[row.size() - 1] + 1;
  }

  // The experts' steps, and the row's scales, which become those of its features.
  void scatter(const Row& row) {
    const double per = 1.0 / (unit_ * lifted(x_.data(), row.size(), xx_));
    std::int64_t k = 0;
    T step[8] = {}, rare[8] = {};  // a row of the table has as many columns at least
    for (; k < std::min<std::int64_t>(K_, 8); ++k) {
      step[k] = State::held(per * step_[k]);
      rare[k] = State::held(per * rare_step_[k]);
    }
    scatter_eight(x_.data(), row.size(), step, rare);
    for (; k < K_; ++k)
      for (std::int64_t i = 0; i < row.size(); ++i)
        table_.row(place_[i])[k] +=
            x_[i] * (State::held(per * step_[k]) + rarity_[i] * State::held(per * rare_step_[k]));
  }

  void scatter_eight(const T* x, std::int64_t n, const T* step, const T* rare) const {
    Lanes<T, 8> w;
    const std::int64_t* place = place_.data();
    const T *count = count_.data(), *mean = mean_.data(), *rarity = rarity_.data();
    T* const rows = table_.rows;
    const std::int64_t stride = table_.stride;
    for (std::int64_t i = 0; i < n; ++i) {
      T* const row = rows + place[i] * stride;
      w.load(row);
      w.add(x[i], step);
      w.add(x[i] * rarity[i], rare);
      w.store(row);
      T* const tail = row + stride - State::kTail;
      tail[State::kCount] = count[i];
      tail[State::kMean] = mean[i];
    }
  }

  BankLoss loss_;
  Aggregate aggregate_;
  BankState<T> s_;
  Table<T> table_;
  BankLabels<T> labels_;
  BankSketch<T> sketch_;
  BankFull full_;
  BankStack stack_;
  std::int64_t K_, first_, ldm_;  // experts that take steps, the first with a whole matrix
  std::array<Seen, kViews> seen_;
  std::vector<std::uint8_t> view_;  // of each expert
  std::vector<double> sums_, p_, odds_, up_, down_, length_, way_, step_, rare_step_, direction_;
  std::vector<Aim> aim_;
  std::vector<T> x_, count_, mean_, rarity_, copies_;
  std::vector<std::int64_t> place_;  // in the table, of the row's features
  std::vector<T*> behind_;
  double miss_ = 1;              // of the predictions so far
  std::int64_t met_ = 0;         // features of the row that were seen before
  bool fresh_ = false;           // has the row features that were never seen before?
  double xx_ = 0, seen_xx_ = 0;  // ‖x‖² of the row scaled, and of the features that were seen before
  double rare_xx_ = 0;           // and Σ x²√(T/n)
  double others_ = 0;            // what would be played without the constant expert
  double unit_ = 1;              // of the table's weights
};

}  // namespace skn
