// Which labels can be learned, and what the learner gets for each: the one rule, whoever brings the labels.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/rows.hpp"

namespace skn {

// Numbers, as they are. Beyond ±kLargestValue there is no room left for squares and sums.
struct NumberLabels {
  double low, high;

  bool fits(double y) const { return (std::abs(y) <= kLargestValue) & (y >= low) & (y <= high); }
  double code(double y) const { return y; }
};

// −1 and +1, as they are.
struct SignLabels {
  bool fits(double y) const { return std::abs(y) == 1.0; }
  double code(double y) const { return y; }
};

// Anything: +1 for one label, −1 for all others.
struct PositiveLabels {
  double positive;

  bool fits(double y) const { return y == y; }
  double code(double y) const { return y == positive ? 1.0 : -1.0; }
};

// Classes 1 to K or 0 to K − 1: class `label mod K`, so that 1 to K − 1 mean the same in both ways of
// counting.
struct ClassLabels {
  double count;
  int zero = -1;  // is the remaining class 0 (1) or K (0)? −1 as long as neither has been seen

  bool fits(double y) const {
    return (y >= 0.0) & (y <= count) & (y == std::floor(y)) & ((zero < 0) | (y != (zero == 1 ? count : 0.0)));
  }
  double code(double y) const { return ((y == count) | (y == 0.0)) ? 0.0 : y; }

  // The first label that is 0 or K says how classes are counted.
  void learn_zero(const double* y, std::size_t n) {
    for (std::size_t i = 0; i < n && zero < 0; ++i)
      if ((y[i] == 0.0) | (y[i] == count)) zero = y[i] == 0.0;
  }
};

using LabelRule = std::variant<NumberLabels, SignLabels, PositiveLabels, ClassLabels>;

inline bool label_fits(const LabelRule& rule, double y) {
  return std::visit([y](const auto& of) { return of.fits(y); }, rule);
}

// The rows whose label does not fit, in order.
inline std::vector<std::int64_t> unfit_rows(const LabelRule& rule, const double* y, std::size_t n) {
  return std::visit(
      [y, n](const auto& of) {
        std::size_t unfit = 0;
        for (std::size_t i = 0; i < n; ++i) unfit += !of.fits(y[i]);  // without a branch: nearly always 0
        std::vector<std::int64_t> rows;
        if (unfit == 0) return rows;
        rows.reserve(unfit);
        for (std::size_t i = 0; i < n; ++i)
          if (!of.fits(y[i])) rows.push_back(static_cast<std::int64_t>(i));
        return rows;
      },
      rule);
}

// Are labels learned as they are?
inline bool keeps_labels(const LabelRule& rule) {
  return std::holds_alternative<NumberLabels>(rule) || std::holds_alternative<SignLabels>(rule);
}

// What the learner gets for each label; NaN for one that does not fit.
inline void code_labels(const LabelRule& rule, const double* y, std::size_t n, double* out) {
  std::visit(
      [=](const auto& of) {
        for (std::size_t i = 0; i < n; ++i) out[i] = of.fits(y[i]) ? of.code(y[i]) : std::nan("");
      },
      rule);
}

}  // namespace skn
