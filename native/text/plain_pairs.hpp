// Pairs of two plain numbers, `154:0.095207`, with a blank between one and the next, as those of most files
// are. Many have the same shape: digits, colon and point at the same places. What is to be done for a shape
// is found out once and kept, so a pair takes few instructions; and two are read at a time, so that one need
// not wait for the other.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "text/number.hpp"
#include "text/window.hpp"

#ifdef __AVX2__
#define SKN_HAS_PLAIN_PAIRS 1
namespace skn::text {

// How a pair of a certain shape is read: a name of up to eight digits and a number of as many, with a sign
// and a point or without.
struct alignas(128) Shape {
  static constexpr std::size_t kDigits = 8, kWindow = 32;
  static constexpr std::uint8_t kNothing = 0x80;  // becomes a zero

  std::array<char, kWindow> marks;  // what stands there besides digits
  // Where eight digits of each come from: those of the name, in the first half, from the first sixteen bytes,
  // those of the number, in the second, from the last sixteen.
  std::array<std::uint8_t, 16> name, number;
  double power;               // what the number's digits are divided by
  std::uint32_t pattern = 0;  // ones where there are no digits, the last of them at its end; 0: no shape
  std::uint32_t checked;      // where marks must be found

  // Becomes that of the text at p, which has a certain pattern. False: that is none, so it stays what it was.
  bool become(const char* p, std::uint32_t its) {
    const std::size_t size = static_cast<std::size_t>(std::bit_width(its)) - 1;
    const auto colon = static_cast<std::size_t>(std::countr_zero(its));
    if (colon - 1 >= kDigits || colon >= size || p[colon] != ':') return false;
    const bool negative = p[colon + 1] == '-';
    const std::size_t first = colon + 1 + negative;
    std::size_t point = first;  // or the end
    while (point < size && (its >> point & 1) == 0) ++point;
    const bool pointed = point < size;
    const std::size_t whole = point - first, fraction = pointed ? size - point - 1 : 0;
    const std::uint32_t expected =
        1u << colon | std::uint32_t{negative} << (colon + 1) | 1u << point | 1u << size;
    if (its != expected || (pointed && (p[point] != '.' || fraction == 0))) return false;
    // One more digit is possible if it is a zero.
    const bool zero_first = whole == 1 && fraction == kDigits && p[first] == '0';
    if (whole + fraction - 1 >= kDigits && !zero_first) return false;
    name.fill(kNothing);
    number.fill(kNothing);
    for (std::size_t i = 0; i < colon; ++i) name[kDigits - colon + i] = static_cast<std::uint8_t>(i);
    for (std::size_t i = 0; i < whole + fraction && i < kDigits; ++i)  // from the last one on
      number[15 - i] = static_cast<std::uint8_t>(i < fraction || !pointed ? 15 - i : 14 - i);
    marks.fill(0);
    marks[colon] = ':';
    if (negative) marks[colon + 1] = '-';
    if (pointed) marks[point] = '.';
    if (zero_first) marks[first] = '0';
    marks[size] = ' ';
    pattern = its;
    checked = its | std::uint32_t{zero_first} << first;
    power = negative ? -1 : 1;
    for (std::size_t i = 0; i < fraction; ++i) power *= 10;
    return true;
  }
};

// The shapes met so far, as many as there is room for.
class Shapes {
 public:
  // A text of nothing but digits has the pattern of no shape: there it finds marks that it does not have.
  Shapes() {
    Shape& none = shapes_[place(0)];
    none.marks.fill(0);
    none.checked = ~std::uint32_t{0};
  }

  // The one of this pattern, or what has its place.
  const Shape& at(std::uint32_t pattern) const { return shapes_[place(pattern)]; }
  [[gnu::noinline]] bool learn(const char* p, std::uint32_t pattern) {
    return shapes_[place(pattern)].become(p, pattern);
  }

 private:
  static constexpr int kBits = 7;
  static std::size_t place(std::uint32_t pattern) { return pattern * 0x9E3779B1u >> (32 - kBits); }

