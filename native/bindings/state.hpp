// The state of a learner, as kernels see it: arrays by name that Python owns.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "bindings/array.hpp"
#include "core/table.hpp"

namespace skn {

// The arrays of a learner by name, checked to be what the kernel reads; -1 stands for any length.
class State {
 public:
  explicit State(nb::dict arrays) : arrays_(arrays) {}

  // Nothing is converted (see `Array`): the kernel keeps the pointer, and writes through it.
  template <class S>
  S* get(const char* name, std::initializer_list<std::int64_t> shape) const {
    const nb::object held = arrays_[name];
    Array<S, kAnyDimensions> array;
    if (!nb::try_cast(held, array, false))
      throw std::invalid_argument(std::string("array ") + name +
                                  " must be writable, in C order, aligned and of the kernel's dtype");
    held_.append(held);
    bool fits = array.ndim() == shape.size();
    std::size_t axis = 0;
    for (std::int64_t n : shape) {
      fits = fits && (n < 0 || extent(array.shape(axis)) == n);
      ++axis;
    }
    if (!fits) throw std::invalid_argument(std::string("array ") + name + " has the wrong shape");
    return array.data();
  }

  std::int64_t rows(const char* name) const { return length(name, 0); }
  std::int64_t columns(const char* name) const { return length(name, 1); }
  bool has(const char* name) const { return arrays_.contains(name); }

  // Keeps alive what was got, whatever becomes of the dictionary.
  nb::object owner() const { return held_; }

 private:
  std::int64_t length(const char* name, int axis) const {
    return nb::cast<std::int64_t>(nb::object(arrays_[name]).attr("shape")[axis]);
  }

  nb::dict arrays_;
  mutable nb::list held_;
};

// Kernels follow lists of features without looking: whoever made the arrays, each entry must be one.
inline void check_lists(const State& s, std::int64_t features) {
  const auto check = [features](const std::int64_t* list, std::int64_t count) {
    const auto known = [features](std::int64_t feature) {
      return feature >= 0 && feature < std::max<std::int64_t>(features, 1);  // an empty place has a zero
    };
    require(std::all_of(list, list + count, known), "a list has features that the table has not");
  };
  const std::int64_t active = s.get<std::int64_t>("counts", {-1})[1];
  require(active >= 0 && active <= features, "there are more features than the table has room for");
  check(s.get<std::int64_t>("active", {features}), active);
  for (const char* name : {"recent", "group"})
    if (s.has(name)) check(s.get<std::int64_t>(name, {-1}), s.rows(name));
  if (s.has("touched"))
    check(s.get<std::int64_t>("touched", {-1, -1}), s.rows("touched") * s.columns("touched"));
}

template <class T>
Table<T> table_view(const State& s) {
  const std::int64_t features = s.rows("active"), stride = s.columns("table");
  const bool packed = s.has("places");
  require(Table<T>::padded(stride) == stride, "the table has an odd row length");
  check_lists(s, features);
  return {s.get<T>("table", {features + packed, stride}), stride, s.get<std::int64_t>("active", {features}),
          features, packed ? s.get<std::int32_t>("places", {features}) : nullptr};
}

}  // namespace skn
