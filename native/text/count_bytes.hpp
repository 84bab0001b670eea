// How often some bytes occur in a text: what has to be known before there is room for what it says.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skn::text {

// Counts where a comparison of vectors is true. Vectors go in and out by reference: how they are handed over
// by value depends on the processor.
template <class Comparison, class Count>
[[gnu::always_inline]] inline void count_true(const Comparison& its, Count& count) {
  count -= reinterpret_cast<const Count&>(its);  // true is −1
}

// For each of `tests`, of how many bytes it is true. A test is given 32 bytes at a time, as a vector, and
// counts its comparisons in another; that is in bytes, for as long as these cannot overflow.
template <class... Tests>
std::array<std::size_t, sizeof...(Tests)> count_bytes(const char* begin, const char* end, Tests... tests) {
  using Bytes [[gnu::vector_size(32)]] = std::uint8_t;
  constexpr std::ptrdiff_t kBytes = sizeof(Bytes), kRun = 254;  // and a last one
  std::array<std::size_t, sizeof...(Tests)> counts{};
  while (begin < end) {
    Bytes run[sizeof...(Tests)] = {};
    const auto add = [&](const Bytes& bytes) {
      std::size_t test = 0;
      (tests(bytes, run[test++]), ...);
    };
    Bytes bytes;
    const char* const stop = begin + std::min((end - begin) / kBytes, kRun) * kBytes;
    for (; begin < stop; begin += kBytes) {
      std::memcpy(&bytes, begin, sizeof bytes);
      add(bytes);
    }
    if (end - begin < kBytes) {
      bytes = Bytes{};  // zeros behind the end
      std::memcpy(&bytes, begin, static_cast<std::size_t>(end - begin));
      add(bytes);
      begin = end;
    }
    for (std::size_t test = 0; test < sizeof...(Tests); ++test)
      for (std::size_t i = 0; i < sizeof bytes; ++i) counts[test] += run[test][i];
  }
  return counts;
}

}  // namespace skn::text
