// AdaGrad with a sketched metric (ADA Algorithms 1 and 2 and their Frequent Directions forms), in time
// proportional to a row's non-zeros: O(τs + τ³) for s of them. Only φ = l1 needs a pass over all features.
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
#include "core/table.hpp"
#include "learners/adagrad_basis.hpp"
#include "learners/penalty.hpp"

namespace skn {

// One sketch and the weights that share its metric.
template <class T, class Basis>
class SketchedBlock {
 public:
  SketchedBlock(const Composite& composite, const BlockColumns& columns, std::int64_t sums, Basis basis,
                double* a, double* b, double* u, double* c)
      : c_(composite),
        at_(columns),
        sums_(sums),
        basis_(std::move(basis)),
        w_{columns.weights, basis_.ld(), a, b, u, c, composite.averaging, {}, {}} {
    w_.wx.resize(columns.weights);
    w_.gain.resize(columns.weights);
  }

  void prepare(T* row) { basis_.prepare(row); }
  std::int64_t weights() const { return w_.count; }
  double score(std::int64_t k) const { return *w_.a * (w_.wx[k] + dot(w_.B(k), basis_.x(), basis_.ld())); }

  void begin(const double* row, double xx) {
    w_.begin(row, at_);
    basis_.begin(row, xx, w_);
  }

  bool doubtful() const { return basis_.doubtful(); }

  // The row is about to be learned from.
  void open(const Table<T>& table, std::int64_t active, const RowView<T>& row, double* step) {
    basis_.open(table, active, row, w_, step);
  }

  void take(double r, double* step) { basis_.take(r, w_, step); }

  double quadratic() { return basis_.quadratic(floor()); }  // xᵀH⁻¹x

  void move(double step) { basis_.descend(w_, 0, step, 0.0, floor(), *w_.a); }  // β ← β − step·H⁻¹x

  // One round, unless φ has an l1 part.
  void learn(const double* slopes, std::int64_t t) {
    if (c_.averaging)
      average(slopes, t);
    else
      descend(slopes);
  }

  void write(double* step) const {
    for (std::int64_t k = 0; k < w_.count; ++k) step[at_.column(k)] += w_.gain[k];
  }

  // −Σg, which dual averaging needs beside the weights if φ has an l1 part, or if weights are written out.
  void write_sums(const double* slopes, double* step) const {
    for (std::int64_t k = 0; k < w_.count; ++k) step[sums_ + k] -= slopes[k];
  }

  void finish(const Table<T>& table, std::int64_t active) { basis_.finish(table, active, w_); }

  // One round with an l1 part: a problem in all features that were seen. `x` is the row, feature by feature.
  void solve(const Table<T>& table, std::int64_t active, const double* slopes, std::int64_t t,
             const double* x) {
    const std::int64_t k = basis_.factor(factor_), ld = padded4(k);
    R_.assign(static_cast<std::size_t>(active * ld), 0.0);
    center_.assign(active, 0.0);
    pull_.resize(active);
    beta_.resize(active);
    std::vector<double> v(basis_.ld(), 0.0);
    for (std::int64_t i = 0; i < active; ++i) {
      T* row = table.row(table.active[i]);
      basis_.prepare(row);
      basis_.coordinates(row, v.data());
      for (std::int64_t j = 0; j < k; ++j)
        R_[i * ld + j] = dot(&factor_[j * basis_.ld()], v.data(), basis_.ld());
    }
    for (std::int64_t c = 0; c < w_.count; ++c) {
      for (std::int64_t i = 0; i < active; ++i) {
        const T* row = table.row(table.active[i]);
        if (c_.averaging) {
          pull_[i] = c_.eta * static_cast<double>(row[sums_ + c]);
        } else {
          basis_.coordinates(row, v.data());  // a step of the projection onto |βᵀx| ≤ C may wait in b
          center_[i] =
              *w_.a * (static_cast<double>(row[at_.column(c)]) + dot(w_.B(c), v.data(), basis_.ld()));
          pull_[i] = -c_.eta * slopes[c] * x[table.active[i]];
        }
      }
      solver_.solve(R_.data(), k, active, center_.data(), pull_.data(), floor(), c_.times(t) * c_.l1,
                    c_.times(t) * c_.l2, beta_.data());
      for (std::int64_t i = 0; i < active; ++i)
        table.row(table.active[i])[at_.column(c)] = static_cast<T>(beta_[i]);
      std::fill(w_.B(c), w_.B(c) + w_.ld, 0.0);
    }
  }

