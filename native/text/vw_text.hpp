// Vowpal Wabbit text → CSR arrays, a row per line:
//
//   [label [importance [base]]] ['tag]|[namespace[:weight]] name[:value] … |namespace …
//
// Names become indices as in hashing.hpp. What Vowpal Wabbit reads with a warning or in a surprising way is
// an error here; docs/formats.md lists the differences. Built like svmlight.hpp: whole lines in, buffers of
// the caller's, sized by `bounds`.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "text/count_bytes.hpp"
#include "text/hashing.hpp"
#include "text/names.hpp"
#include "text/number.hpp"
#include "text/plain_pairs.hpp"
#include "text/short_pairs.hpp"
#include "text/vw_errors.hpp"
#include "text/window.hpp"

namespace skn::vw {

using text::is_digit;
using text::NumberError;

struct Options {
  std::uint64_t mask = (1 << 18) - 1;  // 2^bits − 1
  bool string_values = false;          // name:text is a feature of its own, as in Vowpal Wabbit 9
};

struct Bounds {
  std::size_t rows, nonzeros;
};

// Enough room for whatever [begin, end) holds: a row needs a line, a feature a blank before it.
inline Bounds bounds(const char* begin, const char* end) {
  const auto line_ends = [](const auto& bytes, auto& count) { text::count_true(bytes == '\n', count); };
  const auto blanks = [](const auto& bytes, auto& count) {
    text::count_true((bytes == ' ') | (bytes == '\t'), count);
  };
  const auto [rows, nonzeros] = text::count_bytes(begin, end, line_ends, blanks);
  return {rows + 1, nonzeros};
}

// Room for `Bounds::rows + 1` offsets, `rows` labels, importances and bases, `nonzeros` of the others.
struct Arrays {
  std::int64_t* indptr;
  std::int64_t* indices;
  double* data;
  double* labels;       // NaN where there is none
  double* importances;  // 1 where there is none
  double* bases;        // 0 where there is none
  // May be null: the first byte of each feature's namespace, ' ' for the default; entries in `names`.
  std::uint8_t* spaces;
  std::int64_t* entries;
};

struct Outcome {
  std::size_t rows = 0, nonzeros = 0;
  std::size_t lines = 0;              // all lines before the bad one, blank ones included
  std::size_t next = 0;               // where the line after the bad one begins, or the end
  std::int64_t columns = 0;           // 1 + the largest index
  bool weighted = false;              // some importance is not 1
  bool based = false;                 // some base is not 0
  std::string tags;                   // one after the other
  std::vector<std::size_t> tag_ends;  // of each row; empty when no row has a tag
  Error error = Error::none;          // on the line after `lines`; the rows before it are good
  std::size_t column = 0;             // of the error, in bytes from 1
  std::string token;                  // what stands there, cut to a length that suits a message
};

enum Class : std::uint8_t { inside = 0, ends_word = 1, ends_name = 2 };

// Blanks, '|' and line ends end a word; a ':' ends a name as well.
inline constexpr auto classes = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : {' ', '\t', '|', '\r', '\n'})
    table[static_cast<unsigned char>(c)] = ends_word | ends_name;
  table[static_cast<unsigned char>(':')] = ends_name;
  return table;
}();

// Which words end with what comes as no surprise: a blank, mostly, and a ':' after names that have values.
// Asking for those first spares the inner loop a look into the table.
struct EndsWord {
  bool operator()(char c) const { return c == ' ' || classes[static_cast<unsigned char>(c)] & ends_word; }
};

inline bool ends_a_name(char c) { return c == ':' || classes[static_cast<unsigned char>(c)] & ends_name; }

class Parser {
 public:
  // `names` may be null.
  Parser(Arrays out, Options options, Names* names, std::size_t max_line_bytes)
      : out_(out), options_(options), names_(names), max_line_bytes_(max_line_bytes) {
    out_.indptr[0] = 0;
  }

  // Parses [begin, end), whose last byte is '\n'. False: stopped at an error.
  bool parse(const char* begin, const char* end) {
    begin_ = p_ = begin;
    end_ = end;
    while (p_ < end_) {
      const char* const line = p_;
      const bool good = parse_line();
      if (!good) p_ = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
      if (static_cast<std::size_t>(p_ - line) > max_line_bytes_) {
        result_.error = Error::line_too_long;
        where_ = line;
      }
      if (result_.error != Error::none) return stop(line);
      ++p_;
      ++result_.lines;
      if (is_row_) finish_row();
    }
    return true;
  }

  const Outcome& outcome() const { return result_; }
  const char* next() const { return p_ + 1; }

 private:
  struct Word {
    const char *begin, *end;
  };

  bool at_line_end() {
    if (*p_ == '\r' && p_[1] == '\n') ++p_;
    return *p_ == '\n';
  }

