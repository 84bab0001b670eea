// Where fields, lines and quotes end in delimited text, 64 bytes at a time: a bit for each byte.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "text/window.hpp"

namespace skn::csv {

class FieldMarks {
 public:
  FieldMarks(char delimiter, char quote) : delimiter_(delimiter), quote_(quote) {}

  // Before another text, which may lie where the last one did.
  void begin(const char* end) {
    base_ = nullptr;
    end_ = end;
  }

  // The first delimiter or line end from p on; there is one.
  const char* end_of_field(const char* p) {
    return next(p, [this] { return ends_; });
  }

  // The first quote from p on; the end of the text if there is none.
  const char* next_quote(const char* p) {
    return next(p, [this] { return quotes_; });
  }

 private:
  static constexpr std::ptrdiff_t kBytes = 64;

  template <class Bits>
  const char* next(const char* p, Bits bits) {
    while (p < end_) {
      if (base_ == nullptr || p < base_ || p - base_ >= kBytes) look_at(p);
      if (const std::uint64_t found = bits() >> (p - base_)) return p + std::countr_zero(found);
      p = base_ + kBytes;
    }
    return end_;
  }

  void look_at(const char* p) {
    base_ = p;
    ends_ = quotes_ = 0;
#ifdef SKN_HAS_WINDOWS
    if (end_ - p >= kBytes) {
      for (int i = 0; i < kBytes / text::Window::kBytes; ++i) {
        const text::Window window(p + i * text::Window::kBytes);
        ends_ |= window.any_of(delimiter_, '\n', '\r') << i * text::Window::kBytes;
        quotes_ |= window.any_of(quote_) << i * text::Window::kBytes;
      }
      return;
    }
#endif
    const std::ptrdiff_t size = std::min(kBytes, end_ - p);
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      const bool ends = p[i] == delimiter_ || p[i] == '\n' || p[i] == '\r';
      ends_ |= std::uint64_t{ends} << i;
      quotes_ |= std::uint64_t{p[i] == quote_} << i;
    }
  }

  char delimiter_, quote_;
  const char *base_ = nullptr, *end_ = nullptr;
  std::uint64_t ends_ = 0, quotes_ = 0;
};

}  // namespace skn::csv
