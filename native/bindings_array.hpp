// Arrays that Python hands to kernels.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

namespace skn {

// Does its memory start where a number of its type may start?
template <class Checked>
bool aligned(const Checked& array) {
  using Number = typename Checked::Scalar;
  return array.size() == 0 || reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Number) == 0;
}

// An array that is what the kernel reads: of this type, in C order, aligned, and writable unless S is const.
// Anything else is refused. It is never converted: a kernel that writes into a converted copy, or keeps a
// pointer to it, would work on memory that is gone after the call.
template <class S, std::size_t N>
class Array : public nanobind::ndarray<S, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu> {
 public:
  using Base = nanobind::ndarray<S, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;
  using Base::Base;
  Array(const Base& base) : Base(base) {}
};

}  // namespace skn

namespace nanobind::detail {

template <class S, std::size_t N>
struct type_caster<skn::Array<S, N>> {
  using Plain = make_caster<typename skn::Array<S, N>::Base>;
  using Checked = skn::Array<S, N>;
  NB_TYPE_CASTER(Checked, Plain::Name)

  bool from_python(handle src, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    constexpr std::uint32_t kConvert = static_cast<std::uint32_t>(cast_flags::convert);
    Plain plain;
    if (!plain.from_python(src, flags & ~kConvert, cleanup) || !skn::aligned(plain.value)) return false;
    value = plain.value;
    return true;
  }

  static handle from_cpp(const skn::Array<S, N>& array, rv_policy policy, cleanup_list* cleanup) noexcept {
    return Plain::from_cpp(array, policy, cleanup);
  }
};

}  // namespace nanobind::detail
