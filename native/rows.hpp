// Rows of any input, brought to one form: sorted, distinct feature indices with non-zero values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace skn {

// One example: parallel arrays of feature indices (strictly increasing) and values (never zero).
class Row {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(index_.size()); }
  const std::int64_t* index() const { return index_.data(); }
  const double* value() const { return value_.data(); }

  void clear() {
    index_.clear();
    value_.clear();
    sorted_ = true;
  }

  void add(std::int64_t index, double value) {
    if (value == 0.0) return;
    if (!index_.empty() && index <= index_.back()) sorted_ = false;
    index_.push_back(index);
    value_.push_back(value);
  }

  // Sorts and sums duplicates, so that one feature is one coordinate whatever the input looked like.
  void finish() {
    if (sorted_) return;
    std::vector<std::int64_t> order(index_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](auto a, auto b) { return index_[a] < index_[b]; });
    std::vector<std::int64_t> index;
    std::vector<double> value;
    for (std::int64_t k : order) {
      if (!index.empty() && index.back() == index_[k]) {
        value.back() += value_[k];
      } else {
        index.push_back(index_[k]);
        value.push_back(value_[k]);
      }
    }
    clear();
    for (std::size_t k = 0; k < index.size(); ++k) add(index[k], value[k]);
  }

 private:
  std::vector<std::int64_t> index_;
  std::vector<double> value_;
  bool sorted_ = true;
};

// What a learner must know about a batch before it touches its state.
struct Scan {
  std::int64_t largest_index = -1;
  std::int64_t widest_row = 0;
  std::int64_t bad_row = -1;  // first row with NaN, infinity, a value beyond the limit or a negative index
  std::int64_t bad_index = -1;
  double bad_value = 0.0;
};

class Rows {
 public:
  virtual ~Rows() = default;
  virtual std::int64_t count() const = 0;
  virtual void load(std::int64_t r, Row& row) const = 0;
  virtual Scan scan(double limit) const = 0;
};

template <class Index, class Value>
class CsrRows final : public Rows {
 public:
  CsrRows(const std::int64_t* indptr, const Index* indices, const Value* values, std::int64_t count)
      : indptr_(indptr), indices_(indices), values_(values), count_(count) {}

  std::int64_t count() const override { return count_; }

  void load(std::int64_t r, Row& row) const override {
    row.clear();
    for (std::int64_t k = indptr_[r]; k < indptr_[r + 1]; ++k)
      row.add(static_cast<std::int64_t>(indices_[k]), static_cast<double>(values_[k]));
    row.finish();
  }

  Scan scan(double limit) const override {
    Scan s;
    for (std::int64_t r = 0; r < count_; ++r) {
      s.widest_row = std::max(s.widest_row, indptr_[r + 1] - indptr_[r]);
      for (std::int64_t k = indptr_[r]; k < indptr_[r + 1]; ++k) {
        const auto i = static_cast<std::int64_t>(indices_[k]);
        const auto v = static_cast<double>(values_[k]);
        if (!(std::abs(v) <= limit) || i < 0) {
          s.bad_row = r, s.bad_index = i, s.bad_value = v;
          return s;
        }
        s.largest_index = std::max(s.largest_index, i);
      }
    }
    return s;
  }

 private:
  const std::int64_t* indptr_;
  const Index* indices_;
  const Value* values_;
  std::int64_t count_;
};

template <class Value>
class DenseRows final : public Rows {
 public:
  DenseRows(const Value* values, std::int64_t count, std::int64_t width)
      : values_(values), count_(count), width_(width) {}

  std::int64_t count() const override { return count_; }

  void load(std::int64_t r, Row& row) const override {
    row.clear();
    const Value* x = values_ + r * width_;
    for (std::int64_t i = 0; i < width_; ++i) row.add(i, static_cast<double>(x[i]));
  }

  Scan scan(double limit) const override {
    Scan s;
    s.largest_index = count_ > 0 ? width_ - 1 : -1;
    s.widest_row = width_;
    for (std::int64_t k = 0; k < count_ * width_; ++k) {
      const auto v = static_cast<double>(values_[k]);
      if (!(std::abs(v) <= limit)) {
        s.bad_row = k / width_, s.bad_index = k % width_, s.bad_value = v;
        return s;
      }
    }
    return s;
  }

 private:
  const Value* values_;
  std::int64_t count_;
  std::int64_t width_;
};

// Calls learn(row, i) for the rows [begin, end) in order; ahead(row) is told of each row one step early, so that
// it can be prefetched.
template <class Ahead, class Learn>
void stream(const Rows& rows, std::int64_t begin, std::int64_t end, Ahead ahead, Learn learn) {
  Row row, next;
  if (begin < end) rows.load(begin, next);
  for (std::int64_t i = begin; i < end; ++i) {
    std::swap(row, next);
    if (i + 1 < end) {
      rows.load(i + 1, next);
      ahead(next);
    }
    learn(row, i);
  }
}

}  // namespace skn
