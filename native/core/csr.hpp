// Rows as entries of two arrays, what a batch of them holds, and tidy copies of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/row_tidy.hpp"
#include "memory/buffer_pool.hpp"

namespace skn {

// What a learner must know about a batch before it touches its state.
struct Scan {
  std::int64_t largest_index = -1;
  std::int64_t widest_row = 0;
  std::int64_t bad_row = -1;  // first row with NaN, infinity, a value beyond the limit or a negative index
  std::int64_t bad_index = -1;
  double bad_value = 0.0;
  bool clean = false;    // all rows are sorted, without duplicates and zeros
  bool jumbled = false;  // most rows are not sorted
};

// Row r has the entries indptr[r] to indptr[r + 1], which the caller has checked, of two arrays.
template <class Index, class Value>
struct Csr {
  const std::int64_t* indptr = nullptr;
  const Index* indices = nullptr;
  const Value* values = nullptr;
  std::int64_t count = 0;

  Scan scan(double limit) const {
    Scan s;
    const std::int64_t first = indptr[0];
    Index largest = -1;
    std::int64_t descents = 0, bad = 0, zeros = 0;  // counted, not noted: compilers make vectors of sums
    const auto look = [&](std::int64_t k) {
      largest = std::max(largest, indices[k]);
      bad += !within(values[k], limit) || indices[k] < 0;
      zeros += values[k] == Value(0);
    };
    if (first < indptr[count]) look(first);
    for (std::int64_t part = 0; part < count; part += kPart) {
      const std::int64_t stop = std::min(part + kPart, count);
      for (std::int64_t k = std::max(indptr[part], first + 1); k < indptr[stop]; ++k) {  // in whole vectors
        descents += indices[k - 1] >= indices[k];
        look(k);
      }
      for (std::int64_t r = part; r < stop; ++r) {
        const std::int64_t begin = indptr[r], size = indptr[r + 1] - begin;
        s.widest_row = std::max(s.widest_row, size);
        if (size > 0 && begin > first)  // between rows there may be descents
          descents -= indices[begin - 1] >= indices[begin];
      }
    }
    s.clean = descents == 0 && zeros == 0;
    s.jumbled = 2 * descents > count;
    s.largest_index = static_cast<std::int64_t>(largest);
    if (bad > 0) locate(limit, s);
    return s;
  }

 private:
  static constexpr std::int64_t kPart = 256;  // rows that a cache has room for

  void locate(double limit, Scan& s) const {
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t k = indptr[r]; k < indptr[r + 1]; ++k) {
        if (within(values[k], limit) && indices[k] >= 0) continue;
        s.bad_row = r, s.bad_index = static_cast<std::int64_t>(indices[k]);
        s.bad_value = static_cast<double>(values[k]);
        return;
      }
    }
  }
};

// Copies of rows in the form that kernels read, made once and for all by whoever scans the rows: as a rule a
// thread that parses, while another one learns. Others may ask for them meanwhile, and then do without. Where
// only a few rows are not in that form, whoever learns from them copies these: all take as much memory again.
class TidyRows {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Of rows that nobody can change, the first of which has the number `begin`; no index is beyond `largest`.
  void make(const Csr<std::int64_t, double>& rows, std::int64_t begin, std::int64_t largest) {
    if (begun_.exchange(true)) return;
    const auto entries = static_cast<std::size_t>(rows.indptr[rows.count] - rows.indptr[0]);
    begin_ = begin;
    ends_.assign(static_cast<std::size_t>(rows.count) + 1, 0);
    indices_ = pooled<std::int64_t>(entries);
    values_ = pooled<double>(entries);
    RowTidy tidy;
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t from = rows.indptr[r], n = rows.indptr[r + 1] - from, at = ends_[r];
      std::copy_n(rows.indices + from, n, indices_.get() + at);
      std::copy_n(rows.values + from, n, values_.get() + at);
      ends_[r + 1] = at + tidy(indices_.get() + at, values_.get() + at, n, largest).size();
    }
    done_.store(true, std::memory_order_release);
  }

  // The rows from number `begin` on, if they are there.
  Csr<std::int64_t, double> rows(std::int64_t begin, std::int64_t count) const {
    if (!done()) return {};
    return {ends_.data() + (begin - begin_), indices_.get(), values_.get(), count};
  }

 private:
  std::vector<std::int64_t> ends_;
  Pooled<std::int64_t> indices_;
  Pooled<double> values_;
  std::int64_t begin_ = 0;
  std::atomic<bool> begun_ = false, done_ = false;
};

}  // namespace skn
