// Row after row: the loops that all kernels with a feature table share.
#pragma once

#include <cstdint>

#include "core/rows.hpp"

namespace skn {

inline constexpr std::int64_t kNear = 1 << 18;        // bytes of a table
inline constexpr std::int64_t kNearPlaces = 1 << 17;  // features of a packed one

// Calls learn(row, label, weight, out of the row) for each row in order, its successors' features prefetched:
// two rows early, or in a packed table their places so early, and what is there one row early. What fits the
// nearest caches is there anyway. `soon` is told of rows of a packed table one row early.
template <class Table, class Soon, class Learn>
void learn_rows(const Rows& rows, const Table& table, const double* labels, const double* weights,
                double* out, std::int64_t outputs, Soon soon, Learn learn) {
  const auto ahead = [&table, &soon, next = Row()](const Row& row) mutable {
    if (table.bytes() <= kNear) return;
    if (table.places == nullptr) return table.prefetch(row.index(), row.size());
    if (table.features > kNearPlaces) table.prefetch_places(row.index(), row.size());
    soon(next);
    next = row;
  };
  stream(rows, 0, rows.count(), ahead, [&](const Row& row, std::int64_t i) {
    __builtin_prefetch(labels + i + kSoon);
    __builtin_prefetch(out + (i + kSoon) * outputs, 1);
    learn(row, labels[i], weights == nullptr ? 1.0 : weights[i], out + i * outputs);
  });
}

template <class Table, class Learn>
void learn_rows(const Rows& rows, const Table& table, const double* labels, const double* weights,
                double* out, std::int64_t outputs, Learn learn) {
  const auto soon = [&table](const Row& row) { table.prefetch_packed(row.index(), row.size()); };
  learn_rows(rows, table, labels, weights, out, outputs, soon, learn);
}

// Calls predict(row, out of the row) for each row.
template <class Predict>
void predict_rows(const Rows& rows, double* out, std::int64_t outputs, Predict predict) {
  RowReader reader(rows);
  for (std::int64_t i = 0; i < rows.count(); ++i) predict(reader[i], out + i * outputs);
}

}  // namespace skn
