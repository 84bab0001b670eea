// Pairs of a name and a short number, as most of a text are: read by looking at 32 bytes at a time. What is
// unusual is left to those who read byte by byte.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/decimal.hpp"
#include "text/number.hpp"
#include "text/window.hpp"

#ifdef SKN_HAS_WINDOWS
namespace skn::text {

// One to eight digits, the last one in the highest byte, zeros before them; eight bytes can be read.
inline std::uint64_t few_digits(const char* p, std::uint64_t count) {
  std::uint64_t x;
  std::memcpy(&x, p, 8);
  return x << (-8 * count & 63);
}

struct TwoNumbers {
  std::uint64_t first, second;
};

// What `few_digits` gave, twice, as numbers.
inline TwoNumbers join_digits(std::uint64_t first, std::uint64_t second) {
  const __m128i zeros = _mm_set1_epi8('0');  // subtracted where there are digits: less than 0 is 0
  const __m128i digits = _mm_subs_epu8(
      _mm_set_epi64x(static_cast<std::int64_t>(second), static_cast<std::int64_t>(first)), zeros);
#ifdef __SSSE3__
  const __m128i twos = _mm_maddubs_epi16(digits, _mm_set1_epi16(1 << 8 | 10));
#else
  const __m128i tens = _mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(255)), _mm_set1_epi16(10));
  const __m128i twos = _mm_add_epi16(tens, _mm_srli_epi16(digits, 8));
#endif
  const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(1 << 16 | 100));
  const __m128i eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
  const auto both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(eights));
  return {both & 0xFFFFFFFF, both >> 32};
}

// What must be left of the text for what follows: a window, and the digits that may begin at its end.
inline constexpr std::ptrdiff_t kReach = Window::kBytes + 8;

// What stands in a window after a name and ':'.
struct ShortNumber {
  double value;
  std::uint64_t name;  // the number that the name is, if it is one
  std::size_t end;     // 0: it is for `read_number` to look at
};

// Reads [-]digits[.digits], as most numbers are, from byte `at` of a window on, whose `non_digits` are given.
// `name`: the digits before it, which are joined on the way.
template <class EndsToken>
[[gnu::always_inline]] inline ShortNumber read_short_number(const char* text, std::uint64_t non_digits,
                                                            std::size_t at, std::uint64_t name,
                                                            EndsToken ends_token) {
  const std::size_t negative = text[at] == '-';
  const std::size_t first = at + negative;
  const auto whole = static_cast<std::size_t>(std::countr_zero(non_digits >> first));
  std::size_t end = first + whole;
  std::uint64_t mantissa = 0;
  std::size_t fraction = 0;
  TwoNumbers numbers;
  if (text[end] != '.') {
    if (whole - 1 > 7 || !ends_token(text[end])) return {};
    numbers = join_digits(name, few_digits(text + first, whole));
    mantissa = numbers.second;
  } else {
    const char* digits = text + end + 1;
    if (end >= Window::kBytes) return {};
    std::size_t count = fraction = static_cast<std::size_t>(std::countr_zero(non_digits >> (end + 1)));
    end += 1 + fraction;
    if (fraction == 0 || !ends_token(text[end])) return {};
    if (whole == 1 && fraction <= 8) [[likely]] {
      mantissa = static_cast<std::uint64_t>(text[first] - '0');
    } else {
      if (whole > 8 || fraction > 15 || whole + fraction > 19) return {};
      if (whole > 0) mantissa = join_digits(few_digits(text + first, whole), 0).first;
      if (fraction > 8) {
        mantissa = mantissa * 100000000 + join_digits(few_digits(digits, 8), 0).first;
        digits += 8;
        count -= 8;
      }
    }
    numbers = join_digits(name, few_digits(digits, count));
    mantissa = mantissa * integer_powers_of_ten[count] + numbers.second;
  }
  if (mantissa > std::uint64_t{1} << 53) [[unlikely]] {
    double value;
    Rounded cut;
    if (!round_product(mantissa, -static_cast<int>(fraction), false, value, cut)) return {};
    return {negative ? -value : value, numbers.first, end};
  }
  static constexpr double kPowers[32] = {
      1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10,  1e11,  1e12,  1e13,  1e14,  1e15,
      -1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15};
  const double exact = static_cast<double>(static_cast<std::int64_t>(mantissa));
  return {exact / kPowers[16 * negative + fraction], numbers.first, end};
}

// The first blank of a window, and what comes after it: where the next pair begins if this one ends there.
// Known without reading the number, so that a processor can look at several pairs at once; compilers must not
// know that the two are the same, or they take the number's end for both. Without a blank it is where no
// number of a window ends.
struct FirstBlank {
  FirstBlank(const char* p, const Window& window)
      : at(static_cast<std::size_t>(
            std::countr_zero(window.any_of<' '>() | std::uint64_t{2} << Window::kBytes))),
        next(p + at + 1) {
#ifdef __GNUC__
    asm("" : "+r"(next));
#endif
  }

  std::size_t at;
  const char* next;
};

// Moves p behind what ends at byte `size` and the blank after it. False: there is no blank, p stays before
// it.
inline bool skip_blank(const char*& p, std::size_t size, const FirstBlank& blank) {
  if (size == blank.at) [[likely]] {
    p = blank.next;
    return true;
  }
  p += size;
  if (*p != ' ') return false;
  ++p;
  return true;
}

// Reads number:number pairs with a blank between one and the next: as many of them as there are. `take` is
// given the two numbers of each. The loop calls nothing, so all it uses is in registers.
template <class EndsToken, class Take>
[[gnu::always_inline]] inline const char* read_short_pairs(const char* p, const char* end,
                                                           EndsToken ends_token, Take take) {
  while (end - p >= kReach) {
    const Window window(p);
    const std::uint64_t non_digits = window.non_digits();
    const FirstBlank blank(p, window);
    const auto size = static_cast<std::size_t>(std::countr_zero(non_digits));
    if (size - 1 > 7 || p[size] != ':') break;
    const ShortNumber number = read_short_number(p, non_digits, size + 1, few_digits(p, size), ends_token);
    if (number.end == 0) break;
    take(number.name, number.value);
    if (!skip_blank(p, number.end, blank)) break;
  }
  return p;
}

}  // namespace skn::text
#endif
