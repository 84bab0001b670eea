// The next 32 bytes of a text, looked at together: where digits end, where a name ends. A parser that asks
// its bytes one after the other waits for each answer before it can ask again.
#pragma once

#include <cstddef>
#include <cstdint>

// On processors where this is not written out, reading byte by byte is faster than imitating it.
#ifdef __SSE2__
#include <immintrin.h>
#define SKN_HAS_WINDOWS 1

namespace skn::text {

class Window {
 public:
  static constexpr std::ptrdiff_t kBytes = 32;

  explicit Window(const char* p) {
    for (int i = 0; i < kParts; ++i) parts_[i] = load(p + i * kPart);
  }

  // Bit i is about byte i; bytes behind the window count as no digits.
  std::uint64_t non_digits() const {
    return mask([](Part part) { return beyond_digits(part); }) | ~std::uint64_t{0} << kBytes;
  }

  // The bytes that are blanks or control characters.
  std::uint64_t blanks() const {
    return mask([](Part part) { return at_most_blank(part); });
  }

  // The bytes that are one of these.
  template <char... ones>
  std::uint64_t any_of() const {
    return mask([](Part part) { return (equal(part, ones) | ...); });
  }
  template <class... Bytes>
  std::uint64_t any_of(Bytes... ones) const {
    return mask([=](Part part) { return (equal(part, ones) | ...); });
  }

 private:
#if defined(__AVX2__)
  using Part = __m256i;

  static Part load(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const Part*>(p)); }
  static std::uint32_t bits(Part flags) { return static_cast<std::uint32_t>(_mm256_movemask_epi8(flags)); }
  static Part equal(Part part, char c) { return _mm256_cmpeq_epi8(part, _mm256_set1_epi8(c)); }
  static Part at_most_blank(Part part) {
    return _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(' ')), part);
  }
  // What counts is the highest bit of each byte: '0' becomes 0, then 10 and more become 128 and more.
  static Part beyond_digits(Part part) {
    return _mm256_adds_epu8(_mm256_sub_epi8(part, _mm256_set1_epi8('0')), _mm256_set1_epi8(128 - 10));
  }
#else
  using Part = __m128i;

  static Part load(const char* p) { return _mm_loadu_si128(reinterpret_cast<const Part*>(p)); }
  static std::uint32_t bits(Part flags) { return static_cast<std::uint32_t>(_mm_movemask_epi8(flags)); }
  static Part equal(Part part, char c) { return _mm_cmpeq_epi8(part, _mm_set1_epi8(c)); }
  static Part at_most_blank(Part part) {
    return _mm_cmpeq_epi8(_mm_min_epu8(part, _mm_set1_epi8(' ')), part);
  }
  static Part beyond_digits(Part part) {
    return _mm_adds_epu8(_mm_sub_epi8(part, _mm_set1_epi8('0')), _mm_set1_epi8(128 - 10));
  }
#endif

  template <class Flags>
  std::uint64_t mask(Flags flags) const {
    std::uint32_t result = 0;
    for (int i = 0; i < kParts; ++i) result |= bits(flags(parts_[i])) << i * kPart;
    return result;
  }

  static constexpr int kPart = sizeof(Part), kParts = kBytes / kPart;
  Part parts_[kParts];
};

}  // namespace skn::text
#endif