  bool parse_line() {
    is_row_ = false;
    nonzeros_ = result_.nonzeros;
    largest_ = -1;
    if (*p_ == '\xef' && p_[1] == '\xbb' && p_[2] == '\xbf') p_ += 3;  // a byte order mark
    const char* const line = p_;
    while (*p_ == ' ' || *p_ == '\t') ++p_;
    if (at_line_end()) return true;
    p_ = line;
    is_row_ = parse_label() && parse_namespaces();
    return is_row_;
  }

  // All before the first '|'. The last word is a tag if it touches the '|' or begins with a quote.
  bool parse_label() {
    std::array<Word, 5> words;
    std::size_t count = 0;
    while (*p_ != '|') {
      if (*p_ == ' ') {
        ++p_;
        continue;
      }
      if (*p_ == '\t') return fail(Error::tab_before_bar, p_);
      const char* const begin = p_;
      if (at_line_end()) return fail(Error::bar_missing, begin);
      if (*p_ == '\r') return fail(Error::carriage_return, p_);
      while (!EndsWord{}(*p_)) ++p_;
      if (count == words.size()) return fail(Error::too_many_words, begin);
      words[count++] = {begin, p_};
    }
    tag_ = {};
    if (count > 0 && (words[count - 1].end == p_ || *words[count - 1].begin == '\'')) {
      const Word& word = words[--count];
      tag_ = {word.begin, static_cast<std::size_t>(word.end - word.begin)};
      if (tag_.front() == '\'') tag_.remove_prefix(1);
    }
    if (count > 3) return fail(Error::too_many_words, words[3].begin);
    label_ = std::numeric_limits<double>::quiet_NaN();
    importance_ = 1.0;
    base_ = 0.0;
    if (count > 0 && !read(words[0].begin, label_, Error::label_syntax, Error::label_not_finite)) {
      const bool several =
          std::any_of(words[0].begin, words[0].end, [](char c) { return c == ',' || c == ':'; });
      if (result_.error == Error::label_syntax && several) result_.error = Error::label_several;
      return false;
    }
    if (count > 1) {
      if (!read(words[1].begin, importance_, Error::importance_syntax, Error::importance_not_finite))
        return false;
      if (importance_ < 0.0) return fail(Error::importance_negative, words[1].begin);
    }
    return count < 3 || read(words[2].begin, base_, Error::base_syntax, Error::base_not_finite);
  }

  bool read(const char* begin, double& value, Error syntax, Error not_finite) {
    const char* p = begin;
    const NumberError error = text::read_number(p, end_, value, EndsWord{});
    return error == NumberError::none || fail_number(error, begin, syntax, not_finite);
  }

  bool parse_namespaces() {
    while (*p_ == '|') {
      ++p_;
      if (!parse_namespace_name()) return false;
      if (!(names_ != nullptr ? parse_features<true>() : parse_features<false>())) return false;
    }
    return true;
  }

  bool parse_namespace_name() {
    space_ = {};
    space_hash_ = 0;
    first_byte_ = ' ';
    weight_ = 1.0;
    anonymous_ = 0;
    if (EndsWord{}(*p_)) return true;
    if (*p_ == ':') return fail(Error::namespace_name, p_);
    const char* const begin = p_;
    while (!ends_a_name(*p_)) ++p_;
    space_ = {begin, static_cast<std::size_t>(p_ - begin)};
    first_byte_ = static_cast<std::uint8_t>(*begin);
    space_hash_ = hashing::name_hash(space_, 0);
    if (*p_ != ':') return true;
    const char* const number = ++p_;
    const NumberError error = text::read_number(p_, end_, weight_, EndsWord{});
    return error == NumberError::none ||
           fail_number(error, number, Error::weight_syntax, Error::weight_not_finite);
  }

#ifdef SKN_HAS_WINDOWS
  // As many features as are short, of a namespace without a weight; then come blanks, or what is not short.
  const char* read_short_features(const char* p, const char* end, std::size_t& nonzeros,
                                  std::int64_t& largest) {
    std::int64_t* index = out_.indices + nonzeros;
    double* data = out_.data + nonzeros;
    const std::uint64_t mask = options_.mask, space_hash = space_hash_;
    std::int64_t most = largest;
    const auto take = [&](std::uint64_t name, double value) __attribute__((always_inline)) {
      const auto masked = static_cast<std::int64_t>((name + space_hash) & mask);
      if (value == 0.0) [[unlikely]]
        return;  // as good as absent
      *index++ = masked;
      *data++ = value;
      most = std::max(most, masked);
    };
#ifdef SKN_HAS_PLAIN_PAIRS
    p = text::read_plain_pairs(begin_, p, end, shapes_, take);
#endif
    p = text::read_short_pairs(p, end, EndsWord{}, take);
    largest = most;
    nonzeros = static_cast<std::size_t>(data - out_.data);
    return read_short_names(p, end, nonzeros, largest);
  }

