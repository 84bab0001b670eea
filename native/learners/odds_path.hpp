// How far log odds move on a path of steepest descent of the logistic loss, several at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/elementary.hpp"

namespace skn {

// `Of` is Wide<T>.
template <class Of>
struct OddsPath {
  using Vector = typename Of::Vector;
  using Bits = typename Of::Bits;
  using T = typename Of::Number;

  static constexpr double kLongest = sizeof(T) == 4 ? 1e25 : 1e290;  // path

  // The way d on a path, w and r the probabilities of being wrong and right when it starts: the margin m has
  // m + e^m grow by the length, so that wd + r(e^d − 1) = w·length.
  static void go(const Vector& length, const Vector& w, const Vector& r, Vector& d) {
    const Vector u = length * w;
    d = u;
    shorten(d, w);
    if (!any(u >= kShort)) return;
    if (any(u >= T(0.5))) {
      Vector far;
      guess(length, w, r, far);
      d = u < T(0.5) ? d : far;
    }
    for (int round = 0; round < kRounds; ++round) {
      Vector scale, rest;
      split_power<Of>(d, scale, rest);
      const Vector power = r * ((scale - T(1)) + scale * rest), per = T(1) / (T(1) + power);
      const Vector s = (power + r) * per, step = (u - w * d - power) * per;
      const Vector size = step < T(0) ? -step : step;
      d += step * (T(1) - s * step * (T(0.5) - step * (T(3) * s - T(1)) * T(1.0 / 6)));
      if (!any(size > kNear)) return;
    }
  }

 private:
  static constexpr T kShort = sizeof(T) == 4 ? 0x1p-6 : 0x1p-12;
  static constexpr T kNear = sizeof(T) == 4 ? 0x1p-6 : 0x1p-14;  // its fourth power is no more than rounding
  static constexpr int kRounds = sizeof(T) == 4 ? 1 : 2;  // of fourth order: a tenth becomes 10⁻⁵, then 10⁻²⁰

  template <class Mask>
  static bool any(const Mask& mask) {
    const FourBits bits = reinterpret_cast<FourBits>(mask);
    return ((bits[0] | bits[1]) | (bits[2] | bits[3])) != 0;
  }

  // The way on a short path, u = length·s, s the probability of being wrong, by Taylor's series, whose next
  // term is of sixth order.
  static void shorten(Vector& u, const Vector& s) {
    const Vector fourth = T(6) - s * (T(20) - T(15) * s),
                 fifth = T(24) - s * (T(130) - s * (T(210) - T(105) * s));
    const Vector later =
        (T(2) - T(3) * s) * T(1.0 / 6) - u * (fourth * T(1.0 / 24) - u * fifth * T(1.0 / 120));
    u = u * (T(1) - (T(1) - s) * u * (T(0.5) - u * later));
  }

  // About the way on a path that is not short, less than a sixth away. The margin m + e^m = z is about z
  // where e^m is small, Taylor's series at z = 1, and ln(z − ln z + ln z/z) where it is large.
  static void guess(const Vector& length, const Vector& w, const Vector& r, Vector& d) {
    const Vector start = r / w;
    Vector from = start;
    rough_log(from);
    const Vector z = from + start + length, by = z - T(1), middle = by * (T(0.5) - by * T(1.0 / 16));
    Vector log = z;
    rough_log(log);
    Vector large = z - log + log / z;
    rough_log(large);
    d = (z > T(2) ? large : z < T(-2) ? z : middle) - from;
    d = d < T(0) ? Vector{} : d;
  }

  // Logarithms within .03: the bits of a number are about that of base 2.
  static void rough_log(Vector& x) {
    const Bits bits = __builtin_bit_cast(Bits, x);
    if constexpr (sizeof(T) == 4) {
      using Whole [[gnu::vector_size(32)]] = std::int32_t;
      const Vector near = __builtin_convertvector(reinterpret_cast<Whole>(bits), Vector);
      x = (near - 126.957F * 0x1p23F) * (0.6931471805599453F * 0x1p-23F);
    } else {
      const Vector near = __builtin_bit_cast(Vector, (bits >> 20) | 0x4330000000000000);
      x = (near - (0x1p52 + 1022.957 * 0x1p32)) * (0.6931471805599453 * 0x1p-32);
    }
  }
};

}  // namespace skn
