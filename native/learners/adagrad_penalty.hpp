// AdaGrad with a diagonal metric, composite: penalties, dual averaging, several classes. Everything has a
// closed form feature by feature, so a feature makes up for rounds that it missed when it is touched next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/newton_problem.hpp"
#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/table.hpp"
#include "learners/penalty.hpp"

namespace skn {

struct PenaltyAdaGradState {
  std::int64_t* counts;  // rounds, active features, dimension
  std::int64_t classes;  // 1: a real prediction and its loss; more: scores and the cross-entropy
  double* intercept;     // per class: value, √Σg², −Σg
  bool has_intercept;
};

// Columns of the table: (w, √Σg²) per class, then the round up to which w is known as high and low part
// (exact in float32 for 2⁴⁴ rounds). In dual averaging w is −Σg.
template <class T>
class PenaltyAdaGrad {
 public:
  PenaltyAdaGrad(const Problem& problem, const Composite& composite, const PenaltyAdaGradState& state,
                 const Table<T>& table)
      : problem_(problem), c_(composite), s_(state), table_(table), slopes_(state.classes) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, s_.classes,
               [this](const Row& row, double y, double h, double* p) { learn_row(row, y, h, p); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, s_.classes, [&](const Row& row, double* p) {
      score(row, features, p);
      if (s_.classes == 1) *p = problem_.clipped(*p);
    });
  }

  std::int64_t active() const { return s_.counts[kActive]; }
  std::int64_t classes() const { return s_.classes; }

  // The weights of all active features, class by class, as they are now.
  void weights(double* out) const {
    for (std::int64_t i = 0; i < s_.counts[kActive]; ++i)
      for (std::int64_t k = 0; k < s_.classes; ++k)
        out[i * s_.classes + k] = weight(table_.row(table_.active[i]), k);
  }

 private:
  enum { kRounds, kActive, kDimension };
  static constexpr std::int64_t kHigh = std::int64_t{1} << 20;

  double metric(const T* row, std::int64_t k) const { return c_.sigma + static_cast<double>(row[2 * k + 1]); }

  double weight(const T* row, std::int64_t k) const {
    const auto w = static_cast<double>(row[2 * k]);
    if (w == 0) return 0.0;
    const double h = metric(row, k);
    if (c_.averaging) {
      const double times = c_.times(s_.counts[kRounds]);
      return soft(c_.eta * w, times * c_.l1) / (h + times * c_.l2);
    }
    const T* at = row + 2 * s_.classes;
    const std::int64_t known = static_cast<std::int64_t>(at[0]) * kHigh + static_cast<std::int64_t>(at[1]);
    return shrunk(w, h, s_.counts[kRounds] - known);
  }

  // n rounds of |w| ← (h|w| − η·l1)/(h + η·l2) until it is 0.
  double shrunk(double w, double h, std::int64_t n) const {
    if (n == 0) return w;
    const double decay = c_.eta * c_.l2 / h, part = c_.eta * c_.l1 / h, times = static_cast<double>(n);
    double size = std::abs(w);
    if (decay == 0) {
      size -= times * part;
    } else {  // r^n|w| − part·(r + … + r^n), r = 1/(1 + decay)
      const double log_ratio = -std::log1p(decay), power = std::exp(times * log_ratio);
      size = power * size + part * std::expm1(times * log_ratio) / decay;
    }
    return size > 0 ? std::copysign(size, w) : 0.0;
  }

  void score(const Row& row, std::int64_t features, double* out) const {
    for (std::int64_t k = 0; k < s_.classes; ++k) out[k] = s_.intercept[3 * k];
    for (std::int64_t i = 0; i < row.size() && row.index()[i] < features; ++i) {
      const T* r = table_.row(row.index()[i]);
      for (std::int64_t k = 0; k < s_.classes; ++k) out[k] += row.value()[i] * weight(r, k);
    }
  }

  // √Σg² after one more g, within the range of the table.
  static double grown(double root, double g) {
    return std::min(std::hypot(root, g), static_cast<double>(std::numeric_limits<T>::max()));
  }

  void learn_row(const Row& row, double label, double importance, double* out) {
    score(row, std::numeric_limits<std::int64_t>::max(), out);
    double projection = 0;
    if (s_.classes == 1) {
      const double bounded = problem_.clipped(out[0]);
      if (bounded != out[0] && importance != 0) projection = (out[0] - bounded) / quadratic(row);
      out[0] = bounded;
    }
    if (importance == 0) return;
    if (s_.classes == 1)
      slopes_[0] = importance * problem_.loss.derivative(out[0], label);
    else
      cross_entropy(out, s_.classes, static_cast<std::int64_t>(label), importance, slopes_.data());
    for (std::int64_t i = 0; i < row.size(); ++i) {
      T* r = table_.row(row.index()[i]);
      if (r[1] == T(0)) enter(row.index()[i], r);
      for (std::int64_t k = 0; k < s_.classes; ++k) learn_weight(r, k, row.value()[i], projection);
    }
    const std::int64_t t = ++s_.counts[kRounds];
    for (std::int64_t i = 0; i < row.size() && !c_.averaging; ++i) {
      T* at = table_.row(row.index()[i]) + 2 * s_.classes;
      at[0] = static_cast<T>(t / kHigh);
      at[1] = static_cast<T>(t % kHigh);
    }
    if (s_.has_intercept) learn_intercepts(projection);
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
  }

  void enter(std::int64_t feature, T* row) {
    table_.activate(feature, s_.counts[kActive]);
    row[1] = std::numeric_limits<T>::min();  // 0 means never seen
  }

  void learn_weight(T* row, std::int64_t k, double x, double projection) {
    const double g = slopes_[k] * x;
    double w =
        c_.averaging ? static_cast<double>(row[2 * k]) - g : weight(row, k) - projection * x / metric(row, k);
    row[2 * k + 1] = static_cast<T>(grown(static_cast<double>(row[2 * k + 1]), c_.of_data ? x : g));
    if (!c_.averaging) {
      const double h = metric(row, k);
      w = soft(h * w - c_.eta * g, c_.eta * c_.l1) / (h + c_.eta * c_.l2);
    }
    row[2 * k] = static_cast<T>(w);
  }

  void learn_intercepts(double projection) {
    for (std::int64_t k = 0; k < s_.classes; ++k) {
      double* at = s_.intercept + 3 * k;
      at[0] -= projection / (c_.sigma + at[1]);
      at[1] = grown(at[1], c_.of_data ? 1.0 : slopes_[k]);
      at[2] -= slopes_[k];
      const double h = c_.sigma + at[1];
      at[0] = c_.averaging ? c_.eta * at[2] / h : at[0] - c_.eta * slopes_[k] / h;
    }
  }

  double quadratic(const Row& row) const {  // xᵀH⁻¹x
    double sum = s_.has_intercept ? 1.0 / (c_.sigma + s_.intercept[1]) : 0.0;
    for (std::int64_t i = 0; i < row.size(); ++i)
      sum += row.value()[i] * row.value()[i] / metric(table_.row(row.index()[i]), 0);
    return sum;
  }

  Problem problem_;
  Composite c_;
  PenaltyAdaGradState s_;
  Table<T> table_;
  std::vector<double> slopes_;
};

}  // namespace skn