  // The same where names are not numbers. Those without values are read several from a window.
  const char* read_short_names(const char* p, const char* end, std::size_t& nonzeros,
                               std::int64_t& largest) const {
    std::int64_t* index = out_.indices + nonzeros;
    double* data = out_.data + nonzeros;
    const std::uint64_t mask = options_.mask;
    const auto seed = static_cast<std::uint32_t>(space_hash_);
    std::int64_t most = largest;
    const auto take = [&](const char* name, std::size_t size, double value) __attribute__((always_inline)) {
      const auto masked = static_cast<std::int64_t>(hashing::murmur3(name, size, seed) & mask);
      *index = masked;
      *data = value;
      const bool kept = value != 0.0;
      index += kept;
      data += kept;
      most = std::max(most, kept ? masked : std::int64_t{-1});
    };
    for (bool more = true; more && end - p >= text::kReach;) {
      const text::Window window(p);
      const std::uint64_t non_digits = window.non_digits();
      std::uint64_t ends = window.blanks() | window.any_of<':', '|'>();
      std::size_t start = 0;  // of the next name
      for (more = false; ends != 0; ends &= ends - 1) {
        const auto stop = static_cast<std::size_t>(std::countr_zero(ends)), size = stop - start;
        const bool is_text = (non_digits >> start & ((std::uint64_t{1} << size) - 1)) != 0;
        more = false;
        if (!is_text) break;  // or none
        if (p[stop] == ' ') [[likely]] {
          take(p + start, size, 1.0);
        } else if (p[stop] == ':') {
          more = start > 0;  // a window of its own
          if (more) break;
          const text::ShortNumber number = text::read_short_number(p, non_digits, stop + 1, 0, EndsWord{});
          if (number.end == 0) break;
          take(p, size, number.value);
          more = p[number.end] == ' ';
          start = number.end + more;
          break;
        } else {
          if (!EndsWord{}(p[stop])) break;
          take(p + start, size, 1.0);
          start = stop;
          break;
        }
        start = stop + 1;
        more = true;
      }
      p += start;
    }
    largest = most;
    nonzeros = static_cast<std::size_t>(data - out_.data);
    return p;
  }

#endif

  // The inner loop: the features of one namespace, up to the next '|' or the line's end.
  template <bool named>
  bool parse_features() {
    const char* p = p_;
    const char* const end = end_;
    const std::uint64_t mask = options_.mask;
    const std::uint64_t space_hash = space_hash_;
    const double weight = weight_;
    std::int64_t* const indices = out_.indices;
    double* const data = out_.data;
    std::size_t nonzeros = nonzeros_;
    std::int64_t largest = largest_;
    while (true) {
      while (*p == ' ' || *p == '\t') ++p;
#ifdef SKN_HAS_WINDOWS
      if (!named && weight == 1.0) {
        p = is_digit(*p) ? read_short_features(p, end, nonzeros, largest)
                         : read_short_names(p, end, nonzeros, largest);
        while (*p == ' ' || *p == '\t') ++p;
      }
#endif
      const char* const start = p;
      std::uint64_t hash = 0;
      p = text::read_digits(p, end, hash);
      hash += space_hash;
      bool anonymous = false;
      // A name of digits is a number; all else is read to its end.
      if (p == start || !ends_a_name(*p)) [[unlikely]] {
        while (!ends_a_name(*p)) ++p;
        anonymous = p == start;
        if (anonymous) {
          if (*p != ':') break;
          hash = space_hash + anonymous_++;
        } else {
          hash = hashing::name_hash({start, static_cast<std::size_t>(p - start)}, space_hash);
        }
      }
      const char* const name_end = p;
      double value = 1.0;
      bool is_text = false;
      if (*p == ':') {
        const char* const number = ++p;
        const NumberError error = text::read_number(p, end, value, EndsWord{});
        if (error != NumberError::none) [[unlikely]] {
          p = number;
          if (!text_value(p, error)) return false;
          is_text = true;
          const std::uint64_t seed =
              hashing::name_hash({start, static_cast<std::size_t>(name_end - start)}, space_hash);
          hash = hashing::name_hash({number, static_cast<std::size_t>(p - number)}, seed);
          value = 1.0;
        } else if (weight != 1.0) {
          value *= weight;
          if (!(std::fabs(value) <= std::numeric_limits<double>::max())) [[unlikely]] {
            return fail(Error::product_range, number);
          }
        }
      } else {
        value = weight;
      }
      if (value == 0.0) continue;  // as good as absent, and so it is in Vowpal Wabbit
      auto index = static_cast<std::int64_t>(hash & mask);
      if constexpr (named)
        index = name(start, is_text ? p : name_end, anonymous && !is_text, index, nonzeros);
      indices[nonzeros] = index;
      data[nonzeros] = value;
      ++nonzeros;
      largest = std::max(largest, index);
    }
    largest_ = largest;
    if (out_.spaces != nullptr) std::fill(out_.spaces + nonzeros_, out_.spaces + nonzeros, first_byte_);
    nonzeros_ = nonzeros;
    p_ = p;
    return *p == '|' || at_line_end() || fail(Error::carriage_return, p);
  }

