// What least squares begins with: for each feature as much as one row that has it, by its mean size.
//
// With a constant it should matter little where features are counted from. So the constant has no ridge of
// its own, but the mean of all rows counts as one row more with the target 0; and the ridge of a feature is
// less by as much of it as its mean explains. A feature of 50 ± 0.3 would else have a ridge of 50² for a
// spread of 0.3².
//
// Least squares with d places that have learned n rows is off by d/n of the noise, however long or short its
// directions are: with n > d the ridge falls as (d/n)², so that it does not hide the short ones.
#pragma once

#include <algorithm>
#include <cmath>

namespace skn {

// How much of a row the ridge is, where so many rows have what it is for.
inline double of_a_row(double rows, double places) {
  const double few = std::min(1.0, places / rows);
  return few * few;
}

// The share of Σ x² that is not the mean's; a few rows tell little of it. No rows without a constant.
inline double spread_share(double squares, double sum, double rows) {
  if (!(squares > 0 && rows > 0)) return 1.0;
  return std::clamp(1.0 - sum / squares * (sum / rows), 1.0 / std::max(1.0, rows), 1.0);
}

// Of a feature with the square of its mean size, Σ x², Σ x and the number of rows.
inline double mean_ridge(double square, double squares, double sum, double rows, double places) {
  if (!(squares > 0)) return square;
  return square * spread_share(squares, sum, rows) * of_a_row(squares / square, places);
}

}  // namespace skn
