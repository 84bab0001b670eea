// Exponentials and logarithms of four numbers at once. They are made of sums, products and quotients, which
// are the same on all processors; those of the C library are not. Errors are at most two units in the last
// place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/small_matrix.hpp"

namespace skn {

using FourBits [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(8)]] = std::uint64_t;

// Vectors go in and out by reference: how they are handed over by value depends on the processor.
inline void exp_four(Four& x) {                                                 // −700 ≤ x ≤ 700
  constexpr double kHigh = 0x1.62e42fefa3800p-1, kLow = 0x1.ef35793c76730p-45;  // of ln 2
  constexpr double kRound = 0x1.8p52;  // added to a number, it leaves a whole one in the last bits
  const Four shifted = x * 0x1.71547652b82fep+0 + kRound, n = shifted - kRound;
  const Four r = (x - n * kHigh) - n * kLow, rr = r * r, r4 = rr * rr;
  // Taylor's series for |r| ≤ ½ ln 2, in parts that need not wait for one another.
  const Four low = (1.0 + r) + rr * (0.5 + r * (1.0 / 6)),
             mid = (1.0 / 24 + r * (1.0 / 120)) + rr * (1.0 / 720 + r * (1.0 / 5040)),
             high = (1.0 / 40320 + r * (1.0 / 362880)) + rr * (1.0 / 3628800 + r * (1.0 / 39916800)),
             rest = 1.0 / 479001600 + r * (1.0 / 6227020800);
  const Four power = low + r4 * (mid + r4 * (high + r4 * rest));
  x = reinterpret_cast<Four>(reinterpret_cast<FourBits>(power) + (reinterpret_cast<FourBits>(shifted) << 52));
}

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
