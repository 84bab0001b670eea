// Exponentials and logarithms of several numbers at once. They are made of sums, products and quotients,
// which are the same on all processors; those of the C library are not. Errors are at most two units in the
// last place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/small_matrix.hpp"

namespace skn {

// As many numbers of type T as 32 bytes hold, and their bits. For e^x: ln 2 in two parts, of which products
// of the first with whole numbers are exact; a number that, when it is added, leaves a whole one in the last
// bits; where exponents begin.
template <class T>
struct Wide;

template <>
struct Wide<double> {
  using Vector = Four;
  using Bits [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(8)]] = std::uint64_t;
  static constexpr double kHigh = 0x1.62e42fefa3800p-1, kLow = 0x1.ef35793c76730p-45;
  static constexpr double kPerTwo = 0x1.71547652b82fep+0, kRound = 0x1.8p52;
  static constexpr int kExponent = 52;
  static constexpr std::uint64_t kOne = 0x3ff0000000000000;

  // e^r − 1 for |r| ≤ ½ ln 2: Taylor's series, in parts that need not wait for one another.
  static void power(const Vector& r, Vector& out) {
    const Vector rr = r * r, r4 = rr * rr;
    const Vector low = 0.5 + r * (1.0 / 6) + rr * (1.0 / 24 + r * (1.0 / 120)),
                 mid = (1.0 / 720 + r * (1.0 / 5040)) + rr * (1.0 / 40320 + r * (1.0 / 362880)),
                 high =
                     (1.0 / 3628800 + r * (1.0 / 39916800)) + rr * (1.0 / 479001600 + r * (1.0 / 6227020800));
    out = r + rr * (low + r4 * (mid + r4 * high));
  }
};

template <>
struct Wide<float> {
  using Vector [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = float;
  using Bits [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = std::uint32_t;
  static constexpr float kHigh = 0x1.62e4p-1F, kLow = 0x1.7f7d1cp-20F;
  static constexpr float kPerTwo = 0x1.715476p+0F, kRound = 0x1.8p23F;
  static constexpr int kExponent = 23;
  static constexpr std::uint32_t kOne = 0x3f800000;

  static void power(const Vector& r, Vector& out) {
    const Vector rr = r * r;
    const Vector low = 0.5F + r * (1.0F / 6), mid = 1.0F / 24 + r * (1.0F / 120),
                 high = 1.0F / 720 + r * (1.0F / 5040);
    out = r + rr * (low + rr * (mid + rr * high));
  }
};

using FourBits = Wide<double>::Bits;

// e^x = scale·(1 + rest), scale a power of two; |x| ≤ 700, in float 87. Vectors go in and out by reference:
// how they are handed over by value depends on the processor.
template <class T>
void split_power(const typename Wide<T>::Vector& x, typename Wide<T>::Vector& scale,
                 typename Wide<T>::Vector& rest) {
  using Of = Wide<T>;
  using Vector = typename Of::Vector;
  using Bits = typename Of::Bits;
  const Vector shifted = x * Of::kPerTwo + Of::kRound, n = shifted - Of::kRound;
  const Vector r = (x - n * Of::kHigh) - n * Of::kLow;
  Of::power(r, rest);
  scale = reinterpret_cast<Vector>((reinterpret_cast<Bits>(shifted) << Of::kExponent) + Of::kOne);
}

template <class T>
void exp_wide(typename Wide<T>::Vector& x) {
  typename Wide<T>::Vector scale, rest;
  split_power<T>(x, scale, rest);
  x = scale + scale * rest;
}

inline void exp_four(Four& x) { exp_wide<double>(x); }

inline void log_four(Four& x) {  // of positive numbers that are not subnormal
  constexpr double kHigh = 0x1.62e42fee00000p-1, kLow = 0x1.a39ef35793c76p-33;  // of ln 2
  constexpr std::uint64_t kHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000, kWhole = 0x4330000000000000;
  // x = 2ⁿ(1 + f), √½ ≤ 1 + f < √2
  const FourBits bits = reinterpret_cast<FourBits>(x) + (kOne - kHalf);
  const Four n = reinterpret_cast<Four>((bits >> 52) | kWhole) - (0x1p52 + 1023.0);
  const Four f = reinterpret_cast<Four>((bits & 0x000fffffffffffff) + kHalf) - 1.0;
  // ln(1 + f) = f − f²/2 + s(f²/2 + R), s = f/(2 + f): the coefficients of FreeBSD's e_log.c
  const Four s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
  const Four odd = w * (0x1.999999997fa04p-2 + w * (0x1.c71c51d8e78afp-3 + w * 0x1.39a09d078c69fp-3)),
             even = z * (0x1.5555555555593p-1 +
                         w * (0x1.2492494229359p-2 + w * (0x1.7466496cb03dep-3 + w * 0x1.2f112df3e5244p-3)));
  x = n * kHigh - ((half - (s * (half + (odd + even)) + n * kLow)) - f);
}

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
