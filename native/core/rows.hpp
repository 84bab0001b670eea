// Rows of any input, brought to one form: sorted, distinct feature indices with non-zero values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/csr.hpp"
#include "core/row_tidy.hpp"

namespace skn {

// Arrays of one number per row pass so slowly that processors do not foresee what is read next: so many rows
// early it is asked for.
inline constexpr std::int64_t kSoon = 24;

// A few rows that follow one another. Another thread may change the input at any time, unless it is memory
// that is sealed, so what kernels use as indices are copies, and it is the copies that are checked.
class Block {
 public:
  static constexpr std::int64_t kRows = 256, kDenseEntries = 256;  // unless a single row has more
  static constexpr std::int64_t kEntries = 64;  // of sparse rows, which would wait for memory if read at once

  bool has(std::int64_t r) const {
    return begin_ <= r && r < begin_ + static_cast<std::int64_t>(rows_.size());
  }
  const Row& row(std::int64_t r) const { return rows_[static_cast<std::size_t>(r - begin_)]; }

  // Rows from `begin` on; the k-th has the entries ends[k] to ends[k + 1]. No feature may be beyond
  // `largest`. If a scan has found them `clean`, that is, sorted, without duplicates and zeros, only indices
  // are looked at.
  template <class Index, class Value>
  void assign(std::int64_t begin, const Index* index, const Value* value, const std::int64_t* ends,
              std::int64_t rows, std::int64_t largest, bool clean) {
    const std::int64_t first = ends[0], n = ends[rows] - first;
    start(begin, n);
    copy(index + first, index_.data(), n);
    const double* values = value_.data();
    if constexpr (std::is_same_v<Value, double>) {
      values = value + first;
      for (std::int64_t k = 0; k < n; k += 8) {  // those of rows to come, too, as a rule
        __builtin_prefetch(values + k);
        __builtin_prefetch(index + first + 2 * n + k);
      }
    } else {
      copy(value + first, value_.data(), n);
    }
    barrier();
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = ends[r] - first;
      rows_.emplace_back(index_.data() + at, values + at, ends[r + 1] - ends[r]);
    }
    if (clean && increase(n, largest)) return;
    for (Row& row : rows_) {
      if (tidy(row, largest)) continue;
      const std::int64_t at = row.index() - index_.data();
      if (values != value_.data()) copy(values + at, value_.data() + at, row.size());
      barrier();
      row = tidy_(index_.data() + at, value_.data() + at, row.size(), largest);
    }
  }

  // Dense rows: indices are 0, 1, 2, … unless a value is zero.
  template <class Value>
  void assign(std::int64_t begin, const Value* value, std::int64_t rows, std::int64_t width) {
    start(begin, rows * width);
    copy(value, value_.data(), rows * width);
    barrier();
    std::int64_t odd = 0;  // counted, not noted: compilers make vectors of sums
    for (std::int64_t k = 0; k < rows * width; ++k) odd += unusual(value_[k]);
    const std::int64_t step = odd ? width : 0;  // else all rows share the numbers of the first
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t* const index = index_.data() + r * step;
      if (odd || r == 0)
        for (std::int64_t k = 0; k < width; ++k) index[k] = k;
      double* const values = value_.data() + r * width;
      rows_.push_back(odd ? tidy_(index, values, width, width - 1) : Row(index, values, width));
    }
  }

 private:
  void start(std::int64_t begin, std::int64_t entries) {
    begin_ = begin;
    rows_.clear();
    const auto room = static_cast<std::size_t>(entries);
    if (room <= index_.size()) return;
    index_.resize(room);
    value_.resize(room);
  }

  template <class From, class To>
  static void copy(const From* from, To* to, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) to[k] = static_cast<To>(from[k]);
  }

  // What follows reads the copies, whatever the compiler knows about what they are copies of.
  static void barrier() { asm volatile("" : : : "memory"); }

  // Do the indices of each row increase strictly, from 0 or more to no more than `largest`?
  bool increase(std::int64_t n, std::int64_t largest) const {
    const std::int64_t* const index = index_.data();
    std::int64_t descents = 0;
    for (std::int64_t k = 1; k < n; ++k) descents += index[k - 1] >= index[k];
    bool inside = true;
    for (const Row& row : rows_) {
      if (row.size() == 0) continue;
      const std::int64_t* const end = row.index() + row.size();
      inside &= (row.index()[0] >= 0) & (end[-1] <= largest);
      if (row.index() > index)
        descents -= row.index()[-1] >= row.index()[0];  // between rows there may be some
    }
    return inside && descents == 0;
  }

  // At least 1 for a value that is left out or refused. A sum of comparisons: no branch, so that there are
  // vectors.
  static int unusual(double value) { return int{value == 0.0} + int{!within(value, kLargestValue)}; }

  // Is there nothing to be done for this row? As a rule not, whatever others of the batch have.
  static bool tidy(const Row& row, std::int64_t largest) {
    const std::int64_t n = row.size();
    const std::int64_t* const index = row.index();
    if (n == 0) return true;
    std::int64_t odd = (index[0] < 0) | (index[n - 1] > largest);  // counted, so that there are vectors
    for (std::int64_t k = 1; k < n; ++k) odd += index[k - 1] >= index[k];
    for (std::int64_t k = 0; k < n; ++k) odd += unusual(row.value()[k]);
    return odd == 0;
  }

  std::vector<std::int64_t> index_;
  std::vector<double> value_;
  std::vector<Row> rows_;
  RowTidy tidy_;
  std::int64_t begin_ = 0;
};