 private:
  double floor() const { return c_.sigma + basis_.floor(); }

  // β ← β − η(H + cI)⁻¹(g + l2·β), c = η·l2
  void descend(const double* slopes) {
    const double decay = c_.eta * c_.l2, h = floor() + decay, next = *w_.a * (1.0 - decay / h);
    for (std::int64_t k = 0; k < w_.count; ++k)
      if (decay != 0 || slopes[k] != 0) basis_.descend(w_, k, c_.eta * slopes[k], decay, h, next);
    *w_.a = next;
  }

  // β = −η(H + cI)⁻¹Σg, c = ηt·l2
  void average(const double* slopes, std::int64_t t) {
    const double h = floor() + c_.times(t) * c_.l2;
    *w_.a = c_.eta / h;
    for (std::int64_t k = 0; k < w_.count; ++k) basis_.average(w_, k, slopes[k], h);
  }

  Composite c_;
  BlockColumns at_;
  std::int64_t sums_;
  Basis basis_;
  Coefficients w_;
  std::vector<double> factor_, R_, center_, pull_, beta_;
  ProximalNewton solver_;
};

struct SketchedAdaGradState {
  std::int64_t* counts;  // rounds, active features, dimension (1 + largest feature learned from)
  std::int64_t classes;  // 1: a real prediction and its loss; more: scores and the cross-entropy
  double* intercept;     // per class: value, root of its second moment, −Σg
  bool has_intercept;
};

template <class T, class Basis>
class SketchedAdaGrad {
 public:
  using Block = SketchedBlock<T, Basis>;

  SketchedAdaGrad(const Problem& problem, const Composite& composite, const SketchedAdaGradState& state,
                  const Table<T>& table, std::vector<Block> blocks)
      : problem_(problem),
        c_(composite),
        s_(state),
        table_(table),
        blocks_(std::move(blocks)),
        q_(table.stride),
        step_(table.stride),
        slopes_(state.classes) {}

  // out: rows × classes; the scores before each row was learned.
  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, s_.classes,
               [this](const Row& row, double y, double h, double* p) { learn_row(row, y, h, p); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, s_.classes, [&](const Row& row, double* p) { peek(row, features, p); });
  }

  std::int64_t active() const { return s_.counts[kActive]; }
  std::int64_t settled_width() const { return table_.stride; }

  // Copies of the rows of all active features, up to date.
  void settled(T* out) {
    for (std::int64_t i = 0; i < s_.counts[kActive]; ++i) {
      T* row = out + i * table_.stride;
      std::copy_n(table_.row(table_.active[i]), table_.stride, row);
      if constexpr (Basis::kLazy)
        for (Block& block : blocks_) block.prepare(row);
    }
  }

 private:
  enum { kRounds, kActive, kDimension };

  void learn_row(const Row& row, double label, double weight, double* scores) {
    if (weight == 0) return peek(row, std::numeric_limits<std::int64_t>::max(), scores);
    if constexpr (Basis::kLazy)
      for (std::int64_t k = 0; k < row.size(); ++k)
        for (Block& block : blocks_) block.prepare(table_.row(row.index()[k]));
    look(table_, row.index(), row.value(), row.size(), scores);
    enter(row);
    std::fill(step_.begin(), step_.end(), 0.0);
    for (Block& block : blocks_)
      block.open(table_, s_.counts[kActive], {row.index(), x_.data(), row.size()}, step_.data());
    if (s_.classes > 1) {
      cross_entropy(scores, s_.classes, static_cast<std::int64_t>(label), weight, slopes_.data());
    } else {
      const double bounded = problem_.clipped(scores[0]);
      if (bounded != scores[0]) project(scores[0] - bounded);
      scores[0] = bounded;
      slopes_[0] = weight * problem_.loss.derivative(bounded, label);
    }

    const std::int64_t t = ++s_.counts[kRounds];
    for (std::int64_t b = 0, first = 0; b < std::ssize(blocks_); first += blocks_[b++].weights()) {
      const double r = c_.of_data ? 1.0 : slopes_[first];
      blocks_[b].take(r, step_.data());
      if (c_.l1 == 0) blocks_[b].learn(&slopes_[first], t);
      if (c_.averaging && (Basis::kSums || c_.l1 > 0)) blocks_[b].write_sums(&slopes_[first], step_.data());
      blocks_[b].write(step_.data());
    }
    if (s_.has_intercept) learn_intercepts();
    table_.scatter(row.index(), x_.data(), row.size(), step_.data());
    for (Block& block : blocks_) block.finish(table_, s_.counts[kActive]);
    if (c_.l1 > 0) solve(row, t);
  }

