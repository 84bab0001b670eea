// The learner of SON over a feature table: sketch × loss × projection, in time proportional to a row's
// non-zeros.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/newton_problem.hpp"
#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"

namespace skn {

// What a sketch is to the learner:
//   begin       reads a row's combined columns, ‖x‖² and x; returns what the sketch adds to the score
//   magnitude   the same of absolute values: what that score's rounding is a share of
//   alpha_changed  if there is such a function: A has another α
//   attend      if there is such a function: the row once more, when its features are active
//   quadratic   xᵀA⁻¹x
//   move        w ← w − step·A⁻¹x within the sketch; returns what w̄ gains per unit of x
//   free        does x reach out of the range of a singular A? then move_free lowers the score by `excess`
//   update      takes in ĝ = r·x; fills what the table's columns gain per unit of x; returns what w̄ gains
//   finish      called when the row's features have been written
// and, if it has something to do in a round without a gradient:
//   end_round   called in every round, before its step; told whether there is one
//   leave_out   called with r where ĝ counts as zero, as it may be rounding
// and, if it may leave a row to another sketch:
//   declines    asked before a row is learned; if so, nothing is
// and, if it asks for a row's features and writes the weights itself (kOwnWeights):
//   at          called before `begin`
// and, if the sketch puts work off (kLazy):
//   gather      Σ x_i row_i, of features brought up to date; have all of them been learned from?
//   settle      does all of the work for one feature
//   extra       columns that belong to a feature but are kept elsewhere

// m = 0: A = αI, online gradient descent.
template <class T>
class NoSketch {
 public:
  static constexpr bool kLazy = false;
  explicit NoSketch(const double* alpha) : alpha_(alpha) {}
  double begin(const double*, double xx, const T*) {
    xx_ = xx;
    return 0.0;
  }
  double magnitude(const double*) const { return 0.0; }
  double quadratic() const { return xx_ / *alpha_; }
  double move(double step) { return xx_ > 0 ? -step / *alpha_ : 0.0; }
  bool free() const { return false; }
  double move_free(double) { return 0.0; }
  double update(double, double*, const Table<T>&, std::int64_t, const std::int64_t*, std::int64_t) {
    return 0.0;
  }
  void finish(const Table<T>&, std::int64_t) {}

 private:
  const double* alpha_;
  double xx_ = 0;
};

struct NewtonState {
  std::int64_t* counts;  // rounds, active features, dimension (1 + largest feature learned from)
  Intercept intercept;
  double* alpha;       // 0 until there is a row to set it
  double* lengths;     // what data have set it to, rows' Σ‖x‖² and their number
  double first_alpha;  // α per ‖x‖², or, where `diagonal` takes the rows' unit away, α; 0 if it is given
  bool diagonal;
};

// What the learners of SON do with a row's features, whatever they predict.
template <class T>
class NewtonRows {
 protected:
  NewtonRows(const NewtonState& state, const Table<T>& table) : s_(state), table_(table) {}

  enum { kRounds, kActive, kDimension };
  static constexpr double kFirstScale = 0.31622776601683794;  // D_1^½, D_1 = 0.1 (SON §5.2)

  // Which rows of the table the first n features of a row have; to be asked before anything else is.
  void find(const std::int64_t* feature, std::int64_t n) {
    at_ = feature;
    if (table_.places == nullptr) return;
    if (static_cast<std::int64_t>(places_.size()) < n) places_.resize(static_cast<std::size_t>(n));
    for (std::int64_t k = 0; k < n; ++k) places_[k] = table_.places[feature[k]];
    at_ = places_.data();
  }

  // x as the learner sees it: rounded to the table's precision, divided by D^½ if adaptive.
  void scale(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n) {
    x_.resize(static_cast<std::size_t>(n));
    if (s_.diagonal) {
      for (std::int64_t k = 0; k < n; ++k) {
        const auto root = static_cast<double>(table.row(index[k])[Table<T>::kScale]);
        x_[k] = static_cast<T>(value[k] / (root > 0 ? root : kFirstScale));
      }
    } else {
      for (std::int64_t k = 0; k < n; ++k) x_[k] = static_cast<T>(value[k]);
    }
    xx_ = square(x_.data(), n);
  }

  // ‖x‖², four sums side by side: one alone would wait for each addition.
  static double square(const T* x, std::int64_t n) {
    Four sum{}, its;
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      widen(x + k, its);
      sum += its * its;
    }
    for (; k < n; ++k) sum[0] += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    return total(sum);
  }

