// CSR rows → ` index:value index:value …`: numbers as short as they can be without losing a bit. And
// predictions, a line each.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace skn {

struct PairText {
  std::string text;
  std::vector<std::int64_t> ends;  // of each row
};

inline PairText write_pairs(std::span<const std::int64_t> indptr, std::span<const std::int64_t> indices,
                            std::span<const double> data) {
  PairText result;
  result.text.reserve(12 * indices.size());
  char buffer[64];
  for (std::size_t row = 0; row + 1 < indptr.size(); ++row) {
    for (auto k = static_cast<std::size_t>(indptr[row]); k < static_cast<std::size_t>(indptr[row + 1]); ++k) {
      char* p = buffer;
      *p++ = ' ';
      p = std::to_chars(p, buffer + sizeof buffer, indices[k]).ptr;
      *p++ = ':';
      p = std::to_chars(p, buffer + sizeof buffer, data[k]).ptr;
      result.text.append(buffer, p);
    }
    result.ends.push_back(static_cast<std::int64_t>(result.text.size()));
  }
  return result;
}

// A number per line, as "%.9g" has it: nine digits distinguish all float32 values.
inline std::string write_lines(std::span<const double> numbers) {
  constexpr std::size_t kLongest = 24;
  std::string text(kLongest * numbers.size(), '\0');
  char* p = text.data();
  for (const double number : numbers) {
    p = std::to_chars(p, p + kLongest - 1, number, std::chars_format::general, 9).ptr;
    *p++ = '\n';
  }
  text.resize(static_cast<std::size_t>(p - text.data()));
  return text;
}

}  // namespace skn