  // A value that is no number may be a text, up to the next blank; then p moves behind it.
  bool text_value(const char*& p, NumberError error) {
    const char* const begin = p;
    const bool like_number = is_digit(*p) || *p == '+' || *p == '-' || *p == '.';
    if (!options_.string_values || error == NumberError::range || like_number || text::names_non_finite(p) ||
        EndsWord{}(*p)) {
      return fail_number(error, begin, Error::value_syntax, Error::value_not_finite);
    }
    while (*p != ' ' && *p != '\t' && *p != '\r' && *p != '\n') ++p;
    return true;
  }

  // Enters a feature into the names, and returns its index.
  std::int64_t name(const char* begin, const char* end, bool anonymous, std::int64_t index, std::size_t at) {
    std::string_view shown(begin, static_cast<std::size_t>(end - begin));
    std::string numbered;
    if (anonymous) {
      numbered = ":" + std::to_string(anonymous_ - 1);
      shown = numbered;
    }
    const std::int64_t entry = names_->named(space_, shown, index);
    if (out_.entries != nullptr) out_.entries[at] = entry;
    return names_->index(entry);
  }

  void finish_row() {
    const std::size_t row = result_.rows;
    out_.labels[row] = label_;
    out_.importances[row] = importance_;
    out_.bases[row] = base_;
    result_.weighted |= importance_ != 1.0;
    result_.based |= base_ != 0.0;
    if (!tag_.empty() && result_.tag_ends.empty()) result_.tag_ends.assign(row, 0);
    if (!tag_.empty() || !result_.tag_ends.empty()) {
      result_.tags += tag_;
      result_.tag_ends.push_back(result_.tags.size());
    }
    out_.indptr[row + 1] = static_cast<std::int64_t>(nonzeros_);
    result_.rows = row + 1;
    result_.nonzeros = nonzeros_;
    result_.columns = std::max(result_.columns, largest_ + 1);
  }

  bool fail_number(NumberError error, const char* begin, Error syntax, Error not_finite) {
    if (error == NumberError::range) return fail(Error::number_range, begin);
    return fail(text::names_non_finite(begin) ? not_finite : syntax, begin);
  }

  // Notes the error and the word that stands there.
  bool fail(Error error, const char* where) {
    result_.error = error;
    where_ = p_ = where;
    const char* p = where;
    while (p - where < 80 && !EndsWord{}(*p)) ++p;
    result_.token.assign(where, p);
    return false;
  }

  bool stop(const char* line) {
    result_.column = static_cast<std::size_t>(where_ - line) + 1;
    if (result_.error == Error::line_too_long) result_.token.clear();
    return false;
  }

  Arrays out_;
  Options options_;
  Names* names_;
  std::size_t max_line_bytes_;
  const char* begin_ = nullptr;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  const char* where_ = nullptr;
  std::size_t nonzeros_ = 0;  // including those of the row in progress
  std::int64_t largest_ = -1;
  bool is_row_ = false;
  double label_ = 0.0, importance_ = 1.0, base_ = 0.0;
  std::string_view tag_;
  // Of the namespace in progress.
  std::string_view space_;
  std::uint64_t space_hash_ = 0;
  std::uint8_t first_byte_ = ' ';
  double weight_ = 1.0;
  std::uint64_t anonymous_ = 0;
#ifdef SKN_HAS_PLAIN_PAIRS
  text::Shapes shapes_;
#endif
  Outcome result_;
};

// Parses a chunk of whole lines; the last one may lack its '\n'.
inline Outcome parse(const char* begin, const char* end, Arrays out, Options options, Names* names,
                     std::size_t max_line_bytes) {
  Parser parser(out, options, names, max_line_bytes);
  const char* tail = end;
  while (tail > begin && tail[-1] != '\n') --tail;
  const char* next = end;
  std::string last(tail, end);
  last += '\n';
  if (!parser.parse(begin, tail)) {
    next = parser.next();
  } else if (tail < end) {
    parser.parse(last.data(), last.data() + last.size());
  }
  Outcome result = parser.outcome();
  result.next = static_cast<std::size_t>(next - begin);
  return result;
}

}  // namespace skn::vw