  // α follows the data: first_alpha times the mean of ‖x‖², so that a step along a row of that length does
  // not overshoot. The first row alone may be of any length, in text a hundredth of the mean. It is set again
  // when the mean has moved away by a factor of two, which few rows do. Returns whether it has changed.
  bool follow_rows() {
    if (!(s_.first_alpha > 0 && xx_ > 0)) return false;
    double &base = s_.lengths[0], &sum = s_.lengths[1], &count = s_.lengths[2];
    if (s_.diagonal) {  // rows have no unit: only the range of the targets counts
      if (s_.first_alpha == base) return false;
      *s_.alpha = s_.first_alpha + (*s_.alpha - base);  // robust sketches have added to it
      base = s_.first_alpha;
      return true;
    }
    sum += xx_, count += 1;
    const double wanted = s_.first_alpha * sum / count;
    if (wanted <= 2 * base && base <= 2 * wanted) return false;
    *s_.alpha += wanted - base;
    base = wanted;
    return true;
  }

  // Features met for the first time get a place in the list of active ones, and in a packed table a row.
  void enter(const Row& row) {
    for (std::int64_t k = 0; k < row.size(); ++k) {
      if (table_.row(at_[k])[Table<T>::kScale] != T(0)) continue;
      if (table_.places != nullptr)
        places_[k] = table_.activate_packed(row.index()[k], s_.counts[kActive]);
      else
        table_.activate(row.index()[k], s_.counts[kActive]);
      table_.row(at_[k])[Table<T>::kScale] = static_cast<T>(s_.diagonal ? kFirstScale : 1.0);
    }
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
  }

  NewtonState s_;
  Table<T> table_;
  const std::int64_t* at_ = nullptr;  // the numbers of the rows that a row's features have
  std::vector<T> x_;
  double xx_ = 0;

 private:
  std::vector<std::int64_t> places_;  // the same, of a packed table
};

template <class T, class Sketch>
class Newton : private NewtonRows<T> {
  using Base = NewtonRows<T>;
  using Base::at_, Base::enter, Base::find, Base::follow_rows, Base::scale, Base::s_, Base::table_, Base::x_,
      Base::xx_, Base::kRounds, Base::kActive;

 public:
  Newton(const Problem& problem, const NewtonState& state, const Table<T>& table, Sketch sketch)
      : Base(state, table),
        problem_(problem),
        sketch_(std::move(sketch)),
        q_(table.stride),
        step_(table.stride) {}

