// Exponentials and logarithms of several numbers at once, or of one. They are made of sums, products and
// quotients, which are the same on all processors; those of the C library are not. Errors are at most two
// units in the last place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/small_matrix.hpp"

namespace skn {

// For e^x: ln 2 in two parts, of which products of the first with whole numbers are exact; a number that,
// when it is added, leaves a whole one in the last bits; where exponents begin.
struct DoublePowers {
  static constexpr double kHigh = 0x1.62e42fefa3800p-1, kLow = 0x1.ef35793c76730p-45;
  static constexpr double kPerTwo = 0x1.71547652b82fep+0, kRound = 0x1.8p52;
  static constexpr int kExponent = 52;
  static constexpr std::uint64_t kOne = 0x3ff0000000000000;

  // e^r − 1 for |r| ≤ ½ ln 2: Taylor's series, in parts that need not wait for one another.
  template <class Of>  // not the vector: Clang forgets how a template's argument is aligned
  [[gnu::always_inline]] static void power(const typename Of::Vector& r, typename Of::Vector& out) {
    using Vector = typename Of::Vector;
    const Vector rr = r * r, r4 = rr * rr;
    const Vector low = 0.5 + r * (1.0 / 6) + rr * (1.0 / 24 + r * (1.0 / 120)),
                 mid = (1.0 / 720 + r * (1.0 / 5040)) + rr * (1.0 / 40320 + r * (1.0 / 362880)),
                 high =
                     (1.0 / 3628800 + r * (1.0 / 39916800)) + rr * (1.0 / 479001600 + r * (1.0 / 6227020800));
    out = r + rr * (low + r4 * (mid + r4 * high));
  }
};

struct FloatPowers {
  static constexpr float kHigh = 0x1.62e4p-1F, kLow = 0x1.7f7d1cp-20F;
  static constexpr float kPerTwo = 0x1.715476p+0F, kRound = 0x1.8p23F;
  static constexpr int kExponent = 23;
  static constexpr std::uint32_t kOne = 0x3f800000;

  template <class Of>  // not the vector: Clang forgets how a template's argument is aligned
  [[gnu::always_inline]] static void power(const typename Of::Vector& r, typename Of::Vector& out) {
    using Vector = typename Of::Vector;
    const Vector rr = r * r;
    const Vector low = 0.5F + r * (1.0F / 6), mid = 1.0F / 24 + r * (1.0F / 120),
                 high = 1.0F / 720 + r * (1.0F / 5040);
    out = r + rr * (low + rr * (mid + rr * high));
  }
};

// As many numbers of type T as 32 bytes hold, and their bits.
template <class T>
struct Wide;

template <>
struct Wide<double> : DoublePowers {
  using Number = double;
  using Vector = Four;
  using Bits [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(8)]] = std::uint64_t;
};

