// Rows of arrays and sparse matrices.
#include "bindings/rows.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/memory.hpp"
#include "bindings/module.hpp"

namespace skn {

using namespace nb::literals;

namespace {

template <class Index, class Value>
PyRows csr_rows(Array<const std::int64_t, 1> indptr, MaybeSealed<Index> features,
                MaybeSealed<Value> numbers) {
  const auto& indices = features.array;
  const auto& values = numbers.array;
  require(indptr.size() > 0, "indptr is empty");
  const std::int64_t n = extent(indptr.size()) - 1;
  const auto places = std::make_shared<const std::vector<std::int64_t>>(indptr.data(), indptr.data() + n + 1);
  const std::int64_t* p = places->data();
  require(p[0] >= 0, "indptr starts below zero");
  for (std::int64_t i = 0; i < n; ++i) require(p[i] <= p[i + 1], "indptr decreases");
  require(p[n] <= extent(indices.size()) && p[n] <= extent(values.size()), "indptr points beyond the data");
  return {std::make_unique<CsrRows<Index, Value>>(places, indices.data(), values.data(), 0, n,
                                                  features.sealed && numbers.sealed),
          nb::make_tuple(indices, values)};
}

template <class Value>
PyRows dense_rows(Array<const Value, 2> values) {
  return {std::make_unique<DenseRows<Value>>(values.data(), extent(values.shape(0)), extent(values.shape(1))),
          nb::cast(values)};
}

// The row and the label of the plainest lesson: an array of one row of doubles, and one such number in an
// array or a list. None if it is another.
nb::object one_row(nb::handle X, nb::handle y) {
  Array<const double, 2> values;
  if (!nb::try_cast(X, values, false) || values.shape(0) != 1) return nb::none();
  double label = 0;
  if (Array<const double, 1> labels; y.type().is(X.type())) {
    if (!nb::try_cast(y, labels, false) || labels.size() != 1) return nb::none();
    label = labels.data()[0];
  } else {
    if (!PyList_CheckExact(y.ptr()) || PyList_Size(y.ptr()) != 1) return nb::none();
    const nb::object number = nb::borrow(PyList_GetItem(y.ptr(), 0));
    if (!PyFloat_Check(number.ptr())) return nb::none();
    label = PyFloat_AsDouble(number.ptr());
  }
  return nb::make_tuple(dense_rows<double>(values), label);
}

std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, double> scan(PyRows& x) {
  if (!x.scan) {
    Scan found;
    {
      nb::gil_scoped_release release;
      found = x.rows->scan(kLargestValue);
      if (found.bad_row < 0) x.rows->expect(found);
    }
    x.scan = found;
  }
  const Scan& s = *x.scan;
  return {s.largest_index, s.widest_row, s.bad_row, s.bad_index, s.bad_value};
}

PyRows part(const PyRows& x, std::int64_t begin, std::int64_t end) {
  require(0 <= begin && begin <= end && end <= x.rows->count(), "no such rows");
  PyRows part{x.rows->part(begin, end), x.owner};
  if (x.scan && x.scan->bad_row < 0) part.scan = x.scan;
  return part;
}

std::int64_t spread_row(const PyRows& x, std::int64_t r, Doubles out) {
  require(r >= 0 && r < x.rows->count(), "no such row");
  RowReader reader(*x.rows);
  const Row row = reader[r];
  std::fill_n(out.data(), out.size(), 0.0);
  for (std::int64_t k = 0; k < row.size() && row.index()[k] < extent(out.size()); ++k)
    out.data()[row.index()[k]] = row.value()[k];
  return row.size() > 0 ? row.index()[row.size() - 1] : -1;
}

template <class Index, class Value>
void bind_csr(nb::module_& m) {
  m.def("csr_rows", &csr_rows<Index, Value>, "indptr"_a, "indices"_a, "values"_a);
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<PyRows>(m, "Rows")
      .def("__len__", [](const PyRows& x) { return x.rows->count(); })
      .def("scan", &scan, "(largest index, widest row, first bad row or -1, its feature, its value)")
      .def("part", &part, "begin"_a, "end"_a, "A view of the rows [begin, end).");
  m.def("spread_row", &spread_row, "rows"_a, "r"_a, "out"_a,
        "Writes one row as a dense vector, cut off at its length; returns its last index.");
  bind_csr<std::int32_t, float>(m);
  bind_csr<std::int32_t, double>(m);
  bind_csr<std::int64_t, float>(m);
  bind_csr<std::int64_t, double>(m);
  m.def("dense_rows", &dense_rows<float>, "values"_a);
  m.def("dense_rows", &dense_rows<double>, "values"_a);
  m.def("one_row", &one_row, "X"_a, "y"_a);
  m.attr("LARGEST_VALUE") = kLargestValue;
}

}  // namespace skn