  // Learns the rows in order; out[i] is the prediction made before row i was learned.
  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, 1,
               [this](const Row& row, double y, double h, double* p) { *p = learn_row(row, y, h); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, 1, [&](const Row& row, double* p) { *p = predict_row(row, features); });
  }

  // The same for one row.
  double predict_row(const Row& row, std::int64_t features) { return problem_.clipped(peek(row, features)); }

  std::int64_t active() const { return s_.counts[kActive]; }
  std::int64_t settled_width() const {
    if constexpr (Sketch::kLazy) return table_.stride + sketch_.extra_columns();
    return table_.stride;
  }

  // Copies of the rows of all active features, up to date, with the sketch's extra columns behind them.
  void settled(T* out) {
    Table<T> table = table_;
    table.rows = out;
    table.stride = settled_width();
    for (std::int64_t i = 0; i < s_.counts[kActive]; ++i) {
      std::copy_n(table_.row_of(table_.active[i]), table_.stride, table.row(i));
      if constexpr (Sketch::kLazy) {
        sketch_.extra(table.row(i), table.row(i) + table_.stride);
        sketch_.settle(table.row(i));
      }
    }
  }

  Sketch& sketch() { return sketch_; }
  bool declined() const { return declined_; }  // the last row

  // The prediction made before the row was learned.
  double learn_row(const Row& row, double label, double weight) {
    declined_ = false;
    if (weight == 0)  // a row of no importance leaves no trace
      return problem_.clipped(peek(row, std::numeric_limits<std::int64_t>::max()));
    find(row.index(), row.size());
    const double score = look(row);
    if constexpr (requires { &Sketch::declines; }) {
      declined_ = sketch_.declines(row.size(), s_.counts[kActive]);
      if (declined_) return 0.0;
    }
    const double prediction = problem_.clipped(score);
    if (!known_) enter(row);
    follow();
    attend(row);
    std::fill(step_.begin(), step_.end(), 0.0);
    if (prediction != score && problem_.project) project(score - prediction);

    const auto t = static_cast<double>(++s_.counts[kRounds]);
    const double slope = weight * problem_.derivative(prediction, label, [&] { return doubt(row); });
    if (slope != 0) {
      if (s_.diagonal) adapt(row, slope);
      const double r =
          problem_.sketched(slope, prediction, label, t, weight, static_cast<double>(s_.counts[kActive]));
      if (r != 0 && xx_ > 0)
        step_[Table<T>::kWeight] += sketch_.update(r, step_.data() + Table<T>::kSketch, table_,
                                                   s_.counts[kActive], row.index(), row.size());
      s_.intercept.update(r);
    } else if constexpr (requires { sketch_.leave_out(0.0); }) {
      const double doubted = weight * problem_.loss.derivative(prediction, label);
      if (doubted != 0)
        sketch_.leave_out(problem_.sketched(doubted, prediction, label, t, weight,
                                            static_cast<double>(s_.counts[kActive])));
    }
    if constexpr (requires { sketch_.end_round(true); }) sketch_.end_round(slope != 0);
    if (slope != 0) move(slope);
    write(row);
    sketch_.finish(table_, s_.counts[kActive]);
    return prediction;
  }

 private:
  static constexpr bool kOwnWeights = requires(Sketch& s) { s.at(nullptr, 0); };

  // The score of a row, nothing changed. Features beyond the table have no weight.
  double peek(const Row& row, std::int64_t features) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    Table<T> table = table_;
    find(row.index(), n);
    const std::int64_t* index = at_;
    const double* value = row.value();
    if constexpr (Sketch::kLazy) {  // work put off is done on copies, of features that there are
      copies_.resize(static_cast<std::size_t>(n * table_.stride));
      counted_.resize(static_cast<std::size_t>(n));
      values_.resize(static_cast<std::size_t>(n));
      table.rows = copies_.data();
      std::int64_t known = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const T* const from = table_.row(index[k]);
        if (from[Table<T>::kScale] == T(0)) continue;
        counted_[known] = known;
        values_[known] = value[k];
        std::copy_n(from, table_.stride, table.row(known++));
      }
      index = counted_.data();
      value = values_.data();
      n = known;
    }
    scale(table, index, value, n);
    return score(table, index, n);
  }

  // Reads the features of a row whose places have been found; returns its score.
  double look(const Row& row) {
    scale(table_, at_, row.value(), row.size());
    return score(table_, at_, row.size());
  }

  double score(const Table<T>& table, const std::int64_t* index, std::int64_t n) {
    gather(table, index, n);
    if constexpr (kOwnWeights) sketch_.at(index, n);
    return q_[Table<T>::kWeight] + sketch_.begin(q_.data() + Table<T>::kSketch, xx_, x_.data()) +
           s_.intercept.value();
  }

  void attend(const Row& row) {
    if constexpr (requires { &Sketch::attend; })
      sketch_.attend(table_, s_.counts[kActive], row.index(), x_.data(), row.size());
  }

  // How far rounding may have moved the score: sums of up to 32 terms are in T.
  double doubt(const Row& row) {
    sizes_.assign(q_.size(), 0.0);
    for (std::int64_t k = 0; k < row.size(); ++k)
      for (std::int64_t c = 0; c < table_.stride; ++c)
        sizes_[c] += std::abs(static_cast<double>(x_[k]) * static_cast<double>(table_.row(at_[k])[c]));
    const double sum = sizes_[Table<T>::kWeight] + sketch_.magnitude(sizes_.data() + Table<T>::kSketch) +
                       std::abs(s_.intercept.value());
    return 16 * std::numeric_limits<T>::epsilon() * sum;
  }

  void gather(const Table<T>& table, const std::int64_t* index, std::int64_t n) {
    if constexpr (Sketch::kLazy)
      known_ = sketch_.gather(table, index, x_.data(), n, q_.data());
    else
      known_ = table.gather(index, x_.data(), n, q_.data());
  }

  void write(const Row& row) {
    if constexpr (kOwnWeights) return;
    if constexpr (Sketch::kLazy)  // only the weights change with every row
      table_.add_weights(at_, x_.data(), row.size(), step_[Table<T>::kWeight]);
    else
      table_.scatter(at_, x_.data(), row.size(), step_.data());
  }

  // The gradient joins D before the step is taken, as in AdaGrad: a feature's first step then has its scale
  // right, whatever its unit. (With D of the past alone, SON §5.2 taken literally, SON's Table 3 is out of
  // reach.)
  void adapt(const Row& row, double slope) {
    if (step_[Table<T>::kWeight] != 0) write(row);
    step_[Table<T>::kWeight] = 0;
    for (std::int64_t k = 0; k < row.size(); ++k) {
      T& root = table_.row(at_[k])[Table<T>::kScale];
      const double old = static_cast<double>(root), g = slope * row.value()[k];
      root = static_cast<T>(std::max(old, std::sqrt(old * old + g * g)));  // squares may vanish
    }
    look(row);
    attend(row);
  }

  void follow() {
    if (!follow_rows()) return;
    if constexpr (requires { sketch_.alpha_changed(); }) sketch_.alpha_changed();
  }

  // w ← w − step·A⁻¹x
  void move(double step) {
    step_[Table<T>::kWeight] += sketch_.move(step);
    s_.intercept.move(step);
  }

  // To where |wᵀx| ≤ C, the shortest way in the norm of A (SON Lemmas 1 and 2).
  void project(double excess) {
    if (sketch_.free())
      step_[Table<T>::kWeight] += sketch_.move_free(excess);
    else
      move(excess / (sketch_.quadratic() + s_.intercept.quadratic()));
  }

  Problem problem_;
  Sketch sketch_;
  std::vector<double> q_, step_, sizes_, values_;
  bool known_ = false;  // all features of the row have been learned from
  bool declined_ = false;
  std::vector<T> copies_;
  std::vector<std::int64_t> counted_;
};

}  // namespace skn
