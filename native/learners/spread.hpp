// How far labels of a row are from their predictions, by its features, as a share of how far they usually
// are.
//
// Least squares of √|r| on the features, with the moments that a bank keeps anyway (bank_full.hpp): roots
// tame heavy tails, scale with the labels, and need no logarithm of 0. What it says of a row, f, is divided
// by its mean over rows, in proportion to their √|r|. Widths follow f^1.5, not f²: between widths that are
// equal for all rows and those in proportion to the noise are the ones whose mean is least at a given
// coverage.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace skn {

struct Spread {
  // Of a place: Σ √|r| x, rows weighed as in the moments, and its weight in f.
  enum { kSum, kWeight, kNumbers };

  static double target(double residual) { return std::sqrt(std::abs(residual)); }

  // Of f, which is 0 where nothing is known.
  static double stretch(double f) {
    if (f == 0) return 1.0;
    const double held = std::isfinite(f) ? std::clamp(f, 1.0 / kMost, kMost) : 1.0;
    return held * std::sqrt(held);
  }

  // Weights in the unit of roots become such that the mean of f is 1.
  static void keep(double* spread, std::int64_t places, const double* weights) {
    double mean = 0;
    for (std::int64_t i = 0; i < places; ++i) mean += weights[i] * spread[i * kNumbers + kSum];
    const double per = spread[kSum] / mean;
    const bool usable = mean > 0 && per > 0 && std::isfinite(per);
    for (std::int64_t i = 0; i < places; ++i)
      spread[i * kNumbers + kWeight] = usable ? std::clamp(weights[i] * per, -kHuge, kHuge) : 0.0;
  }

 private:
  static constexpr double kMost = 4.0;
  static constexpr double kHuge = 1e150;
};

}  // namespace skn
