// Rows of any input, brought to one form: sorted, distinct feature indices with non-zero values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace skn {

// One example: parallel arrays of feature indices (strictly increasing) and values (never zero), its own or
// those of the input.
class Row {
 public:
  Row() = default;
  Row(Row&&) = default;  // vectors take their memory along, so views stay valid; not so in copies
  Row& operator=(Row&&) = default;

  std::int64_t size() const { return size_; }
  const std::int64_t* index() const { return index_view_; }
  const double* value() const { return value_view_; }

  void clear(std::int64_t most) {
    if (most > static_cast<std::int64_t>(index_.size())) {
      index_.resize(static_cast<std::size_t>(most));
      value_.resize(static_cast<std::size_t>(most));
    }
    index_view_ = index_.data();
    value_view_ = value_.data();
    size_ = 0;
    last_ = -1;
    sorted_ = true;
  }

  // The usual row, sorted and without zeros, is copied only if its numbers are of other types. If it is not
  // known to be one, it is looked at, in a loop that the compiler can vectorise.
  template <class Index, class Value>
  void assign(const Index* index, const Value* value, std::int64_t n, bool known = false) {
    if (known || clean(index, value, n)) {
      if constexpr (std::is_same_v<Index, std::int64_t> && std::is_same_v<Value, double>) {
        index_view_ = index;
        value_view_ = value;
      } else {
        clear(n);
        for (std::int64_t k = 0; k < n; ++k) {
          index_[k] = static_cast<std::int64_t>(index[k]);
          value_[k] = static_cast<double>(value[k]);
        }
      }
      size_ = n;
      return;
    }
    clear(n);
    for (std::int64_t k = 0; k < n; ++k)
      add(static_cast<std::int64_t>(index[k]), static_cast<double>(value[k]));
    finish();
  }

  // A dense row: its indices are 0, 1, 2, … unless a value is zero.
  template <class Value>
  void assign(const Value* value, std::int64_t n) {
    clear(n);
    bool clean = true;
    for (std::int64_t k = 0; k < n; ++k) {
      index_[k] = k;
      value_[k] = static_cast<double>(value[k]);
      clean &= value[k] != Value(0);
    }
    size_ = n;
    if (clean) return;
    size_ = 0;
    for (std::int64_t k = 0; k < n; ++k) add(k, static_cast<double>(value[k]));
  }

  // At most as often as clear() was told.
  void add(std::int64_t index, double value) {
    index_[size_] = index;
    value_[size_] = value;
    size_ += value != 0.0;  // without a branch: the next one overwrites a zero
    sorted_ &= index > last_;
    last_ = index;
  }

  // Sorts and sums duplicates, so that one feature is one coordinate whatever the input looked like.
  void finish() {
    if (sorted_) return;
    std::vector<std::pair<std::int64_t, double>> pairs;
    for (std::int64_t k = 0; k < size_; ++k) pairs.emplace_back(index_[k], value_[k]);
    std::stable_sort(pairs.begin(), pairs.end(), [](auto& a, auto& b) { return a.first < b.first; });
    size_ = 0;
    for (std::size_t k = 0; k < pairs.size();) {
      const std::int64_t index = pairs[k].first;
      double sum = 0;
      for (; k < pairs.size() && pairs[k].first == index; ++k) sum += pairs[k].second;
      add(index, sum);
    }
  }

 private:
  template <class Index, class Value>
  static bool clean(const Index* index, const Value* value, std::int64_t n) {
    if (n == 0) return true;
    std::int64_t bad = (index[0] < 0) | (value[0] == Value(0));
    for (std::int64_t k = 1; k < n; ++k) bad |= (index[k - 1] >= index[k]) | (value[k] == Value(0));
    return bad == 0;
  }

  std::vector<std::int64_t> index_;
  std::vector<double> value_;
  const std::int64_t* index_view_ = nullptr;
  const double* value_view_ = nullptr;
  std::int64_t size_ = 0, last_ = -1;
  bool sorted_ = true;
};

// What a learner must know about a batch before it touches its state.
// Beyond this a square, and the square of a square, could leave the range of float64.
inline constexpr double kLargestValue = 1e30;

struct Scan {
  std::int64_t largest_index = -1;
  std::int64_t widest_row = 0;
  std::int64_t bad_row = -1;  // first row with NaN, infinity, a value beyond the limit or a negative index
  std::int64_t bad_index = -1;
  double bad_value = 0.0;
  bool clean = false;  // all rows are sorted, without duplicates and zeros
};

template <class Value>
bool within(Value value, double limit) {
  return std::abs(static_cast<double>(value)) <= limit;  // NaN is not
}

class Rows {
 public:
  virtual ~Rows() = default;
  virtual std::int64_t count() const = 0;
  virtual void load(std::int64_t r, Row& row) const = 0;
  virtual Scan scan(double limit) const = 0;
  virtual std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const = 0;
  virtual void trust() {}  // a scan found them clean
};