class Rows {
 public:
  virtual ~Rows() = default;
  virtual std::int64_t count() const = 0;
  virtual void load(std::int64_t r, Block& block) const = 0;        // row r and a few more
  virtual Csr<std::int64_t, double> settled() const { return {}; }  // if rows can be used where they are
  virtual Scan scan(double limit) const = 0;
  virtual std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const = 0;

  std::int64_t largest() const { return largest_; }  // index that rows may have

  // What a scan has found without fault: rows are loaded faster, and refused if they are others by then.
  virtual void expect(const Scan& scan) {
    largest_ = scan.largest_index;
    clean_ = scan.clean;
  }

 protected:
  bool clean_ = false;
  std::int64_t largest_ = std::numeric_limits<std::int64_t>::max();
};

template <class Index, class Value>
class CsrRows final : public Rows {
 public:
  using Places = std::shared_ptr<const std::vector<std::int64_t>>;

  // The places of rows are a copy, checked to increase from 0 or more to no more than the entries there are.
  // Nobody can write to `sealed` indices and values.
  CsrRows(Places indptr, const Index* indices, const Value* values, std::int64_t begin, std::int64_t end,
          bool sealed)
      : places_(std::move(indptr)),
        csr_{places_->data() + begin, indices, values, end - begin},
        begin_(begin),
        sealed_(sealed) {
    if (kOwnTypes && sealed) tidy_ = std::make_shared<TidyRows>();
  }

  std::int64_t count() const override { return csr_.count; }

  void load(std::int64_t r, Block& block) const override {
    const std::int64_t* const ends = csr_.indptr + r;
    __builtin_prefetch(ends + kSoon);
    std::int64_t rows = 1;
    const std::int64_t most = std::min(csr_.count - r, Block::kRows);
    while (rows < most && ends[rows + 1] - ends[0] <= Block::kEntries) ++rows;
    block.assign(r, csr_.indices, csr_.values, ends, rows, largest_, clean_);
  }

  // Rows of the kernels' own types that nobody can change: these if they are clean, else tidy copies.
  Csr<std::int64_t, double> settled() const override {
    if constexpr (kOwnTypes)
      if (sealed_) return clean_ ? csr_ : tidy_->rows(begin_, csr_.count);
    return {};
  }

  void expect(const Scan& scan) override {
    Rows::expect(scan);
    if constexpr (kOwnTypes)
      if (sealed_ && scan.jumbled) tidy_->make(csr_, begin_, largest_);
  }

  Scan scan(double limit) const override { return csr_.scan(limit); }

  std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const override {
    auto part =
        std::make_unique<CsrRows>(places_, csr_.indices, csr_.values, begin_ + begin, begin_ + end, sealed_);
    part->largest_ = largest_;
    part->clean_ = clean_;
    if (tidy_ != nullptr && tidy_->done()) part->tidy_ = tidy_;
    return part;
  }

 private:
  static constexpr bool kOwnTypes = std::is_same_v<Index, std::int64_t> && std::is_same_v<Value, double>;

  Places places_;
  Csr<Index, Value> csr_;
  std::int64_t begin_;
  bool sealed_;
  std::shared_ptr<TidyRows> tidy_;
};

template <class Value>
class DenseRows final : public Rows {
 public:
  DenseRows(const Value* values, std::int64_t count, std::int64_t width)
      : values_(values), count_(count), width_(width) {}

  std::int64_t count() const override { return count_; }

  void load(std::int64_t r, Block& block) const override {
    const std::int64_t fit = Block::kDenseEntries / std::max<std::int64_t>(width_, 1);
    const std::int64_t rows = std::clamp<std::int64_t>(fit, 1, std::min(count_ - r, Block::kRows));
    const Value* const values = values_ + r * width_;
    const std::int64_t size = rows * width_, rest = (count_ - r) * width_ - size;
    for (std::int64_t k = 0; k < std::min(size, rest); k += 64 / static_cast<std::int64_t>(sizeof(Value)))
      __builtin_prefetch(values + size + k);  // the next ones
    block.assign(r, values, rows, width_);
  }

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
    if (bad == values_ + size) return s;  // it was changed meanwhile
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

// Rows one by one. A row stays as it is until the third one after it is read.
class RowReader {
 public:
  explicit RowReader(const Rows& rows) : rows_(rows), settled_(rows.settled()) {}

  Row operator[](std::int64_t r) {
    if (settled_.indptr != nullptr) {
      const std::int64_t begin = settled_.indptr[r], size = settled_.indptr[r + 1] - begin;
      const double* const values = settled_.values + begin;
      __builtin_prefetch(settled_.indptr + r + kSoon);
      for (std::int64_t k = 0; k < size; k += 8) __builtin_prefetch(values + k);
      return {settled_.indices + begin, values, size};
    }
    if (!blocks_[now_].has(r)) {
      now_ = (now_ + 1) % kAlive;
      rows_.load(r, blocks_[now_]);
    }
    return blocks_[now_].row(r);
  }

 private:
  static constexpr int kAlive = 3;
  const Rows& rows_;
  const Csr<std::int64_t, double> settled_;
  Block blocks_[kAlive];
  int now_ = 0;
};

// Calls learn(row, i) for the rows [begin, end) in order; ahead(row) is told of each row two steps early,
// so that it can be prefetched.
template <class Ahead, class Learn>
void stream(const Rows& rows, std::int64_t begin, std::int64_t end, Ahead ahead, Learn learn) {
  RowReader reader(rows);
  Row row, next, later;
  const auto load = [&](std::int64_t i) {
    if (i >= end) return;
    later = reader[i];
    ahead(later);
  };
  load(begin);
  next = later;
  load(begin + 1);
  for (std::int64_t i = begin; i < end; ++i) {
    row = next;
    next = later;
    load(i + 2);
    learn(row, i);
  }
}

}  // namespace skn
