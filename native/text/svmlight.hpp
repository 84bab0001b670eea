// svmlight/LIBSVM text → CSR arrays: `label [qid:N] index:value index:value … [# comment]`, a row per line.
//
// The kernel works on a chunk of whole lines and writes into buffers that the caller has sized with
// `bounds`, so it neither allocates per row nor checks capacity per value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "text/count_bytes.hpp"
#include "text/number.hpp"
#include "text/plain_pairs.hpp"
#include "text/short_pairs.hpp"

namespace skn::svmlight {

using text::is_digit;
using text::names_non_finite;
using text::NumberError;
using text::read_digits;

// What may follow a number or an index:value pair.
struct EndsToken {
  bool operator()(char c) const { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#'; }
};
inline constexpr EndsToken ends_token;

enum class Error {
  none,
  label_missing,
  label_syntax,
  label_not_finite,
  qid_syntax,
  pair_syntax,
  index_syntax,
  index_negative,
  index_too_large,
  value_syntax,
  value_not_finite,
  number_range,
  line_too_long,
};

inline const char* describe(Error error) {
  switch (error) {
    case Error::none:
      return "";
    case Error::label_missing:
      return "expected a label before the first index:value";
    case Error::label_syntax:
      return "expected a number as the label";
    case Error::label_not_finite:
      return "expected a finite number as the label";
    case Error::qid_syntax:
      return "expected a non-negative integer after 'qid:'";
    case Error::pair_syntax:
      return "expected index:value";
    case Error::index_syntax:
      return "expected an integer index before ':'";
    case Error::index_negative:
      return "expected a non-negative index before ':'";
    case Error::index_too_large:
      return "index too large: must be at most 2^62";
    case Error::value_syntax:
      return "expected a number after ':'";
    case Error::value_not_finite:
      return "expected a finite number after ':'";
    case Error::number_range:
      return "number out of range";
    case Error::line_too_long:
      return "line too long";
  }
  return "";
}

struct Bounds {
  std::size_t rows, nonzeros;
};

// Enough room for whatever [begin, end) holds: a row needs a line, a value needs a colon. Counting costs
// a few percent of parsing and keeps batches free of slack.
inline Bounds bounds(const char* begin, const char* end) {
  const auto line_ends = [](const auto& bytes, auto& count) { text::count_true(bytes == '\n', count); };
  const auto colons = [](const auto& bytes, auto& count) { text::count_true(bytes == ':', count); };
  const auto [rows, nonzeros] = text::count_bytes(begin, end, line_ends, colons);
  return {rows + 1, nonzeros};
}

// Room for `Bounds::rows + 1` offsets, `nonzeros` indices and values, `rows` labels.
struct Arrays {
  std::int64_t* indptr;
  std::int64_t* indices;
  double* data;
  double* labels;
};

struct Outcome {
  std::size_t rows = 0, nonzeros = 0;
  std::size_t lines = 0;      // all lines before the bad one, blank ones and comments included
  std::size_t next = 0;       // where the line after the bad one begins, or the end
  std::int64_t columns = 0;   // 1 + the largest index
  Error error = Error::none;  // on the line after `lines`; the rows before it are good
  std::size_t column = 0;     // of the error, in bytes from 1
  std::string token;          // what stands there, cut to a length that suits a message
};

class Parser {
 public:
  Parser(Arrays out, std::size_t max_line_bytes) : out_(out), max_line_bytes_(max_line_bytes) {
    out_.indptr[0] = 0;
  }

  // Parses [begin, end), whose last byte is '\n'. False: stopped at an error.
  bool parse(const char* begin, const char* end) {
    begin_ = p_ = begin;
    end_ = end;
    while (p_ < end_) {
      const char* const line = p_;
      const bool good = parse_line();
      // After an error the rest of the line is measured too: whether a line is too long must not depend
      // on what is wrong inside it.
      if (!good) to_line_end();
      if (static_cast<std::size_t>(p_ - line) > max_line_bytes_) {
        result_.error = Error::line_too_long;
        where_ = line;
      }
      if (result_.error != Error::none) return stop(line);
      ++p_;
      ++result_.lines;
      if (has_label_) {
        out_.labels[result_.rows] = label_;
        out_.indptr[++result_.rows] = static_cast<std::int64_t>(nonzeros_);
        result_.nonzeros = nonzeros_;
        result_.columns = std::max(result_.columns, largest_ + 1);
      }
    }
    return true;
  }

  const Outcome& outcome() const { return result_; }

  // Behind the line at which parsing stopped.
  const char* next() const { return p_ + 1; }

 private:
  void skip_blanks() {
    while (*p_ == ' ' || *p_ == '\t') ++p_;
  }

  void to_line_end() {
    p_ = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
  }

  // At '\n', or moved there over "\r" or a comment. A '\r' elsewhere is content, hence an error.
  bool at_line_end() {
    if (*p_ == '\r' && p_[1] == '\n') ++p_;
    if (*p_ == '#') to_line_end();
    return *p_ == '\n';
  }

  // One line, up to its '\n'.
  bool parse_line() {
    has_label_ = false;
    skip_blanks();
    if (at_line_end()) return true;
    if (!parse_label()) return false;
    skip_blanks();
    if (*p_ == 'q' && !parse_qid()) return false;
    has_label_ = parse_pairs();
    return has_label_;
  }

