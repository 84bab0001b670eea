// A bank of online Newton learners that needs no tuning, in sparse time (docs/untuned-theory.md).
//
// The experts share features' scales and one sketch U, λ of the rows (bank_sketch.hpp); each takes its own
// steps, but for one that has the mean of another's weights (bank_experts.hpp). One more knows nothing but
// labels. While there are few features, experts with whole matrices join them (bank_full.hpp), and for
// classes one whose weights wander (bank_tracking.hpp). Predictions are aggregated (aggregate.hpp) in the
// range of the labels (bank_labels.hpp), and if labels are classes stacked (bank_stack.hpp).
//
// A table row: K weights w̄ (of the averaged expert what BankState::averaging says), m sketch coordinates,
// padding, then the number of rows that had the feature, the mean of |x| over them and the epoch up to which
// the row has been brought (−1: no coordinates yet, nothing to bring).
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
#include "learners/bank_experts.hpp"
#include "learners/bank_full.hpp"
#include "learners/bank_labels.hpp"
#include "learners/bank_loss.hpp"
#include "learners/bank_row.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_stack.hpp"
#include "learners/bank_state.hpp"
#include "learners/bank_tracking.hpp"
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
        tracking_(state.tracking),
        stack_(loss, state.clip, state.stack),
        row_(state, table),
        steps_(loss, state),
        K_(state.experts),
        first_(state.experts + 1),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        sums_(table.stride),
        p_(Aggregate::kMost),
        up_(Aggregate::kMost),
        down_(Aggregate::kMost) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    const Flush flush{*this};  // rows may turn out to have changed meanwhile, which ends all
    restarted_ = 0;
    stretches_.clear();
    row_.expect_nothing();
    learn_rows(
        rows, table_, labels, weights, out, 1, [this](const Row& row) { row_.expect(row); },
        [&](const Row& row, double y, double h, double* p) {
          learn_row(row, y, h, p);
          if (whole()) stretches_.push_back(full_.stretch());
          if (labels_.starts_again()) restart(p + 1 - out);
        });
  }

  // How many of the rows learned last came before all was forgotten, as labels among them were wild.
  std::int64_t restarted() const { return restarted_; }

  // How wide the distributions of the labels of the rows learned last were, each before it was learned; as
  // far as features were few.
  const std::vector<double>& stretches() const { return stretches_; }
  // Those of other rows. Returns false if features are many.
  bool stretches(const Rows& rows, double* out) {
    if (!whole()) return false;
    predict_rows(rows, out, 1, [&](const Row& row, double* to) {
      full_.look(row);  // whatever has no place is left out
      *to = full_.stretch();
    });
    return true;
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

  std::int64_t experts() const { return first_ + (whole() ? BankFull::kMemories + tracks() : 0); }
  // How many places for features the experts with whole matrices may need to learn these rows, 0 if there is
  // room for them; −1 if experts have left, but not their memory.
  std::int64_t places_for(const Rows& rows) {
    if (!whole()) return full_.room() > 0 ? -1 : 0;
    const std::int64_t needed = full_.needs(rows);
    if (needed > full_.room()) return needed;
    return !tracking_.alive() && tracking_.room() > 0 ? -1 : 0;
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
  static constexpr std::int64_t kDense = 8;  // a row with a share of one in so many of all features is dense

  // A row whose prediction, middle + half times what is played, waits.
  struct Waiting {
    double* out = nullptr;
    double middle = 0, half = 0;
  };

  struct Flush {
    Bank& bank;
    ~Flush() { bank.flush(); }
  };

  void learn_row(const Row& row, double label, double h, double* out) {
    if (h == 0) {
      flush();
      *out = peek(row, std::numeric_limits<std::int64_t>::max());
      return;
    }
    if (whole()) look_exactly(row);
    row_.fetch(row);
    look(row.value());
    const bool rushed = labels_.rare_odds();
    const double typical = steps_.typical_with(row_),
                 root = 1.0 / std::sqrt(std::max(s_.scalars[State::kClock] + h, 1.0));
    if (rushed) steps_.rush(row_, labels_.learned(label), h, typical);
    flush();
    steps_.aim(row_, typical, root);
    mix();
    const std::int64_t all = experts();
    const bool stacks = stacked(), blank = blank_score();
    const double middle = labels_.middle(), half = labels_.half(), own = played_.others;
    if (labels_.none()) labels_.meet(label);
    if (!rushed && labels_.rare_odds())
      steps_.rush(row_, labels_.learned(label), h, typical);  // the first row is a class: odds are 0
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
      if (std::abs(r) >= kNoStep && row_.xx() > State::kNoLength) improve(row, y, r, h, rows, typical, root);
    }
    if (stacks) {
      waiting_ = {out, middle, half};
      stack_.wait(played_.all, p_.data(), K_, p_.data() + first_, all - first_);
      if (std::abs(y) == 1.0) stack_.teach(y, h, clock);
    } else {
      *out = blank ? 0.0 : middle + half * played_.all;
    }
    const double unit = labels_.weight_unit();
    if (const double shrink = labels_.widen(label, h); shrink != 1.0 && loss_.squared()) {
      sketch_.shrink(shrink);
      Aggregate::temper(shrink * shrink, s_.shares, experts());
    }
    if (labels_.weight_unit() != unit) sketch_.rescale(unit / labels_.weight_unit());
    if (tracks() && !labels_.classes()) track_no_more();
  }

  // The prediction of the row that waits for what the experts say together.
  void flush() {
    if (waiting_.out == nullptr) return;
    *waiting_.out = waiting_.middle + waiting_.half * stack_.play();
    waiting_.out = nullptr;
  }

  // The prediction of a row, nothing changed: work put off is done on copies.
  double peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    if (whole()) look_exactly(Row(row.index(), row.value(), n));
    row_.peek(row.index(), n, sketch_);
    look(row.value());
    mix();
    double played = played_.all;
    if (stacked()) {
      stack_.wait(played, p_.data(), K_, p_.data() + first_, experts() - first_);
      played = stack_.play();
    }
    return blank_score() ? 0.0 : labels_.middle() + labels_.half() * played;
  }

  bool blank_score() const { return labels_.none() && !loss_.logistic(); }

  // Scales the row that was fetched: c = Ux and the experts' predictions. If labels are classes, which hardly
  // depend on how wild a value is, it counts as kWild mean sizes at most: what all other rows say about a
  // feature that is rarely far from its usual value would have weight hundreds of times over where it is.
  void look(const double* value) {
    labels_.look();
    unit_ = labels_.weight_unit();
    row_.scale(value, labels_.classes() ? kWild : std::numeric_limits<T>::max(), sketch_.now());
    row_.settle(sketch_);
    gather();
    const auto rank = static_cast<double>(sketch_.rank());
    for (std::int64_t j = 0; j < ldm_; j += 4) {
      Four its, constant;
      assemble(sums_.data() + K_ + j, its);
      steps_.constant_at(j, constant);
      const Four at = Four{0.0, 1.0, 2.0, 3.0} + static_cast<double>(j);
      four(steps_.c() + j) = at < rank ? its + constant : Four{};
    }
    steps_.view(row_, labels_.classes());
    steps_.look(labels_, sums_.data(), unit_, labels_.within(labels_.usual()), p_.data());
    if (whole()) look_whole();
  }

  void mix() { aggregate_.mix(p_.data(), s_.shares, experts(), K_, up_.data(), down_.data(), played_); }

  // Is what the experts say together heard beside what their weights make of it?
  bool stacked() const { return loss_.mixable() && labels_.classes(); }

  bool whole() const { return s_.has_full && full_.alive(); }
  bool tracks() const { return s_.has_tracking && tracking_.alive(); }

  // The scores of the experts that see features as they come.
  void look_exactly(const Row& row) {
    full_.look(row);
    if (tracks()) tracked_ = tracking_.look(full_);
  }

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
        p = likely(full_.odds(g));
      }
    }
    if (!tracks()) return;
    const double odds = full_.odds_tracked(tracked_);
    p_[first_ + BankFull::kMemories] = loss_.logistic() ? labels_.within(odds) : likely(odds);
  }

  // What a class is predicted by its log odds.
  double likely(double odds) const {
    const double its = labels_.of_odds(labels_.within_odds(odds));
    return loss_.squared() ? its : labels_.within(its);
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
  void improve(const Row& row, double y, double r, double h, std::int64_t rows, double typical, double root) {
    row_.enter(row);
    s_.scalars[State::kSquares] += row_.xx();
    if (rows > 0) {
      double* c = steps_.c();
      sketch_.keep(row, row_.x(), row_.xx(), c, std::sqrt(h * static_cast<double>(rows)) * std::abs(r));
      if (sketch_.due(s_.counts[State::kRounds])) {
        sketch_.end_epoch(c, unit_);
        steps_.view_sketch();
        steps_.aim(row_, typical, root);
      }
    }
    // Weights are moved for every unit of x, and of the table's unit.
    typename BankRow<T>::Steps steps;
    steps_.step(row_, labels_, p_.data(), y, h, typical, miss_, 1.0 / (unit_ * row_.lift()), steps);
    row_.scatter(steps, steps_.rarely());
    if (whole()) improve_whole(row, y, h);
  }

  void improve_whole(const Row& row, double y, double h) {
    const bool classes = labels_.classes();
    full_.missed(loss_.poisson() ? y - std::exp(played_.all) : labels_.half() * (y - played_.all));
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
    if (!full_.learn(row, row_.sizes(), its.target, its.weight, h, rows, classes, tracked_,
                     s_.shares + first_)) {
      if (tracks()) tracking_.leave();
      Aggregate::leave(s_.shares, first_, all);
    } else if (tracks() && !tracking_.learn(full_, y, h)) {
      track_no_more();
    }
  }

  // Features are too many, or labels are no classes.
  void track_no_more() {
    const std::int64_t all = experts();
    tracking_.leave();
    tracked_ = 0;  // as in a bank that is loaded: log odds are learned of it all the same
    Aggregate::leave(s_.shares, all - 1, all);
  }

  BankLoss loss_;
  Aggregate aggregate_;
  BankState<T> s_;
  Table<T> table_;
  BankLabels<T> labels_;
  BankSketch<T> sketch_;
  BankFull full_;
  BankTracking tracking_;
  BankStack stack_;
  Waiting waiting_;
  BankRow<T> row_;
  BankExperts<T> steps_;
  std::int64_t K_, first_, ldm_;  // experts that take steps, the first with a whole matrix
  std::vector<double> sums_, p_, up_, down_, stretches_;
  Aggregate::Played played_{};  // by the rule
  double miss_ = 1;             // of the predictions so far
  double tracked_ = 0;          // the score of the tracking expert, if there is one
  double unit_ = 1;             // of the table's weights
  std::int64_t restarted_ = 0;  // after so many of the rows learned last
};

}  // namespace skn
