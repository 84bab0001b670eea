// Kernels as Python sees them: whatever they compute, they learn and predict batches of rows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/rows.hpp"
#include "core/rows.hpp"

namespace skn {

// Checks a batch, lets go of the GIL and has the rows learned or predicted. A kernel has one output per row
// or one per class; `owner` keeps alive the arrays that it views.
class RowKernel {
 public:
  using Out = Array<double, kAnyDimensions>;  // of one output: one number per row, or rows of one

  RowKernel(std::int64_t features, std::int64_t outputs, nb::object owner)
      : features_(features), outputs_(outputs), owner_(std::move(owner)) {}
  virtual ~RowKernel() = default;

  void learn(const PyRows& x, ConstDoubles labels, std::optional<ConstDoubles> weights, Out out) {
    const std::size_t n = rows_of(x, out);
    require(x.fit(features_), "rows must be scanned, and the table must have room for them");
    require(labels.size() == n && (!weights || weights->size() == n), "lengths differ");
    nb::gil_scoped_release release;
    // A label may become an index, so it is the copy that is checked: the array may change at any time.
    const std::vector<double> own(labels.data(), labels.data() + n);
    for (std::size_t i = 0; i < n && outputs_ > 1; ++i)
      require(own[i] >= 0 && own[i] < static_cast<double>(outputs_), "no such class");
    learn_rows(*x.rows, own.data(), weights ? weights->data() : nullptr, out.data());
  }

  // A single row of a kernel of one output, without the cost of arrays.
  double learn_one(const PyRows& x, double label) {
    require(outputs_ == 1, "a row has several outputs");
    require(x.fit(features_) && x.rows->count() == 1,
            "one row, scanned, and the table must have room for it");
    double prediction = 0;
    learn_rows(*x.rows, &label, nullptr, &prediction);
    return prediction;
  }

  void predict(const PyRows& x, Out out) {
    rows_of(x, out);
    nb::gil_scoped_release release;
    predict_rows(*x.rows, features_, out.data());
  }

 protected:
  // The number of rows, if `out` has room for their outputs.
  std::size_t rows_of(const PyRows& x, const Out& out) const {
    const auto n = static_cast<std::size_t>(x.rows->count()), width = static_cast<std::size_t>(outputs_);
    const bool fits = out.ndim() == 2 ? out.shape(0) == n && out.shape(1) == width
                                      : out.ndim() == 1 && width == 1 && out.shape(0) == n;
    require(fits, "lengths differ");
    return n;
  }

  std::int64_t features() const { return features_; }

 private:
  virtual void learn_rows(const Rows& rows, const double* labels, const double* weights, double* out) = 0;
  virtual void predict_rows(const Rows& rows, std::int64_t features, double* out) = 0;

  std::int64_t features_, outputs_;
  nb::object owner_;
};

// A kernel with a sketch in its feature table, which puts off work.
class SketchKernel : public RowKernel {
 public:
  using RowKernel::RowKernel;
  // Copies of the rows of all active features, with all work done that was put off; of the table's dtype.
  virtual void settled(nb::object out) = 0;
};

// The kernel that does the work, behind the interface `Base`.
template <class Kernel, class Base = RowKernel>
class KernelOf : public Base {
 public:
  KernelOf(std::int64_t features, std::int64_t outputs, nb::object owner, Kernel kernel)
      : Base(features, outputs, std::move(owner)), kernel_(std::move(kernel)) {}

  // Python's instances are deleted by way of their base, as memory of no special alignment.
  static_assert(alignof(Kernel) <= alignof(std::max_align_t));

 protected:
  Kernel kernel_;

 private:
  void learn_rows(const Rows& rows, const double* labels, const double* weights, double* out) override {
    kernel_.learn(rows, labels, weights, out);
  }
  void predict_rows(const Rows& rows, std::int64_t features, double* out) override {
    kernel_.predict(rows, features, out);
  }
};

template <class Kernel, class T, class Base = SketchKernel>
class SketchKernelOf : public KernelOf<Kernel, Base> {
 public:
  using KernelOf<Kernel, Base>::KernelOf;

  void settled(nb::object out) override {
    Array<T, 2> rows;
    require(nb::try_cast(out, rows, false), "a writable array of the table's dtype in C order is needed");
    require(extent(rows.shape(0)) == this->kernel_.active() &&
                extent(rows.shape(1)) == this->kernel_.settled_width(),
            "there must be room for the rows of all active features");
    this->kernel_.settled(rows.data());
  }
};

}  // namespace skn
