// Row after row: the loops that all kernels with a feature table share.
#pragma once

#include <cstdint>

#include "core/rows.hpp"

namespace skn {

// Calls learn(row, label, weight, out of the row) for each row in order, its successor's features prefetched.
template <class Table, class Learn>
void learn_rows(const Rows& rows, const Table& table, const double* labels, const double* weights,
                double* out, std::int64_t outputs, Learn learn) {
  stream(
      rows, 0, rows.count(), [&table](const Row& next) { table.prefetch(next.index(), next.size()); },
      [&](const Row& row, std::int64_t i) {
        learn(row, labels[i], weights == nullptr ? 1.0 : weights[i], out + i * outputs);
      });
}

// Calls predict(row, out of the row) for each row.
template <class Predict>
void predict_rows(const Rows& rows, double* out, std::int64_t outputs, Predict predict) {
  RowReader reader(rows);
  for (std::int64_t i = 0; i < rows.count(); ++i) predict(reader[i], out + i * outputs);
}

}  // namespace skn