  // The intercept is a block of the metric of its own, one number wide, and pays no penalty.
  void learn_intercepts() {
    for (std::int64_t k = 0; k < s_.classes; ++k) {
      double* at = s_.intercept + 3 * k;
      at[1] = std::hypot(at[1], c_.of_data ? 1.0 : slopes_[k]);
      at[2] -= slopes_[k];
      const double h = c_.sigma + at[1];
      at[0] = c_.averaging ? c_.eta * at[2] / h : at[0] - c_.eta * slopes_[k] / h;
    }
  }

  void solve(const Row& row, std::int64_t t) {
    dense_.resize(static_cast<std::size_t>(s_.counts[kDimension]));
    for (std::int64_t k = 0; k < row.size(); ++k) dense_[row.index()[k]] = static_cast<double>(x_[k]);
    std::int64_t first = 0;
    for (Block& block : blocks_) {
      block.solve(table_, s_.counts[kActive], &slopes_[first], t, dense_.data());
      first += block.weights();
    }
    for (std::int64_t k = 0; k < row.size(); ++k) dense_[row.index()[k]] = 0.0;
  }

  // To where |βᵀx| ≤ C, the shortest way in the norm of H.
  void project(double excess) {
    double* at = s_.intercept;
    const double free = s_.has_intercept ? 1.0 / (c_.sigma + at[1]) : 0.0;
    const double step = excess / (blocks_[0].quadratic() + free);
    at[0] -= step * free;
    blocks_[0].move(step);
  }

  // Scores of a row, nothing changed. Features beyond the table have no weight.
  void peek(const Row& row, std::int64_t features, double* scores) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    Table<T> table = table_;
    const std::int64_t* index = row.index();
    if constexpr (Basis::kLazy) {  // work put off is done on copies
      copies_.resize(static_cast<std::size_t>(n * table_.stride));
      places_.resize(static_cast<std::size_t>(n));
      table.rows = copies_.data();
      for (std::int64_t k = 0; k < n; ++k) {
        places_[k] = k;
        std::copy_n(table_.row(index[k]), table_.stride, table.row(k));
        for (Block& block : blocks_) block.prepare(table.row(k));
      }
      index = places_.data();
    }
    look(table, index, row.value(), n, scores);
    if (s_.classes == 1) scores[0] = problem_.clipped(scores[0]);
  }

  void look(const Table<T>& table, const std::int64_t* index, const double* value, std::int64_t n,
            double* scores) {
    x_.resize(static_cast<std::size_t>(n));
    xx_ = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      x_[k] = static_cast<T>(value[k]);
      xx_ += static_cast<double>(x_[k]) * static_cast<double>(x_[k]);
    }
    table.gather(index, x_.data(), n, q_.data());
    bool doubtful = false;
    for (Block& block : blocks_) {
      block.begin(q_.data(), xx_);
      doubtful = doubtful || block.doubtful();
    }
    if (doubtful) {
      table.gather_exactly(index, x_.data(), n, q_.data());
      for (Block& block : blocks_) block.begin(q_.data(), xx_);
    }
    std::int64_t output = 0;
    for (const Block& block : blocks_) {
      for (std::int64_t k = 0; k < block.weights(); ++k, ++output)
        scores[output] = block.score(k) + s_.intercept[3 * output];
    }
  }

  // Features met for the first time get a place in the list of active ones.
  void enter(const Row& row) {
    for (std::int64_t k = 0; k < row.size(); ++k) {
      T& scale = table_.row(row.index()[k])[Table<T>::kScale];
      if (scale != T(0)) continue;
      table_.activate(row.index()[k], s_.counts[kActive]);
      scale = T(1);
    }
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
  }

  Problem problem_;
  Composite c_;
  SketchedAdaGradState s_;
  Table<T> table_;
  std::vector<Block> blocks_;
  std::vector<double> q_, step_, slopes_, dense_;
  std::vector<T> x_, copies_;
  std::vector<std::int64_t> places_;
  double xx_ = 0;
};

}  // namespace skn
