// What parsers take from Python and give to it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/array.hpp"

namespace skn {

using Text = Array<const std::uint8_t, 1>;

template <class T>
nb::object to_numpy(std::vector<T> values) {
  auto* const memory = new std::vector<T>(std::move(values));
  const nb::capsule owner(memory, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(memory->data(), {memory->size()}, owner));
}

template <class T>
using Numbers = Array<const T, 1>;

template <class T>
std::span<const T> view(const Numbers<T>& array) {
  return {array.data(), array.shape(0)};
}

inline nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

inline std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace skn
