// CSR rows → ` index:value index:value …`: numbers as short as they can be without losing a bit.
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

}  // namespace skn