template <>
struct Wide<float> : FloatPowers {
  using Number = float;
  using Vector [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = float;
  using Bits [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = std::uint32_t;
};

// A single number, to the same bits.
struct Single : DoublePowers {
  using Number = double;
  using Vector = double;
  using Bits = std::uint64_t;
};

using FourBits = Wide<double>::Bits;

// e^x = scale·(1 + rest), scale a power of two; |x| ≤ 700, in float 87. Vectors go in and out by reference:
// how they are handed over by value depends on the processor.
template <class Of>
[[gnu::always_inline]] inline void split_power(const typename Of::Vector& x, typename Of::Vector& scale,
                                               typename Of::Vector& rest) {
  using Vector = typename Of::Vector;
  using Bits = typename Of::Bits;
  const Vector shifted = x * Of::kPerTwo + Of::kRound, n = shifted - Of::kRound;
  const Vector r = (x - n * Of::kHigh) - n * Of::kLow;
  Of::template power<Of>(r, rest);
  scale = __builtin_bit_cast(Vector, (__builtin_bit_cast(Bits, shifted) << Of::kExponent) + Of::kOne);
}

template <class Of>
[[gnu::always_inline]] inline void exp_of(typename Of::Vector& x) {
  typename Of::Vector scale, rest;
  split_power<Of>(x, scale, rest);
  x = scale + scale * rest;
}

template <class Of>
[[gnu::always_inline]] inline void expm1_of(typename Of::Vector& x) {  // e^x − 1
  typename Of::Vector scale, rest;
  split_power<Of>(x, scale, rest);
  x = (scale - typename Of::Number{1}) + scale * rest;
}

// Of positive numbers that are not subnormal. Infinity and NaN stay what they are.
template <class Of>
[[gnu::always_inline]] inline void log_of(typename Of::Vector& x) {
  using Vector = typename Of::Vector;
  using Bits = typename Of::Bits;
  constexpr double kHigh = 0x1.62e42fee00000p-1, kLow = 0x1.a39ef35793c76p-33;  // of ln 2
  constexpr std::uint64_t kHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000, kWhole = 0x4330000000000000;
  // x = 2ⁿ(1 + f), √½ ≤ 1 + f < √2
  const Bits bits = __builtin_bit_cast(Bits, x) + (kOne - kHalf);
  const Vector n = __builtin_bit_cast(Vector, (bits >> 52) | kWhole) - (0x1p52 + 1023.0);
  const Vector f = __builtin_bit_cast(Vector, (bits & 0x000fffffffffffff) + kHalf) - 1.0;
  // ln(1 + f) = f − f²/2 + s(f²/2 + R), s = f/(2 + f): the coefficients of FreeBSD's e_log.c
  const Vector s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
  const Vector odd = w * (0x1.999999997fa04p-2 + w * (0x1.c71c51d8e78afp-3 + w * 0x1.39a09d078c69fp-3)),
               even =
                   z * (0x1.5555555555593p-1 +
                        w * (0x1.2492494229359p-2 + w * (0x1.7466496cb03dep-3 + w * 0x1.2f112df3e5244p-3)));
  const Vector log = n * kHigh - ((half - (s * (half + (odd + even)) + n * kLow)) - f);
  x = x < std::numeric_limits<double>::infinity() ? log : x;
}

[[gnu::always_inline]] inline void exp_four(Four& x) { exp_of<Wide<double>>(x); }
[[gnu::always_inline]] inline void expm1_four(Four& x) { expm1_of<Wide<double>>(x); }
[[gnu::always_inline]] inline void log_four(Four& x) { log_of<Wide<double>>(x); }

// Beyond ±700 what it is there.
inline double exp_one(double x) {
  x = std::clamp(x, -700.0, 700.0);
  exp_of<Single>(x);
  return x;
}
inline double expm1_one(double x) {
  x = std::clamp(x, -700.0, 700.0);
  expm1_of<Single>(x);
  return x;
}
inline double log_one(double x) {
  log_of<Single>(x);
  return x;
}

// 1/(1 + e^−z) and 1/(1 + e^z): neither has lost digits.
struct Sigmoids {
  double up = 0.5, down = 0.5;

  Sigmoids() = default;
  Sigmoids(double its_up, double its_down) : up(its_up), down(its_down) {}
  explicit Sigmoids(double z) {
    const double e = exp_one(-std::abs(z)), large = 1.0 / (1.0 + e), small = e * large;
    up = if_above(z, 0.0, large, small);
    down = if_above(z, 0.0, small, large);
  }
};

// The same of n numbers in place.
template <void (*each)(Four&)>
void for_fours(double* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Four part = four(x + i);
    each(part);
    four(x + i) = part;
  }
  if (i == n) return;
  Four part = {1.0, 1.0, 1.0, 1.0};
  for (std::int64_t j = i; j < n; ++j) part[j - i] = x[j];
  each(part);
  for (std::int64_t j = i; j < n; ++j) x[j] = part[j - i];
}

inline void exp_all(double* x, std::int64_t n) { for_fours<exp_four>(x, n); }
inline void log_all(double* x, std::int64_t n) { for_fours<log_four>(x, n); }

}  // namespace skn