template <class Index, class Value>
class CsrRows final : public Rows {
 public:
  CsrRows(const std::int64_t* indptr, const Index* indices, const Value* values, std::int64_t count)
      : indptr_(indptr), indices_(indices), values_(values), count_(count) {}

  std::int64_t count() const override { return count_; }

  void load(std::int64_t r, Row& row) const override {
    if (clean_) prefetch(r);  // else values are looked at here
    row.assign(indices_ + indptr_[r], values_ + indptr_[r], indptr_[r + 1] - indptr_[r], clean_);
  }

  Scan scan(double limit) const override {
    Scan s;
    const std::int64_t first = indptr_[0], last = indptr_[count_];
    std::int64_t descents = 0;  // between rows there may be some
    for (std::int64_t r = 0; r < count_; ++r) {
      const std::int64_t begin = indptr_[r], size = indptr_[r + 1] - begin;
      s.widest_row = std::max(s.widest_row, size);
      if (size > 0 && begin > first) descents -= indices_[begin - 1] >= indices_[begin];
    }
    Index largest = -1;
    std::int64_t bad = 0, zeros = 0;  // counted, not noted: compilers make vectors of sums
    const auto look = [&](std::int64_t k) {
      largest = std::max(largest, indices_[k]);
      bad += !within(values_[k], limit) || indices_[k] < 0;
      zeros += values_[k] == Value(0);
    };
    if (first < last) look(first);
    for (std::int64_t k = first + 1; k < last; ++k) {  // without a way out, in whole vectors
      descents += indices_[k - 1] >= indices_[k];
      look(k);
    }
    s.clean = descents == 0 && zeros == 0;
    s.largest_index = static_cast<std::int64_t>(largest);
    if (bad > 0) locate(limit, s);
    return s;
  }

  std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const override {
    auto part = std::make_unique<CsrRows>(indptr_ + begin, indices_, values_, end - begin);
    part->clean_ = clean_;
    return part;
  }

  void trust() override { clean_ = true; }

 private:
  void prefetch(std::int64_t r) const {
    constexpr std::int64_t kLine = 64 / sizeof(Value);
    for (std::int64_t k = indptr_[r]; k < indptr_[r + 1]; k += kLine) __builtin_prefetch(values_ + k);
  }

  void locate(double limit, Scan& s) const {
    for (std::int64_t r = 0; r < count_; ++r) {
      for (std::int64_t k = indptr_[r]; k < indptr_[r + 1]; ++k) {
        if (within(values_[k], limit) && indices_[k] >= 0) continue;
        s.bad_row = r, s.bad_index = static_cast<std::int64_t>(indices_[k]);
        s.bad_value = static_cast<double>(values_[k]);
        return;
      }
    }
  }

  const std::int64_t* indptr_;
  const Index* indices_;
  const Value* values_;
  std::int64_t count_;
  bool clean_ = false;
};

template <class Value>
class DenseRows final : public Rows {
 public:
  DenseRows(const Value* values, std::int64_t count, std::int64_t width)
      : values_(values), count_(count), width_(width) {}

  std::int64_t count() const override { return count_; }

  void load(std::int64_t r, Row& row) const override { row.assign(values_ + r * width_, width_); }

  Scan scan(double limit) const override {
    Scan s;
    s.largest_index = count_ > 0 ? width_ - 1 : -1;
    s.widest_row = width_;
    const std::int64_t size = count_ * width_;
    bool good = true;
    for (std::int64_t k = 0; k < size; ++k) good &= within(values_[k], limit);
    if (good) return s;
    const Value* const bad =
        std::find_if(values_, values_ + size, [&](Value v) { return !within(v, limit); });
    s.bad_row = (bad - values_) / width_, s.bad_index = (bad - values_) % width_;
    s.bad_value = static_cast<double>(*bad);
    return s;
  }

  std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const override {
    return std::make_unique<DenseRows>(values_ + begin * width_, end - begin, width_);
  }

 private:
  const Value* values_;
  std::int64_t count_;
  std::int64_t width_;
};

// Calls learn(row, i) for the rows [begin, end) in order; ahead(row) is told of each row two steps early,
// so that it can be prefetched.
template <class Ahead, class Learn>
void stream(const Rows& rows, std::int64_t begin, std::int64_t end, Ahead ahead, Learn learn) {
  Row row, next, later;
  const auto load = [&](std::int64_t i, Row& into) {
    if (i >= end) return;
    rows.load(i, into);
    ahead(into);
  };
  load(begin, next);
  load(begin + 1, later);
  for (std::int64_t i = begin; i < end; ++i) {
    std::swap(row, next);
    std::swap(next, later);
    load(i + 2, later);
    learn(row, i);
  }
}

}  // namespace skn