  std::array<Shape, 1 << kBits> shapes_;
};

// What must be left of the text: two windows.
inline constexpr std::ptrdiff_t kPlainReach = 2 * 32 + 2, kPlainBehind = 16;

namespace plain {

inline __m128i load(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m256i load_window(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline std::uint32_t bits(__m256i flags) { return static_cast<std::uint32_t>(_mm256_movemask_epi8(flags)); }

// Numbers that stay in registers: compilers would rather make them again for every pair.
template <class Vector>
[[gnu::always_inline]] inline Vector kept(Vector value) {
  asm("" : "+x"(value));
  return value;
}

struct Constants {
  const __m256i minus_zeros = kept(_mm256_set1_epi8(-'0')), beyond = kept(_mm256_set1_epi8(128 - 10));
  const __m256i after_blank = kept(_mm256_set1_epi8(' ' + 1));
  const __m128i zeros = kept(_mm_set1_epi8('0')), tens = kept(_mm_set1_epi16(1 << 8 | 10));
  const __m128i hundreds = kept(_mm_set1_epi32(1 << 16 | 100));
  const __m128i ten_thousands = kept(_mm_set1_epi32(1 << 16 | 10000));
};

enum class Met { blank, line_end, unknown_shape, other };

// Gives the two numbers of a pair from p to `stop`.
template <class Take>
[[gnu::always_inline]] inline void convert(const char* p, const char* stop, const Shape& shape,
                                           const Constants& c, Take take) {
  const __m128i name = _mm_shuffle_epi8(load(p), load(&shape.name));
  const __m128i number = _mm_shuffle_epi8(load(stop - kPlainBehind), load(&shape.number));
  // Less than '0' is 0: that is how nothing becomes a zero.
  const __m128i digits = _mm_subs_epu8(_mm_or_si128(name, number), c.zeros);
  const __m128i fours = _mm_madd_epi16(_mm_maddubs_epi16(digits, c.tens), c.hundreds);
  const __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), c.ten_thousands);
  const __m128d both = _mm_cvtepi32_pd(eights);
  take(static_cast<std::uint32_t>(_mm_cvtsi128_si32(eights)),
       _mm_cvtsd_f64(_mm_unpackhi_pd(both, both)) / shape.power);
}

// Reads the pair from p to `stop`, where the first of `ends` is; `pattern` becomes what its shape is found
// by.
template <class Take>
[[gnu::always_inline]] inline Met read(const char* p, const char* stop, std::uint32_t ends,
                                       const Shapes& shapes, const Constants& c, std::uint32_t& pattern,
                                       Take take) {
  const __m256i window = load_window(p);
  // As in Window: what counts is the highest bit.
  const std::uint32_t non_digits = bits(_mm256_adds_epu8(_mm256_add_epi8(window, c.minus_zeros), c.beyond));
  pattern = non_digits & _blsmsk_u32(ends);
  const Shape& shape = shapes.at(pattern);
  if (shape.pattern != pattern) [[unlikely]]
    return Met::unknown_shape;
  const std::uint32_t marked = bits(_mm256_cmpeq_epi8(window, load_window(&shape.marks)));
  const std::uint32_t missed = shape.checked & ~marked;
  if (missed != 0) [[unlikely]] {
    if (missed != std::uint64_t{1} << (stop - p) || *stop != '\n') return Met::other;
    convert(p, stop, shape, c, take);
    return Met::line_end;
  }
  convert(p, stop, shape, c, take);
  return Met::blank;
}

// Where to go on after a pair from p to `stop` that no blank follows.
inline const char* after(Met met, const char* p, const char* stop) { return met == Met::line_end ? stop : p; }

// As read_plain_pairs, until a shape is new: then `unknown` becomes its pattern.
template <class Take>
[[gnu::always_inline]] inline const char* read_known(const char* p, const char* end, const Shapes& shapes,
                                                     std::uint32_t& unknown, Take take) {
  const Constants constants;
  while (end - p >= kPlainReach) {
    // Blanks and line ends, and other bytes that no plain number has.
    const std::uint32_t ends = bits(_mm256_cmpgt_epi8(constants.after_blank, load_window(p)));
    const std::uint32_t others = _blsr_u32(ends);
    const std::uint32_t size = _tzcnt_u32(ends), sizes = _tzcnt_u32(others);
    const char* const stop = p + size;
    Met met = read(p, stop, ends, shapes, constants, unknown, take);
    if (met != Met::blank) [[unlikely]]
      return unknown = met == Met::unknown_shape ? unknown : 0, after(met, p, stop);
    const char* const next = stop + 1;
    if (others == 0) [[unlikely]] {  // the next one is longer than the window
      p = next;
      continue;
    }
    const char* const last = p + sizes;
    met = read(next, last, ends >> (size + 1), shapes, constants, unknown, take);
    if (met != Met::blank) [[unlikely]]
      return unknown = met == Met::unknown_shape ? unknown : 0, after(met, next, last);
    p = last + 1;
  }
  unknown = 0;
  return p;
}

}  // namespace plain

// Reads as many pairs as are plain; `take` is given the two numbers of each. Returns where it stopped: before
// what is not plain, or at the line end behind the last pair. `begin`: where the text begins.
template <class Take>
[[gnu::always_inline]] inline const char* read_plain_pairs(const char* begin, const char* p, const char* end,
                                                           Shapes& shapes, Take take) {
  if (p - begin < kPlainBehind || !is_digit(*p)) return p;
  std::uint32_t unknown = 0;
  do {
    p = plain::read_known(p, end, shapes, unknown, take);
  } while (unknown != 0 && shapes.learn(p, unknown));
  return p;
}

}  // namespace skn::text
#endif