  bool parse_label() {
    const char* const start = p_;
    const NumberError error = text::read_number(p_, end_, label_, ends_token);
    if (error == NumberError::none) return true;
    if (error == NumberError::range) return fail(Error::number_range, start);
    const char* colon = start;
    while (is_digit(*colon)) ++colon;
    if (*colon == ':') return fail(Error::label_missing, start);
    return fail(names_non_finite(start) ? Error::label_not_finite : Error::label_syntax, start);
  }

  // The query number of ranking data, which no learner here uses.
  bool parse_qid() {
    if (p_[1] != 'i' || p_[2] != 'd' || p_[3] != ':') return fail_index(p_);
    const char* const number = p_ + 4;
    p_ = number + (*number == '+');
    if (!is_digit(*p_)) return fail(Error::qid_syntax, number);
    while (is_digit(*p_)) ++p_;
    return ends_token(*p_) || fail(Error::qid_syntax, number);
  }

  // The inner loop: all pairs up to the line's end, with its state in locals, hence in registers.
  bool parse_pairs() {
    const char* p = p_;
    const char* const end = end_;
    std::int64_t* indices = out_.indices + nonzeros_;
    double* data = out_.data + nonzeros_;
    std::int64_t largest = -1;
    while (true) {
      while (*p == ' ' || *p == '\t') ++p;
#ifdef SKN_HAS_WINDOWS
      const auto take = [&](std::uint64_t index, double value) __attribute__((always_inline)) {
        *indices++ = static_cast<std::int64_t>(index);
        *data++ = value;
        largest = std::max(largest, static_cast<std::int64_t>(index));
      };
#ifdef SKN_HAS_PLAIN_PAIRS
      p = text::read_plain_pairs(begin_, p, end, shapes_, take);
#endif
      p = text::read_short_pairs(p, end, ends_token, take);
      while (*p == ' ' || *p == '\t') ++p;
#endif
      std::uint64_t index = 0;
      const char* const start = p;
      p = read_digits(p, end, index);
      // 18 digits always fit; line ends, signs, longer and malformed indices take the careful path.
      if (*p != ':' || p == start || p - start > 18) [[unlikely]] {
        p_ = start;
        if (at_line_end()) break;
        if (!parse_unusual_index(index)) return false;
        p = p_;
      }
      const char* const number = ++p;
      const NumberError error = text::read_number(p, end, *data, ends_token);
      if (error != NumberError::none) [[unlikely]] {
        if (error == NumberError::range) return fail(Error::number_range, number);
        return fail(names_non_finite(number) ? Error::value_not_finite : Error::value_syntax, number);
      }
      ++data;
      *indices++ = static_cast<std::int64_t>(index);
      largest = std::max(largest, static_cast<std::int64_t>(index));
    }
    nonzeros_ = static_cast<std::size_t>(data - out_.data);
    largest_ = largest;
    return true;
  }

  bool parse_unusual_index(std::uint64_t& index) {
    const char* const start = p_;
    p_ += *p_ == '+';
    if (!is_digit(*p_)) return fail_index(start);
    while (*p_ == '0') ++p_;
    const char* const leading = p_;
    index = 0;
    p_ = read_digits(p_, end_, index);
    if (*p_ != ':') return fail_index(start);
    // 19 digits cannot wrap around 2^64; more exceed 2^62 anyway.
    if (p_ - leading > 19 || index > std::uint64_t{1} << 62) return fail(Error::index_too_large, start, ':');
    return true;
  }

  // Says what is wrong with a token that should have been index:value and has no integer before a colon.
  bool fail_index(const char* start) {
    const char* p = start;
    while (*p != ':' && !ends_token(*p)) ++p;
    if (*p != ':') return fail(Error::pair_syntax, start);
    const bool negative = *start == '-' && p > start + 1 && std::all_of(start + 1, p, is_digit);
    return fail(negative ? Error::index_negative : Error::index_syntax, start, ':');
  }

  // Notes the error; the token shown ends at a blank, at the line's end or at `until`.
  bool fail(Error error, const char* where, char until = '\n') {
    result_.error = error;
    where_ = where;
    const char* p = where;
    while (p - where < 80 && *p != until && !(ends_token(*p) && (*p != '\r' || p[1] == '\n'))) ++p;
    result_.token.assign(where, p);
    return false;
  }

  bool stop(const char* line) {
    result_.column = static_cast<std::size_t>(where_ - line) + 1;
    if (result_.error == Error::line_too_long) result_.token.clear();
    return false;
  }

  Arrays out_;
  std::size_t max_line_bytes_;
  const char* begin_ = nullptr;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  const char* where_ = nullptr;
  std::size_t nonzeros_ = 0;  // including those of the row in progress
  std::int64_t largest_ = -1;
  double label_ = 0.0;
  bool has_label_ = false;
#ifdef SKN_HAS_PLAIN_PAIRS
  text::Shapes shapes_;
#endif
  Outcome result_;
};

// Parses a chunk of whole lines; the last one may lack its '\n'. Comments may hold any bytes.
inline Outcome parse(const char* begin, const char* end, Arrays out, std::size_t max_line_bytes) {
  Parser parser(out, max_line_bytes);
  const char* tail = end;
  while (tail > begin && tail[-1] != '\n') --tail;
  const char* next = end;
  if (!parser.parse(begin, tail)) {
    next = parser.next();
  } else if (tail < end) {
    std::string last(tail, end);
    last += '\n';
    parser.parse(last.data(), last.data() + last.size());
  }
  Outcome result = parser.outcome();
  result.next = static_cast<std::size_t>(next - begin);
  return result;
}

}  // namespace skn::svmlight
