// Decimal numbers from text, correctly rounded: the inner loop of the text parsers.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/decimal.hpp"

namespace skn::text {

enum class NumberError { none, syntax, range };

// Every text ends with '\n', so that a scan which stops at the first byte of no interest needs no bounds
// check.
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The digits (at most eight, the first in the lowest byte, as values 0..9) as one number: pairs of
// neighbours are joined three times, 8 × 1 digit → 4 × 2 → 2 × 4 → 1 × 8.
inline std::uint64_t join_eight_digits(std::uint64_t x) {
  x = (x * 10 + (x >> 8)) & 0x00FF00FF00FF00FF;
  x = (x * 100 + (x >> 16)) & 0x0000FFFF0000FFFF;
  return (x * 10000 + (x >> 32)) & 0x00000000FFFFFFFF;
}

inline constexpr std::uint64_t integer_powers_of_ten[] = {1,      10,      100,      1000,     10000,
                                                          100000, 1000000, 10000000, 100000000};

// Appends the digits at p to `value` (modulo 2^64) and returns the first byte that is none. Eight bytes
// are looked at together without a branch on how many of them are digits, because lengths vary from number
// to number and a mispredicted branch costs more than the arithmetic. `end` bounds the eight-byte loads.
inline const char* read_digits(const char* p, const char* end, std::uint64_t& value) {
  if constexpr (std::endian::native == std::endian::little) {
    while (end - p >= 8) {
      std::uint64_t x;
      std::memcpy(&x, p, 8);
      x ^= 0x3030303030303030;  // digits become 0..9, all else more than 9
      const std::uint64_t others = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
      const int count = std::countr_zero(others) / 8;
      if (count < 8) {
        x = x << 8 << (56 - 8 * count);  // drop the others; zeros come in as leading digits
        value = value * integer_powers_of_ten[count] + join_eight_digits(x);
        return p + count;
      }
      value = value * 100000000 + join_eight_digits(x);
      p += 8;
    }
  }
  for (; is_digit(*p); ++p) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Reads [+-]digits[.digits][e[+-]digits] up to the end of its token, which `ends_token` knows and '\n' is
// one, and moves p behind it. Infinity, NaN and hexadecimal numbers are syntax errors.
template <class EndsToken>
NumberError read_number(const char*& p, const char* end, double& value, EndsToken ends_token) {
  const bool negative = *p == '-';
  p += *p == '-' || *p == '+';
  const char* const first = p;
  std::uint64_t mantissa = 0;
  // Values mostly begin with a single digit (0.25, 1): there a predicted branch beats arithmetic, because
  // the next digits need not wait for it.
  if (is_digit(p[0]) && !is_digit(p[1])) {
    mantissa = static_cast<std::uint64_t>(*p++ - '0');
  } else {
    p = read_digits(p, end, mantissa);
  }
  std::ptrdiff_t count = p - first;
  std::int64_t shift = 0, exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    p = read_digits(p, end, mantissa);
    shift = fraction - p;
    count -= shift;
  }
  if (count == 0) return NumberError::syntax;
  if (!ends_token(*p)) {
    if (*p != 'e' && *p != 'E') return NumberError::syntax;
    ++p;
    const bool below = *p == '-';
    p += *p == '-' || *p == '+';
    if (!is_digit(*p)) return NumberError::syntax;
    for (; is_digit(*p); ++p) {
      if (exponent < 1'000'000'000'000) exponent = exponent * 10 + (*p - '0');
    }
    if (below) exponent = -exponent;
    if (!ends_token(*p)) return NumberError::syntax;
  }
  // Clinger's fast path: mantissa and power of ten are both exact, so one operation rounds once. More than
  // 19 digits may have wrapped around 2^64.
  const std::int64_t power = shift + exponent;
  if (count <= 19 && mantissa <= std::uint64_t{1} << 53 && power >= -22 && power <= 22) {
    const double whole = static_cast<double>(mantissa);
    value = power < 0 ? whole / powers_of_ten[-power] : whole * powers_of_ten[power];
  } else {
    Rounded cut;
    const bool fits = count <= 19 && mantissa != 0 && power >= kLeastPower && power <= kLargestPower;
    if (!fits || !round_product(mantissa, static_cast<int>(power), false, value, cut))
      value = nearest_double(first, p, exponent);
    if (std::isinf(value)) return NumberError::range;
  }
  if (negative) value = -value;
  return NumberError::none;
}

// Whether a token that is no number begins like a NaN or an infinity.
inline bool names_non_finite(const char* p) {
  p += *p == '-' || *p == '+';
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  const char first = lower(p[0]);
  if (first != 'n' && first != 'i') return false;  // before looking further: the text may end here
  const char second = lower(p[1]);
  if (second != 'a' && second != 'n') return false;
  return (first == 'n' && second == 'a' && lower(p[2]) == 'n') ||
         (first == 'i' && second == 'n' && lower(p[2]) == 'f');
}

}  // namespace skn::text
