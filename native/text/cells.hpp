// What a cell of a table means, for the forms that are nearly all there are. `features/kinds.py` defines it;
// what is not decided here is asked there, once for each different cell.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/number.hpp"

namespace skn::cells {

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Without ASCII blanks at both ends.
inline std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

inline bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  if (text.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (lower(text[i]) != lower_case[i]) return false;
  return true;
}

// A date with a time, `2024-01-31T12:30:00.5Z`.
struct Moment {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  std::string_view fraction;  // without zeros at its end
  bool zone = false;          // UTC
  bool offset = false;        // another time zone

  bool midnight() const { return hour == 0 && minute == 0 && second == 0; }

  bool valid() const {
    constexpr std::array<int, 12> days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return false;
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap);
  }

  // From the first of January 2000, a Saturday. Years begin in March here, so that leap days are their last.
  std::int64_t days() const {
    const std::int64_t y = month > 2 ? year : year - 1;
    const std::int64_t months = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * months + 2) / 5 + day - 1 - 730425;
  }
};

// Reads `count` digits.
inline bool read_digits(std::string_view text, std::size_t at, std::size_t count, int& value) {
  if (at + count > text.size()) return false;
  value = 0;
  for (; count > 0; --count, ++at) {
    if (!text::is_digit(text[at])) return false;
    value = 10 * value + (text[at] - '0');
  }
  return true;
}

inline bool read_date(std::string_view text, Moment& m) {
  return text.size() >= 10 && text[4] == '-' && text[7] == '-' && read_digits(text, 0, 4, m.year) &&
         read_digits(text, 5, 2, m.month) && read_digits(text, 8, 2, m.day);
}

// False: not of this form.
inline bool read_moment(std::string_view text, Moment& m) {
  if (text.size() < 16 || (text[10] != 'T' && text[10] != ' ') || text[13] != ':') return false;
  if (!read_date(text, m) || !read_digits(text, 11, 2, m.hour) || !read_digits(text, 14, 2, m.minute))
    return false;
  std::size_t at = 16;
  if (at < text.size() && text[at] == ':') {
    if (!read_digits(text, at + 1, 2, m.second)) return false;
    at += 3;
    if (at < text.size() && text[at] == '.') {
      const std::size_t begin = ++at;
      while (at < text.size() && text::is_digit(text[at])) ++at;
      if (at == begin) return false;
      m.fraction = text.substr(begin, at - begin);
      while (!m.fraction.empty() && m.fraction.back() == '0') m.fraction.remove_suffix(1);
    }
  }
  while (at < text.size() && is_blank(text[at])) ++at;
  if (at == text.size()) return true;
  if (text[at] == 'Z') {
    m.zone = true;
    return at + 1 == text.size();
  }
  m.offset = true;
  return text[at] == '+' || text[at] == '-';  // what follows is not looked at
}

// `-?digits.0…`, the digits not padded: how many characters stand before the point, 0 if it is not that.
inline std::size_t whole_digits(std::string_view text) {
  const std::size_t sign = text[0] == '-';
  std::size_t at = sign;
  while (at < text.size() && text::is_digit(text[at])) ++at;
  const std::size_t digits = at - sign;
  if (digits == 0 || (digits > 1 && text[sign] == '0')) return 0;
  if (at + 1 >= text.size() || text[at] != '.') return 0;
  return text.find_first_not_of('0', at + 1) == text.npos ? at : 0;
}

// `12:30:00.5`, with any number of digits behind the point.
inline bool is_time(std::string_view text) {
  int part = 0;
  return text.size() >= 10 && read_digits(text, 0, 2, part) && text[2] == ':' &&
         read_digits(text, 3, 2, part) && text[5] == ':' && read_digits(text, 6, 2, part) && text[8] == '.' &&
         text.find_first_not_of("0123456789", 9) == text.npos;
}

// What means true or false in nearly all tables; false: something else.
inline bool plain_truth(std::string_view text, bool& value) {
  text = stripped(text);
  for (const std::string_view word : {"true", "yes", "1"})
    if (equals_ignoring_case(text, word)) return value = true, true;
  for (const std::string_view word : {"false", "no", "0"})
    if (equals_ignoring_case(text, word)) return value = false, true;
  return false;
}

// Whether a text may be a category of another name: most are not, and need not be taken apart.
inline bool may_have_other_form(std::string_view text) {
  const std::size_t size = text.size();
  return size == 4 || size == 5 || (size > 2 && text.back() == '0') || (size >= 16 && text[4] == '-');
}

// The name of a category, which is the text itself or written to `out`; false: it takes Python to tell.
inline bool category(std::string_view text, std::string& out, std::string_view& name) {
  name = text;
  const std::size_t size = text.size();
  if (size == 4 || size == 5) {
    if (equals_ignoring_case(text, "true")) return name = "true", true;
    if (equals_ignoring_case(text, "false")) return name = "false", true;
  } else if (size >= 16 && text[4] == '-') {
    if (Moment m; read_moment(text, m)) {
      if (m.offset || !m.valid()) return false;
      out.assign(text.substr(0, 10));
      if (m.zone || !m.fraction.empty() || !m.midnight()) {
        out += 'T';
        out += text.substr(11, 5);
        out += text.size() > 16 && text[16] == ':' ? text.substr(16, 3) : std::string_view(":00");
        if (!m.fraction.empty()) (out += '.') += m.fraction;
        if (m.zone) out += 'Z';
      }
      return name = out, true;
    }
  }
  if (size > 2 && text.back() == '0') {
    if (const std::size_t digits = whole_digits(text); digits > 0) {
      name = text.substr(0, digits);
      if (name == "-0") name = "0";
    } else if (is_time(text)) {
      name = text.substr(0, text.find_last_not_of('0') + 1);
      if (name.back() == '.') name.remove_suffix(1);
    }
  }
  return true;
}

// A decimal number, behind which any byte can be read, with blanks around it or none; false: something else.
inline bool plain_number(std::string_view text, const char* end, double& value) {
  text = stripped(text);
  if (text.empty()) return false;
  const char* p = text.data();
  const auto ends = [](char c) { return !text::is_digit(c) && c != '.' && c != 'e' && c != 'E'; };
  const text::NumberError error = text::read_number(p, end, value, ends);
  return error == text::NumberError::none && p == text.data() + text.size();
}

// The same with a decimal comma, or without.
inline bool comma_number(std::string_view text, double& value) {
  std::string copy(stripped(text));
  const std::size_t comma = copy.find(',');
  if (comma != copy.npos) {
    if (comma + 1 == copy.size() || !text::is_digit(copy[comma + 1]) || copy.find('.') != copy.npos)
      return false;
    copy[comma] = '.';
  }
  const std::size_t size = copy.size();
  copy += '\n';
  return plain_number({copy.data(), size}, copy.data() + copy.size(), value);
}

}  // namespace skn::cells
