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
#include "learners/bank_row.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_stack.hpp"
#include "learners/bank_state.hpp"
#include "learners/working_response.hpp"

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
        row_(state, table),
        K_(state.experts),
        first_(state.experts + 1),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        sums_(table.stride),
        p_(Aggregate::kMost),
        odds_(K_),
        odds_way_(K_),
        up_(Aggregate::kMost),
        down_(Aggregate::kMost),
        length_(Aggregate::kMost),
        way_(Aggregate::kMost),
        step_(K_),
        direction_(K_ * ldm_),
        chances_(K_),
        aim_(K_) {
    for (Seen& seen : seen_) seen.c.resize(ldm_);
    for (std::int64_t k = 0; k < K_; ++k) {
      view_.push_back(static_cast<std::uint8_t>(s_.expert[k].view));
      if (k < kEight) rare_[k] = T(s_.expert[k].sees(kRare));
    }
  }

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    restarted_ = 0;
    learn_rows(rows, table_, labels, weights, out, 1, [&](const Row& row, double y, double h, double* p) {
      *p = learn_row(row, y, h);
      if (labels_.starts_again()) restart(p + 1 - out);
    });
  }

  // How many of the rows learned last came before all was forgotten, as labels among them were wild.
  std::int64_t restarted() const { return restarted_; }

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
  static constexpr std::int64_t kEight = 8;  // experts whose weights are moved together
  static constexpr double kHeavy = 0.25;     // a restless expert's constant, as a share of the typical row
  static constexpr std::int64_t kDense = 8;  // a row with a share of one in so many of all features is dense

  // A row as experts see it: its features and the constant are multiplied by these.
  struct Seen {
    double features = 1, constant = 1;
    double least = 0;       // its ‖x‖² in a step: what it lacks counts as a feature that no other row has
    std::vector<double> c;  // U times it
  };

  // An expert's step: along flat·x + direction·U, 1/per_q long for every unit of the path.
  struct Aim {
    double flat, per_q;
    const double* direction;
  };

  double learn_row(const Row& row, double label, double h) {
    if (h == 0) return peek(row, std::numeric_limits<std::int64_t>::max());
    if (whole()) full_.look(row);
    row_.fetch(row, sketch_);
    look(row.value());
    const bool rushed = labels_.rare_odds();
    if (rushed) rush(labels_.learned(label), h);
    mix();
    const std::int64_t all = experts();
    const bool stacks = stacked(), blank = blank_score();
    const double middle = labels_.middle(), half = labels_.half(), own = played_.others;
    if (labels_.none()) labels_.meet(label);
    if (!rushed && labels_.rare_odds())
      rush(labels_.learned(label), h);  // the first row is a class: odds are 0
    const auto t = ++s_.counts[State::kRounds];
    const double clock = s_.scalars[State::kClock] += h;
    double y = 0;
    if (labels_.open() && !labels_.wild(label)) {
      y = labels_.learned(label);
      charge(y, h, clock);
      measure(own, y, h);
      labels_.learn_usual(p_[K_], y, h, miss_);
      const double r = labels_.reached(own, y) ? 0.0 : loss_.slope(own, y, miss_);
      const std::int64_t rows = sketch_.stands_for(t);
      if (std::abs(r) >= kNoStep && row_.xx() > State::kNoLength) improve(row, y, r, h, rows, clock);
    }
    // Nothing of the above waits for it, and the next row's features need not wait for it either.
    const double played = stacks ? stack(all) : played_.all;
    if (stacks && std::abs(y) == 1.0) stack_.learn(y, h, clock);
    const double unit = labels_.weight_unit();
    if (const double shrink = labels_.widen(label, h); shrink != 1.0 && loss_.squared()) {
      sketch_.shrink(shrink);
      Aggregate::temper(shrink * shrink, s_.shares, experts());
    }
    if (labels_.weight_unit() != unit) sketch_.rescale(unit / labels_.weight_unit());
    return blank ? 0.0 : middle + half * played;
  }

  // The prediction of a row, nothing changed: work put off is done on copies.
  double peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    if (whole()) full_.look(Row(row.index(), row.value(), n));
    row_.peek(row.index(), n, sketch_);
    look(row.value());
    mix();
    const double played = stacked() ? stack(experts()) : played_.all;
    return blank_score() ? 0.0 : labels_.middle() + labels_.half() * played;
  }

  bool blank_score() const { return labels_.none() && !loss_.logistic(); }

  // What is played if of `all` experts those that are not constant are heard together, too.
  double stack(std::int64_t all) {
    return stack_.play(played_.all, p_.data(), K_, p_.data() + first_, all - first_);
  }

  // Scales the row that was fetched: c = Ux and the experts' predictions. If labels are classes, which hardly
  // depend on how wild a value is, it counts as kWild mean sizes at most: what all other rows say about a
  // feature that is rarely far from its usual value would have weight hundreds of times over where it is.
  void look(const double* value) {
    labels_.look();
    unit_ = labels_.weight_unit();
    row_.scale(value, labels_.classes() ? kWild : std::numeric_limits<T>::max());
    gather();
    const auto rank = static_cast<double>(sketch_.rank());
    for (std::int64_t j = 0; j < ldm_; j += 4) {
      Four its, constant;
      assemble(sums_.data() + K_ + j, its);
      constant_at(j, constant);
      const Four at = Four{0.0, 1.0, 2.0, 3.0} + static_cast<double>(j);
      four(&seen_[kPlain].c[j]) = at < rank ? its + constant : Four{};
    }
    view();
    const bool rare_odds = labels_.rare_odds();
    for (std::int64_t k = 0; k < K_; ++k) {
      const Seen& seen = seen_by(k);
      const double score = s_.scalars[State::kOffset] + seen.constant * s_.constant[k] +
                           seen.features * unit_ * sums_[k] + dot(seen.c.data(), s_.b + k * ldm_, ldm_);
      if (rare_odds && s_.expert[k].sees(kRare)) {
        odds_[k] = labels_.within_odds(score);
        chances_[k] = Sigmoids(odds_[k]);
        p_[k] = chances_[k].up - chances_[k].down;
      } else {
        p_[k] = labels_.within(score);
      }
    }
    p_[K_] = labels_.within(labels_.usual());
    if (whole()) look_whole();
  }

  void mix() { played_ = aggregate_.mix(p_.data(), s_.shares, experts(), K_, up_.data(), down_.data()); }

  // Is what the experts say together heard beside what their weights make of it?
  bool stacked() const { return loss_.mixable() && labels_.classes(); }

  bool whole() const { return s_.has_full && full_.alive(); }

  // Weights of few features, and of rows that have many of them all, may be large and cancel, which rounded
  // sums would show. Sums that are too large for T are not for it.
  void gather() {
    const bool dense = whole() || kDense * row_.met() >= s_.counts[State::kActive];
    if (!dense) row_.gather(sums_.data(), table_.stride);
    std::int64_t odd = dense;  // counted, not noted: compilers make vectors of sums
    for (std::int64_t c = 0; c < table_.stride; ++c)
      odd += !(std::abs(sums_[c]) <= std::numeric_limits<double>::max());
    if (odd > 0) row_.gather_exactly(sums_.data());
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

  // How the row looks to experts of each kind. A class hardly depends on how long a row is (a long text is
  // not more of its class than a short one), a number to be predicted may well. Features never seen count as
  // zero.
  void view() {
    const double length = s_.bank_counts[State::kLearned] > 0 ? typical() : 1.0;
    const bool evens =
        labels_.classes() && s_.bank_counts[State::kLearned] > 0 && row_.seen_xx() > State::kNoLength;
    seen_[kEven].features = seen_[kRestless].features = evens ? std::sqrt(length / row_.seen_xx()) : 1.0;
    seen_[kRestless].constant = std::max(1.0, kHeavy * std::sqrt(std::max(length - 1.0, 0.0)));
    // Else a row without known features, such as an empty text, would move the constant all the way to its
    // label, and with it every prediction.
    seen_[kRestless].least = evens && row_.seen_xx() <= one() ? length : 0.0;
    const auto rows = static_cast<double>(s_.bank_counts[State::kLearned] + 1);
    seen_[kRare].features = seen_[kRare].constant = 1.0 / std::sqrt(std::sqrt(rows));
    view_sketch();
  }

  void view_sketch() {
    for (std::int64_t j = 0; j < ldm_; j += 4) {
      Four constant;
      constant_at(j, constant);
      const Four features = four(&seen_[kPlain].c[j]) - constant;
      for (int view : {kEven, kRestless}) {
        Seen& seen = seen_[view];
        four(&seen.c[j]) = seen.features * features + seen.constant * constant;
      }
    }
  }

  // Four of the constant's m coordinates.
  void constant_at(std::int64_t j, Four& to) const {
    const double* const from = s_.constant + K_ + j;
    if (j + 4 <= s_.m) {
      to = four(from);
      return;
    }
    to = Four{};
    for (int i = 0; i < 3; ++i)
      if (j + i < s_.m) to[i] = from[i];
  }

  const Seen& seen_by(std::int64_t k) const { return seen_[view_[k]]; }
  double one() const { return s_.intercept ? 1.0 : 0.0; }
  double typical() const {  // ‖x‖²
    return s_.scalars[State::kSquares] / static_cast<double>(s_.bank_counts[State::kLearned]);
  }

  // -- learning

  void charge(double y, double h, double clock) {
    aggregate_.charge(p_.data(), y, h, 1.0 / (clock + 1.0), s_.shares, experts(), up_.data(), down_.data(),
                      played_, {s_.scalars[State::kRate], s_.scalars[State::kGaps]});
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

  // All that was learned from labels is forgotten; how large features are is not.
  void restart(std::int64_t row) {
    restarted_ = row;
    sketch_.restart();
    if (whole()) full_.restart();
    for (int scalar : {State::kRate, State::kGaps, State::kMissed, State::kExpected, State::kUsual,
                       State::kUsualRows, State::kNear, State::kWindows})
      s_.scalars[scalar] = 0;
    std::fill_n(s_.shares, experts(), 1.0 / static_cast<double>(experts()));
  }

  // Scales, sketch, then every expert's step.
  void improve(const Row& row, double y, double r, double h, std::int64_t rows, double clock) {
    row_.enter(row);
    s_.scalars[State::kSquares] += row_.xx();
    if (rows > 0) {
      double* c = seen_[kPlain].c.data();
      sketch_.keep(row, row_.x(), row_.xx(), c, std::sqrt(h * static_cast<double>(rows)) * std::abs(r));
      if (sketch_.due(s_.counts[State::kRounds])) {
        sketch_.end_epoch(c, unit_);
        view_sketch();
      }
    }
    aim(h, 1.0 / std::sqrt(std::max(clock, 1.0)));
    loss_.travel(p_.data(), y, length_.data(), miss_, way_.data(), K_);
    const double half = labels_.half();
    for (std::int64_t k = 0; k < K_; ++k) {
      const Seen& seen = seen_by(k);
      const Aim& aim = aim_[k];
      const double way = follows_odds(k) ? odds_way_[k] : half * labels_.stopped(p_[k], way_[k]);
      const double step = way * aim.per_q;
      if (aim.direction != nullptr) axpy(step, aim.direction, s_.b + k * ldm_, ldm_);
      if (s_.intercept) s_.constant[k] += step * aim.flat * seen.constant;
      step_[k] = step * aim.flat * seen.features;
    }
    scatter();
    if (whole()) improve_whole(row, y, h);
  }

  // The metric of each expert at this row, and how long its path is.
  void aim(double h, double root) {
    const double first = typical();
    double* direction = direction_.data();
    double f = -1, view = -1, flat = 0, q = 0, per_q = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
      const Expert& expert = s_.expert[k];
      const Seen& seen = seen_by(k);
      if (expert.sees(kRare)) {
        if (!labels_.rare_odds()) aim_rarely(k, h, first, s_.bank_counts[State::kLearned]);
        continue;
      }
      const double its_f = expert.steady + expert.root * root;
      if (its_f != f || expert.view != view) {  // experts of one kind stand together
        f = its_f;
        view = expert.view;
        const double a = first + 0.5 * f * s_.scalars[State::kRidge];
        direction = &direction_[k * ldm_];
        const double* c = seen.c.data();
        const double xx =
            seen.features * seen.features * (row_.xx() - one()) + seen.constant * seen.constant * one();
        flat = 1.0 / a;
        Four inside{}, squares{};
        for (std::int64_t j = 0; j < ldm_; j += 4) {
          const Four each = four(c + j), square = each * each, g = 1.0 / (a + f * four(s_.lambda + j));
          four(direction + j) = each * (g - flat);
          inside += square;
          squares += square * g;
        }
        q = std::max(0.0, std::max(xx, seen.least) - total(inside)) * flat + total(squares);
        per_q = 1.0 / q;
      }
      aim_[k] = {flat, per_q, direction};
      length_[k] = h * expert.multiplier * q;
    }
  }

  // AdaGrad's step: a feature's own rate is 1/√n, that of the constant 1/√T.
  void aim_rarely(std::int64_t k, double h, double first, std::int64_t learned) {
    const double by = seen_by(k).features, rate = 1.0 / std::sqrt(static_cast<double>(learned));
    const double q = rate * by * by * row_.rare_xx();
    aim_[k] = {rate, 1.0 / q, nullptr};
    length_[k] = h * s_.expert[k].multiplier * q / (by * std::sqrt(first));
  }

  // Steps of log odds, which take longest and wait for nothing else, before the row is learned.
  void rush(double y, double h) {
    const std::int64_t learned = s_.bank_counts[State::kLearned] + 1;
    const double first = (s_.scalars[State::kSquares] + row_.xx()) / static_cast<double>(learned);
    for (std::int64_t k = 0; k < K_; ++k) {
      if (!s_.expert[k].sees(kRare)) continue;
      aim_rarely(k, h, first, learned);
      const auto [up, down] = chances_[k];
      Sigmoids margin(if_above(y, 0.0, up, down), if_above(y, 0.0, down, up));
      if (std::abs(y) != 1.0) margin = Sigmoids(y * odds_[k]);  // labels turn out to be numbers
      odds_way_[k] = BankLoss::travel_odds(margin, y, length_[k]);
    }
  }

  bool follows_odds(std::int64_t k) const { return s_.expert[k].sees(kRare) && labels_.rare_odds(); }

  void improve_whole(const Row& row, double y, double h) {
    const bool classes = labels_.classes();
    WorkingResponse its{y, 1.0};
    if (!classes) {
      its.target = labels_.middle() + labels_.half() * y;
      if (loss_.poisson())
        its = WorkingResponse::of_count(played_.others, y, miss_, std::exp(p_[K_]));
      else if (loss_.kind == BankLoss::kStraight)
        its = WorkingResponse::of(loss_, played_.others, y, h, miss_, s_.scalars[State::kExpected],
                                  static_cast<double>(full_.places()), s_.scalars[State::kNear],
                                  s_.scalars[State::kWindows]);
      its.target -= s_.scalars[State::kOffset];
    }
    const std::int64_t all = experts();
    const std::int64_t rows = s_.bank_counts[State::kLearned];
    if (full_.learn(row, row_.sizes(), its.target, its.weight, h, rows, classes, s_.shares + first_)) return;
    Aggregate::leave(s_.shares, first_, all);
  }

  // The experts' steps, and the row's scales, which become those of its features.
  void scatter() {
    const double per = 1.0 / (unit_ * row_.lift());
    T step[kEight] = {};  // a row of the table has as many columns at least
    for (std::int64_t k = 0; k < std::min(K_, kEight); ++k) step[k] = State::held(per * step_[k]);
    row_.scatter(step, rare_.data());
    for (std::int64_t k = kEight; k < K_; ++k)
      row_.scatter_column(k, State::held(per * step_[k]), s_.expert[k].sees(kRare));
  }

  BankLoss loss_;
  Aggregate aggregate_;
  BankState<T> s_;
  Table<T> table_;
  BankLabels<T> labels_;
  BankSketch<T> sketch_;
  BankFull full_;
  BankStack stack_;
  BankRow<T> row_;
  std::int64_t K_, first_, ldm_;  // experts that take steps, the first with a whole matrix
  std::array<Seen, kViews> seen_;
  std::vector<std::uint8_t> view_;  // of each expert
  std::array<T, kEight> rare_{};    // 1 for those of that view, else 0
  std::vector<double> sums_, p_, odds_, odds_way_, up_, down_, length_, way_, step_, direction_;
  std::vector<Sigmoids> chances_;  // of experts whose scores are log odds
  std::vector<Aim> aim_;
  Aggregate::Played played_{};  // by the rule
  double miss_ = 1;             // of the predictions so far
  double unit_ = 1;             // of the table's weights
  std::int64_t restarted_ = 0;  // after so many of the rows learned last
};

}  // namespace skn
