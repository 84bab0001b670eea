// Arrays that Python hands to kernels, and those that it gets from them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace skn {

namespace nb = nanobind;

inline void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

inline std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

// Does its memory start where a number of its type may start?
template <class Checked>
bool aligned(const Checked& array) {
  using Number = typename Checked::Scalar;
  return array.size() == 0 || reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Number) == 0;
}

inline constexpr int kAnyDimensions = -1;

template <class S, int N>
using PlainArray =
    std::conditional_t<N == kAnyDimensions, nb::ndarray<S, nb::c_contig, nb::device::cpu>,
                       nb::ndarray<S, nb::ndim<N == kAnyDimensions ? 1 : N>, nb::c_contig, nb::device::cpu>>;

// An array that is what the kernel reads: of this type, in C order, aligned, and writable unless S is const.
// Anything else is refused. It is never converted: a kernel that writes into a converted copy, or keeps a
// pointer to it, would work on memory that is gone after the call.
template <class S, int N>
class Array : public PlainArray<S, N> {
 public:
  using Base = PlainArray<S, N>;
  using Base::Base;
  Array(const Base& base) : Base(base) {}
};

using Doubles = Array<double, 1>;
using ConstDoubles = Array<const double, 1>;

// A new NumPy array of doubles.
struct Vector {
  double* data;
  std::size_t size;
  explicit Vector(std::size_t n) : data(new double[n]), size(n) {}
  nb::ndarray<nb::numpy, double, nb::ndim<1>> array() {
    return {data, {size}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); })};
  }
};

}  // namespace skn

namespace nanobind::detail {

template <class S, int N>
struct type_caster<skn::Array<S, N>> {
  using Checked = skn::Array<S, N>;
  using Plain = make_caster<typename Checked::Base>;
  NB_TYPE_CASTER(Checked, Plain::Name)

  bool from_python(handle src, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    constexpr std::uint32_t kConvert = static_cast<std::uint32_t>(cast_flags::convert);
    Plain plain;
    if (!plain.from_python(src, flags & ~kConvert, cleanup) || !skn::aligned(plain.value)) return false;
    value = plain.value;
    return true;
  }

  static handle from_cpp(const Checked& array, rv_policy policy, cleanup_list* cleanup) noexcept {
    return Plain::from_cpp(array, policy, cleanup);
  }
};

}  // namespace nanobind::detail
