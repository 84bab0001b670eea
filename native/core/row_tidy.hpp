// A row of whatever form, brought to that which kernels read.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "core/row_sort.hpp"

namespace skn {

// Beyond this a square, and the square of a square, could leave the range of float64.
inline constexpr double kLargestValue = 1e30;

template <class Value>
bool within(Value value, double limit) {
  return std::abs(static_cast<double>(value)) <= limit;  // NaN is not
}

// One example: parallel arrays of feature indices (strictly increasing, not negative) and values (never
// zero).
class Row {
 public:
  Row() = default;
  Row(const std::int64_t* index, const double* value, std::int64_t size)
      : index_(index), value_(value), size_(size) {}

  std::int64_t size() const { return size_; }
  const std::int64_t* index() const { return index_; }
  const double* value() const { return value_; }

 private:
  const std::int64_t* index_ = nullptr;
  const double* value_ = nullptr;
  std::int64_t size_ = 0;
};

class RowTidy {
 public:
  // The row without zeros, sorted, duplicates summed, so that one feature is one coordinate whatever the
  // input looked like. What a scan would have refused is refused. Not a part of the loops over rows, most of
  // which have none to tidy.
  [[gnu::noinline]] Row operator()(std::int64_t* index, double* value, std::int64_t n, std::int64_t largest) {
    std::int64_t refused = 0, zeros = 0, descents = 0;  // counted, not noted: compilers make vectors of sums
    for (std::int64_t k = 0; k < n; ++k) {
      refused += (index[k] < 0) | (index[k] > largest) | !within(value[k], kLargestValue);
      zeros += value[k] == 0.0;
    }
    for (std::int64_t k = 1; k < n; ++k) descents += index[k - 1] >= index[k];
    if (refused > 0)
      throw std::runtime_error("rows have changed since they were checked: they must not while in use");
    if (zeros > 0) n = without_zeros(index, value, n);
    if (descents == 0) return {index, value, n};
    sort_(index, value, n);
    std::int64_t repeats = 0;
    for (std::int64_t k = 1; k < n; ++k) repeats += index[k - 1] == index[k];
    return {index, value, repeats > 0 ? summed(index, value, n) : n};
  }

 private:
  static std::int64_t without_zeros(std::int64_t* index, double* value, std::int64_t n) {
    std::int64_t size = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      index[size] = index[k];
      value[size] = value[k];
      size += value[k] != 0.0;  // without a branch: the next one overwrites a zero
    }
    return size;
  }

  // One entry for all of an index.
  static std::int64_t summed(std::int64_t* index, double* value, std::int64_t n) {
    std::int64_t size = 0;
    for (std::int64_t k = 0; k < n;) {
      const std::int64_t i = index[k];
      double sum = 0;
      for (; k < n && index[k] == i; ++k) sum += value[k];
      index[size] = i;
      value[size] = sum;
      size += sum != 0.0;
    }
    return size;
  }

  RowSort sort_;
};

}  // namespace skn
