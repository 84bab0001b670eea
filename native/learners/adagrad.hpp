// AdaGrad with a diagonal metric H = σI + diag(Σ g²)^½: the classical first-order reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/newton_problem.hpp"
#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/table.hpp"

namespace skn {

struct AdaGradState {
  std::int64_t* counts;  // rounds, active features, dimension
  double* intercept;     // value, √Σg²
  double eta, sigma;
  bool has_intercept;
};

template <class T>
class AdaGrad {
 public:
  AdaGrad(const Problem& problem, const AdaGradState& state, const Table<T>& table)
      : problem_(problem), s_(state), table_(table) {}

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, 1,
               [this](const Row& row, double y, double h, double* p) { *p = learn_row(row, y, h); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    predict_rows(rows, out, 1,
                 [&](const Row& row, double* p) { *p = problem_.clipped(score(row, features)); });
  }

 private:
  enum { kRounds, kActive, kDimension };

  double score(const Row& row, std::int64_t features) const {
    double sum = s_.intercept[0];
    for (std::int64_t k = 0; k < row.size() && row.index()[k] < features; ++k)
      sum += row.value()[k] * static_cast<double>(table_.row(row.index()[k])[0]);
    return sum;
  }

  // √Σg² after one more g, within the range of the table; squares themselves would leave float32 soon.
  static double grown(double root, double g) {
    return std::min(std::hypot(root, g), static_cast<double>(std::numeric_limits<T>::max()));
  }

  double learn_row(const Row& row, double label, double weight) {
    const double s = score(row, INT64_MAX), p = problem_.clipped(s);
    if (weight == 0) return p;
    const double projection = p == s ? 0.0 : (s - p) / quadratic(row);
    const double slope = weight * problem_.loss.derivative(p, label);
    ++s_.counts[kRounds];
    for (std::int64_t k = 0; k < row.size(); ++k) {
      T* r = table_.row(row.index()[k]);
      if (r[1] == T(0)) {
        table_.activate(row.index()[k], s_.counts[kActive]);
        r[1] = std::numeric_limits<T>::min();  // 0 means never seen
      }
      const double x = row.value()[k], g = slope * x;
      double w = static_cast<double>(r[0]);
      w -= projection * x / (s_.sigma + static_cast<double>(r[1]));
      r[1] = static_cast<T>(grown(static_cast<double>(r[1]), g));
      w -= s_.eta * g / (s_.sigma + static_cast<double>(r[1]));
      r[0] = static_cast<T>(w);
    }
    if (s_.has_intercept) {
      double& root = s_.intercept[1];
      s_.intercept[0] -= projection / (s_.sigma + root);
      root = grown(root, slope);
      s_.intercept[0] -= s_.eta * slope / (s_.sigma + root);
    }
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
    return p;
  }

  double quadratic(const Row& row) const {  // xᵀH⁻¹x
    double sum = s_.has_intercept ? 1.0 / (s_.sigma + s_.intercept[1]) : 0.0;
    for (std::int64_t k = 0; k < row.size(); ++k)
      sum +=
          row.value()[k] * row.value()[k] / (s_.sigma + static_cast<double>(table_.row(row.index()[k])[1]));
    return sum;
  }

  Problem problem_;
  AdaGradState s_;
  Table<T> table_;
};

}  // namespace skn
