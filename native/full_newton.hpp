// The exact Online Newton Step (SON Equations 1–2): A⁻¹ is kept by Sherman–Morrison, O(d²) per row.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "problem.hpp"
#include "rows.hpp"

namespace skn {

// Coordinate 0 is the intercept, coordinate i + 1 is feature i. A is kept beside its inverse P, so that
// Python can invert it afresh now and then: Sherman–Morrison alone drifts.
struct FullNewtonState {
  std::int64_t* counts;  // rounds, dimension
  double *w, *P, *A;     // capacity, capacity², capacity²
  std::int64_t capacity;
  bool intercept;
};

class FullNewton {
 public:
  FullNewton(const Problem& problem, const FullNewtonState& state)
      : problem_(problem), s_(state), Px_(static_cast<std::size_t>(state.capacity)) {}

  void learn(const Rows& rows, std::int64_t begin, std::int64_t end, const double* labels,
             const double* weights, double* out) {
    stream(
        rows, begin, end, [](const Row&) {},
        [&](const Row& row, std::int64_t i) {
          out[i] = learn_row(row, labels[i], weights == nullptr ? 1.0 : weights[i]);
        });
  }

  void predict(const Rows& rows, double* out) const {
    Row row;
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      rows.load(i, row);
      out[i] = problem_.clipped(score(row));
    }
  }

 private:
  enum { kRounds, kDimension };

  double score(const Row& row) const {
    double sum = s_.intercept ? s_.w[0] : 0.0;
    for (std::int64_t k = 0; k < row.size() && row.index()[k] + 1 < s_.capacity; ++k)
      sum += row.value()[k] * s_.w[row.index()[k] + 1];
    return sum;
  }

  double learn_row(const Row& row, double label, double weight) {
    const double before = score(row), p = problem_.clipped(before);
    if (weight == 0) return p;
    if (row.size() > 0 && row.index()[row.size() - 1] >= s_.counts[kDimension])
      s_.counts[kDimension] = row.index()[row.size() - 1] + 1;
    const std::int64_t d = s_.counts[kDimension] + 1;
    coordinates(row);
    const double quadratic = multiply(d);
    if (p != before) move((before - p) / quadratic, d);

    const auto t = static_cast<double>(++s_.counts[kRounds]);
    const double slope = weight * problem_.loss.derivative(p, label);
    if (slope == 0 || !(quadratic > 0)) return p;
    const double r = slope * problem_.sketch_scale(t, weight), shrink = 1.0 + r * r * quadratic;
    for (std::int64_t i = 0; i < d; ++i) {
      const double f = r * r / shrink * Px_[i];
      double* __restrict P = s_.P + i * s_.capacity;
      for (std::int64_t j = 0; j < d; ++j) P[j] -= f * Px_[j];
    }
    for (std::size_t a = 0; a < at_.size(); ++a)
      for (std::size_t b = 0; b < at_.size(); ++b)
        s_.A[at_[a] * s_.capacity + at_[b]] += r * r * x_[a] * x_[b];
    move(slope / shrink, d);
    return p;
  }

  void coordinates(const Row& row) {
    at_.clear();
    x_.clear();
    if (s_.intercept) {
      at_.push_back(0);
      x_.push_back(1.0);
    }
    for (std::int64_t k = 0; k < row.size(); ++k) {
      at_.push_back(row.index()[k] + 1);
      x_.push_back(row.value()[k]);
    }
  }

  double multiply(std::int64_t d) {  // Px, and returns xᵀPx
    std::fill(Px_.begin(), Px_.begin() + d, 0.0);
    for (std::size_t k = 0; k < at_.size(); ++k) {
      const double* __restrict P = s_.P + at_[k] * s_.capacity;
      for (std::int64_t j = 0; j < d; ++j) Px_[j] += x_[k] * P[j];
    }
    double sum = 0;
    for (std::size_t k = 0; k < at_.size(); ++k) sum += x_[k] * Px_[at_[k]];
    return std::fmax(sum, 0.0);
  }

  void move(double step, std::int64_t d) {
    for (std::int64_t j = 0; j < d; ++j) s_.w[j] -= step * Px_[j];
  }

  Problem problem_;
  FullNewtonState s_;
  std::vector<double> Px_, x_;
  std::vector<std::int64_t> at_;
};

}  // namespace skn
