// A dictionary {name: value} as one row: names become indices by a table, or by hashing.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/module.hpp"
#include "bindings/name_index.hpp"
#include "bindings/python_api.hpp"
#include "bindings/rows.hpp"
#include "text/hashing.hpp"

namespace skn {

using namespace nb::literals;

namespace {

// One row, or none, that owns its numbers.
class OneRow final : public Rows {
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
  void load(std::int64_t r, Block& block) const override {
    const std::int64_t ends[] = {0, extent(index.size())};
    block.assign(r, index.data(), value.data(), ends, 1, largest_, clean_);
  }
  Scan scan(double limit) const override {
    const std::int64_t ends[] = {0, extent(index.size())};
    return Csr<std::int64_t, double>{ends, index.data(), value.data(), rows}.scan(limit);
  }
  std::unique_ptr<Rows> part(std::int64_t begin, std::int64_t end) const override {
    auto part = std::make_unique<OneRow>(*this);
    part->rows = end - begin;
    return part;
  }
};

double number(PyObject* value) {
  if (PyFloat_CheckExact(value)) return float_value(value);
  const double x = PyFloat_AsDouble(value);
  if (x == -1.0 && PyErr_Occurred()) nb::raise_python_error();
  return x;
}

// The items of a dictionary. They stay alive even if a key's or value's own code changes it.
struct Items {
  std::vector<nb::object> names, values;

  explicit Items(const nb::dict& x) {
    names.reserve(x.size());
    values.reserve(x.size());
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(x.ptr(), &position, &name, &value)) {
      names.push_back(nb::borrow(name));
      values.push_back(nb::borrow(value));
    }
  }

  std::unique_ptr<OneRow> row() const {
    auto row = std::make_unique<OneRow>();
    row->index.reserve(names.size());
    row->value.reserve(names.size());
    for (const nb::object& value : values) row->value.push_back(number(value.ptr()));
    return row;
  }
};

// New names get the next numbers, in an order of their own: that of a dictionary means nothing.
void add_names(NameIndex& index, const nb::list& known, const std::vector<nb::object>& names) {
  std::vector<std::pair<nb::object, nb::object>> texts;
  for (const nb::object& name : names)
    texts.emplace_back(PyUnicode_CheckExact(name.ptr()) ? name : nb::object(nb::str(name)), name);
  std::stable_sort(texts.begin(), texts.end(), [](const auto& left, const auto& right) {
    PyObject *a = left.first.ptr(), *b = right.first.ptr();
    const Py_ssize_t sizes[] = {text_length(a), text_length(b)};
    return sizes[0] != sizes[1] ? sizes[0] < sizes[1] : PyUnicode_Compare(a, b) < 0;
  });
  for (const auto& [text, name] : texts) {
    const NameIndex::Key key(name.ptr());
    if (index.find(known.ptr(), name.ptr(), key) < 0) index.add(known.ptr(), name.ptr(), key);
  }
}

// The number of each name, -1 for one not known; with `learn`, every name is known afterwards.
std::vector<std::int64_t> places(NameIndex& index, const std::vector<nb::object>& names,
                                 const nb::list& known, bool learn) {
  index.follow(known.ptr());
  std::vector<NameIndex::Key> keys;
  keys.reserve(names.size());
  for (const nb::object& name : names) index.prefetch(keys.emplace_back(name.ptr()));
  for (const NameIndex::Key& key : keys) index.prefetch_more(key);
  std::vector<std::int64_t> numbers(names.size());
  std::vector<nb::object> unknown;
  for (std::size_t k = 0; k < names.size(); ++k) {
    numbers[k] = index.find(known.ptr(), names[k].ptr(), keys[k]);
    if (numbers[k] < 0 && learn) unknown.push_back(names[k]);
  }
  if (unknown.empty()) return numbers;
  add_names(index, known, unknown);
  for (std::size_t k = 0; k < names.size(); ++k)
    if (numbers[k] < 0) numbers[k] = index.find(known.ptr(), names[k].ptr(), keys[k]);
  return numbers;
}

// Values are read first: what is not a number is an error, known name or not, and no name is learned.
PyRows named_row(NameIndex& index, const nb::dict& x, const nb::list& known, bool learn) {
  const Items items(x);
  auto row = items.row();
  row->index = places(index, items.names, known, learn);
  std::size_t kept = 0;
  for (std::size_t k = 0; k < row->index.size(); ++k) {
    row->index[kept] = row->index[k];
    row->value[kept] = row->value[k];
    kept += row->index[k] >= 0;
  }
  row->index.resize(kept);
  row->value.resize(kept);
  row->sort();
  return PyRows{std::move(row), nb::none()};
}

nb::list named_places(NameIndex& index, const nb::list& names, const nb::list& known, bool learn) {
  nb::list result;
  std::vector<nb::object> objects;
  for (const nb::handle name : names) objects.push_back(nb::borrow(name));
  for (const std::int64_t place : places(index, objects, known, learn)) result.append(place);
  return result;
}

std::int64_t hashed_index(const nb::str& name, int bits) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) nb::raise_python_error();
  const std::string_view view(text, static_cast<std::size_t>(size));
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  return static_cast<std::int64_t>(hashing::name_hash(view, 0) & mask);
}

// A name that is no string is hashed as str() writes it.
PyRows hashed_row(const nb::dict& x, int bits) {
  const Items items(x);
  auto row = items.row();
  for (const nb::object& name : items.names)
    row->index.push_back(
        hashed_index(PyUnicode_Check(name.ptr()) ? nb::borrow<nb::str>(name) : nb::str(name), bits));
  row->sort();
  return PyRows{std::move(row), nb::none()};
}

}  // namespace

void bind_dicts(nb::module_& m) {
  nb::class_<NameIndex>(m, "NameIndex", "Finds names in a list of names, which it extends by new ones.")
      .def(nb::init<>())
      .def("row", &named_row, "x"_a, "names"_a, "learn"_a,
           "The row of {name: value}; names that the list has not are left out, or with `learn` appended to "
           "it.")
      .def("places", &named_places, "wanted"_a, "names"_a, "learn"_a,
           "Where names stand in the list, -1 for one not there; with `learn` it is appended.");
  m.def("hashed_index", &hashed_index, "name"_a, "bits"_a);
  m.def("hashed_row", &hashed_row, "x"_a, "bits"_a,
        "The row of {name: value}, names hashed to so many bits.");
}

}  // namespace skn
