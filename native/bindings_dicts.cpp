// A dictionary {name: value} as one row: names become indices by a dictionary that Python owns, or by
// hashing.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings_rows.hpp"
#include "hashing.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// One row, or none, that owns its numbers.
class OneRow final : public skn::Rows {
 public:
  std::vector<std::int64_t> index;
  std::vector<double> value;
  std::int64_t rows = 1;

  // Once here, instead of at every load.
  void sort() {
    if (std::is_sorted(index.begin(), index.end())) return;
    std::vector<std::pair<std::int64_t, double>> pairs(index.size());
    for (std::size_t k = 0; k < pairs.size(); ++k) pairs[k] = {index[k], value[k]};
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t k = 0; k < pairs.size(); ++k) std::tie(index[k], value[k]) = pairs[k];
  }

  std::int64_t count() const override { return rows; }
  void load(std::int64_t, skn::Row& row) const override { row.assign(index.data(), value.data(), size()); }
  skn::Scan scan(double limit) const override { return view().scan(limit); }
  std::unique_ptr<skn::Rows> part(std::int64_t begin, std::int64_t end) const override {
    auto part = std::make_unique<OneRow>(*this);
    part->rows = end - begin;
    return part;
  }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(index.size()); }
  skn::CsrRows<std::int64_t, double> view() const {
    ends_[1] = size();
    return {ends_, index.data(), value.data(), rows};
  }
  mutable std::int64_t ends_[2] = {0, 0};
};

double number(PyObject* value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  const double x = PyFloat_AsDouble(value);
  if (x == -1.0 && PyErr_Occurred()) nb::raise_python_error();
  return x;
}

// Calls visit(key, value) for every item; the objects stay alive even if a key's or value's own code changes
// the dictionary.
template <class Visit>
void for_items(const nb::dict& x, Visit visit) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(x.ptr(), &position, &key, &value)) {
    const nb::object hold_key = nb::borrow(key), hold_value = nb::borrow(value);
    visit(key, value);
  }
}

// The row of the names that `indices` knows, and how many it does not know.
std::pair<PyRows, std::int64_t> dict_row(const nb::dict& x, const nb::dict& indices) {
  auto row = std::make_unique<OneRow>();
  row->index.reserve(x.size());
  row->value.reserve(x.size());
  std::int64_t unknown = 0;
  for_items(x, [&](PyObject* key, PyObject* value) {
    PyObject* place = PyDict_GetItemWithError(indices.ptr(), key);
    if (place == nullptr) {
      if (PyErr_Occurred()) nb::raise_python_error();
      ++unknown;
      number(value);  // not a number is an error, known or not
      return;
    }
    row->index.push_back(PyLong_AsLongLong(place));
    row->value.push_back(number(value));
  });
  row->sort();
  return {PyRows{std::move(row), nb::none()}, unknown};
}

std::int64_t hashed_index(const nb::str& name, int bits) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) nb::raise_python_error();
  const std::string_view view(text, static_cast<std::size_t>(size));
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  return static_cast<std::int64_t>(sketchnewton::hashing::name_hash(view, 0) & mask);
}

// A name that is no string is hashed as str() writes it.
PyRows hashed_row(const nb::dict& x, int bits) {
  auto row = std::make_unique<OneRow>();
  row->index.reserve(x.size());
  row->value.reserve(x.size());
  for_items(x, [&](PyObject* key, PyObject* value) {
    const nb::object name = nb::borrow(key);
    row->index.push_back(
        hashed_index(PyUnicode_Check(key) ? nb::borrow<nb::str>(name) : nb::str(name), bits));
    row->value.push_back(number(value));
  });
  row->sort();
  return PyRows{std::move(row), nb::none()};
}

}  // namespace

void bind_dicts(nb::module_& m) {
  m.def(
      "dict_row",
      [](const nb::dict& x, const nb::dict& indices) {
        auto [row, unknown] = dict_row(x, indices);
        return nb::make_tuple(std::move(row), unknown);
      },
      "x"_a, "indices"_a, "The row of {name: value}, and how many names are not in {name: index}.");
  m.def("hashed_index", &hashed_index, "name"_a, "bits"_a);
  m.def("hashed_row", &hashed_row, "x"_a, "bits"_a,
        "The row of {name: value}, names hashed to so many bits.");
}
