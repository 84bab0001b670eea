// SON for several classes, each against the rest, with one sketch for all: the gradients of a row are
// multiples of x, and a loss bends by no more than κ = max ℓ'', so A = αI + κ·(a sketch of Σxxᵀ) is a metric
// for every class.
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
#include "curvature/oja.hpp"
#include "learners/newton.hpp"

namespace skn {

struct SharedState {
  NewtonState newton;  // its intercept is not used
  double* intercepts;  // one per class
  double* metric;      // of all of them; 0 without intercepts
  std::int64_t classes;
};

template <class T>
class SharedNewton : private NewtonRows<T> {
  using Base = NewtonRows<T>;
  using Base::at_, Base::enter, Base::find, Base::follow_rows, Base::scale, Base::s_, Base::table_, Base::x_,
      Base::xx_, Base::kRounds, Base::kActive;

 public:
  // `kappa`: κ, the largest second derivative of the loss
  SharedNewton(const Loss& loss, double clip, double kappa, const SharedState& state, const Table<T>& table,
               Oja<T> sketch)
      : Base(state.newton, table),
        loss_(loss),
        clip_(clip),
        kappa_(kappa),
        shared_(state),
        sketch_(std::move(sketch)),
        q_(table.stride),
        step_(table.stride),
        slope_(state.classes) {}

  // Learns the rows in order; labels are the numbers of classes, and out has the scores before each update.
  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, classes(),
               [this](const Row& row, double y, double h, double* p) {
                 learn_row(row, static_cast<std::int64_t>(y), h, p);
               });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, classes(), [&](const Row& row, double* p) { peek(row, features, p); });
  }

 private:
  std::int64_t classes() const { return shared_.classes; }
  double free() const { return *shared_.metric > 0 ? 1.0 / *shared_.metric : 0.0; }

  void learn_row(const Row& row, std::int64_t label, double h, double* out) {
    if (h == 0) return peek(row, std::numeric_limits<std::int64_t>::max(), out);
    find(row.index(), row.size());
    look(row.value(), row.size(), out);
    enter(row);
    follow_rows();
    attend(row);
    std::fill(step_.begin(), step_.end(), 0.0);
    double quadratic = -1;
    for (std::int64_t k = 0; k < classes(); ++k) {
      const double score = out[k];
      out[k] = std::clamp(score, -clip_, clip_);
      if (out[k] != score) {  // to where |wᵀx| ≤ C, the shortest way in the norm of A (SON Lemma 1)
        if (quadratic < 0) quadratic = sketch_.quadratic() + free();
        move((score - out[k]) / quadratic, k);
      }
      slope_[k] = h * loss_.derivative(out[k], k == label ? 1.0 : -1.0);
    }
    ++s_.counts[kRounds];
    if (s_.diagonal) adapt(row, kappa_ * h);
    if (xx_ > 0) {
      sketch_.update(std::sqrt(kappa_ * h), step_.data() + Table<T>::kSketch, table_, s_.counts[kActive],
                     row.index(), row.size());
      for (std::int64_t k = 0; k < classes(); ++k) step_[sketch_.weight_column(k)] += sketch_.gained(k);
    }
    if (*shared_.metric > 0) *shared_.metric += kappa_ * h;
    for (std::int64_t k = 0; k < classes(); ++k)
      if (slope_[k] != 0) move(slope_[k], k);
    table_.scatter(at_, x_.data(), row.size(), step_.data());
    sketch_.finish(table_, s_.counts[kActive]);
  }

  // The scores of a row, nothing changed. Features beyond the table have no weight.
  void peek(const Row& row, std::int64_t features, double* out) {
    std::int64_t n = row.size();
    while (n > 0 && row.index()[n - 1] >= features) --n;
    find(row.index(), n);
    look(row.value(), n, out);
    for (std::int64_t k = 0; k < classes(); ++k) out[k] = std::clamp(out[k], -clip_, clip_);
  }

  void look(const double* value, std::int64_t n, double* out) {
    scale(table_, at_, value, n);
    table_.gather(at_, x_.data(), n, q_.data());
    sketch_.begin(q_.data() + Table<T>::kSketch, xx_, x_.data());
    if (out == nullptr) return;
    for (std::int64_t k = 0; k < classes(); ++k)
      out[k] = q_[sketch_.weight_column(k)] + sketch_.score(k) + shared_.intercepts[k];
  }

  void attend(const Row& row) {
    sketch_.attend(table_, s_.counts[kActive], row.index(), x_.data(), row.size());
  }

  // w_k ← w_k − step·A⁻¹x
  void move(double step, std::int64_t k) {
    step_[sketch_.weight_column(k)] += sketch_.move(step, k);
    shared_.intercepts[k] -= step * free();
  }

  // D gains what the row adds to the diagonal of κΣxxᵀ; steps made so far were in the old scale.
  void adapt(const Row& row, double weight) {
    table_.scatter(at_, x_.data(), row.size(), step_.data());
    std::fill(step_.begin(), step_.end(), 0.0);
    for (std::int64_t i = 0; i < row.size(); ++i) {
      T& root = table_.row(at_[i])[Table<T>::kScale];
      const double old = static_cast<double>(root), x = row.value()[i];
      root = static_cast<T>(std::sqrt(old * old + weight * x * x));
    }
    look(row.value(), row.size(), nullptr);
    attend(row);
  }

  Loss loss_;
  double clip_, kappa_;
  SharedState shared_;
  Oja<T> sketch_;
  std::vector<double> q_, step_, slope_;
};

}  // namespace skn
