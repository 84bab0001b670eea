// Delimited text → rows: records into fields, fields into features.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/cells.hpp"
#include "text/field_marks.hpp"
#include "text/table_rows.hpp"

namespace skn::csv {

// The fields of one record. What is unquoted is not copied.
class Record {
 public:
  Record(char delimiter, char quote) : delimiter_(delimiter), quote_(quote), marks_(delimiter, quote) {}

  // Before records of a text that ends there, with a line end.
  void begin(const char* end) { marks_.begin(end); }

  std::size_t size() const { return fields_.size(); }  // 0: a blank line
  std::int64_t lines() const { return lines_; }

  std::string_view operator[](std::size_t at) const {
    const Field& field = fields_[at];
    return {field.copied ? copies_.data() + field.begin : text_ + field.begin, field.size};
  }

  // Behind all fields of the record that any byte may be read of.
  const char* end(std::size_t at, const char* text_end) const {
    return fields_[at].copied ? copies_.data() + copies_.size() : text_end;
  }

  // The record at p, which [p, end) has a line end of; where the next begins, or null within open quotes.
  const char* read(const char* p, const char* end) {
    text_ = p;
    lines_ = 1;
    fields_.clear();
    copies_.clear();
    if (*p == '\n' || *p == '\r') return behind_line(p, end);
    while (true) {
      p = *p == quote_ && quote_ != 0 ? read_quoted(p, end) : read_plain(p);
      if (p == nullptr) return nullptr;
      if (*p != delimiter_) return behind_line(p, end);
      ++p;
    }
  }

 private:
  struct Field {
    std::size_t begin, size;
    bool copied;
  };

  bool ends_field(char c) const { return c == delimiter_ || c == '\n' || c == '\r'; }

  const char* read_plain(const char* p) {
    const char* const end = marks_.end_of_field(p);
    fields_.push_back({static_cast<std::size_t>(p - text_), static_cast<std::size_t>(end - p), false});
    return end;
  }

  // What is in quotes, two of which mean one, and what stands behind them.
  const char* read_quoted(const char* p, const char* end) {
    const char* const begin = ++p;
    bool copied = false;
    std::size_t copy = copies_.size();
    const char* part = begin;
    while (true) {
      const char* const quoted = p;
      p = marks_.next_quote(p);
      lines_ += std::count(quoted, p, '\n');
      if (p >= end) return nullptr;
      if (p + 1 >= end || p[1] != quote_) break;
      copied = true;
      copies_.append(part, ++p);  // with one of them
      part = ++p;
    }
    const char* const closing = p++;
    if (p >= end) return nullptr;  // only where the text has no line end
    if (!copied && ends_field(*p)) {
      fields_.push_back(
          {static_cast<std::size_t>(begin - text_), static_cast<std::size_t>(closing - begin), false});
      return p;
    }
    copies_.append(part, closing);
    const char* const rest = p;
    p = marks_.end_of_field(p);
    copies_.append(rest, p);
    fields_.push_back({copy, copies_.size() - copy, true});
    copies_ += '\n';  // ends a number
    return p;
  }

  static const char* behind_line(const char* p, const char* end) {
    if (*p == '\r' && p + 1 < end && p[1] == '\n') ++p;
    return p + 1;
  }

  char delimiter_, quote_;
  FieldMarks marks_;
  const char* text_ = nullptr;
  std::int64_t lines_ = 1;
  std::vector<Field> fields_;
  std::string copies_;
};

// What a field is, if not a column of features by its number.
enum Role : std::int32_t { kDropped = -1, kLabel = -2, kWeight = -3, kTag = -4 };

enum class Stop : std::uint8_t { end, open, fields, cell, label, weight };

struct Outcome {
  Stop why = Stop::end;
  std::size_t at = 0, next = 0;     // the record where it stopped, and the one behind it
  std::int64_t lines = 0, own = 0;  // before that record, and of it
  std::int64_t first = -1;          // lines before the first row that was added
  std::size_t fields = 0;           // of that record
  std::size_t field = 0;            // which of them
  std::string cell;                 // and what it has
};

class Parser {
 public:
  Parser(char delimiter, char quote, std::vector<std::int32_t> roles)
      : record_(delimiter, quote), roles_(std::move(roles)) {
    const auto place = [this](std::int32_t role) {
      return static_cast<std::size_t>(std::find(roles_.begin(), roles_.end(), role) - roles_.begin());
    };
    label_ = place(kLabel);
    weight_ = place(kWeight);
    tag_ = place(kTag);
  }

  // Adds the records of [begin + at, end), whose last byte is a line end, up to the first that has something
  // to ask for or that is wrong: of that no trace is left.
  Outcome parse(table::Rows& rows, const char* begin, const char* end, std::size_t at) {
    Outcome out;
    const char* p = begin + at;
    record_.begin(end);
    while (p < end) {
      out.at = static_cast<std::size_t>(p - begin);
      rows.expect(out.at, static_cast<std::size_t>(end - begin));
      const char* const next = record_.read(p, end);
      if (next == nullptr) return out.why = Stop::open, out;
      out.next = static_cast<std::size_t>(next - begin);
      out.own = record_.lines();
      out.fields = record_.size();
      if (record_.size() > 0) {
        out.why = record_.size() == roles_.size() ? row(rows, end, out) : Stop::fields;
        if (out.why != Stop::end) {
          rows.abandon();
          return out;
        }
      }
      out.lines += out.own;
      p = next;
    }
    out.at = static_cast<std::size_t>(p - begin);
    return out;
  }

  // The different cells of each of some fields in the first records, as far as they tell its kind: of the
  // numbers that are neither 0 nor 1 the first is enough, and nothing is after what is surely a category,
  // unless `all` are wanted.
  std::vector<std::vector<std::string>> look(const table::Rows& rows, const char* begin, const char* end,
                                             const std::vector<std::size_t>& wanted, std::size_t records,
                                             bool all) {
    std::vector<std::unordered_set<std::string>> seen(wanted.size());
    std::vector<std::vector<std::string>> cells(wanted.size());
    std::vector<bool> has_number(wanted.size()), is_category(wanted.size());
    record_.begin(end);
    for (const char* p = begin; p < end && records > 0;) {
      p = record_.read(p, end);
      if (p == nullptr) break;
      if (record_.size() == 0) continue;
      --records;
      if (record_.size() != roles_.size()) continue;
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        if (is_category[k]) continue;
        const std::string_view cell = record_[wanted[k]];
        if (rows.is_missing(cell)) continue;
        if (!all && tells_number(cell)) {
          if (has_number[k]) continue;
          has_number[k] = true;
        }
        is_category[k] = !all && tells_category(cell);
        if (auto [place, is_new] = seen[k].emplace(cell); is_new) cells[k].push_back(*place);
      }
    }
    return cells;
  }

 private:
  // -?digits[.digits], not padded, and neither 0 nor 1.
  static bool tells_number(std::string_view cell) {
    std::size_t at = cell[0] == '-';
    const std::size_t first = at;
    while (at < cell.size() && text::is_digit(cell[at])) ++at;
    if (at == first || (cell[first] == '0' && at > first + 1)) return false;
    if (at < cell.size() && cell[at] == '.') {
      const std::size_t point = at++;
      while (at < cell.size() && text::is_digit(cell[at])) ++at;
      if (at == point + 1) return false;
    }
    return at == cell.size() && cell != "0" && cell != "1";
  }

  // Certainly neither a number nor true or false: a sign behind a digit, a colon, or a letter that none of
  // these begins with.
  static bool tells_category(std::string_view cell) {
    const char first = cells::lower(cell[0]);
    if (first >= 'a' && first <= 'z' && std::string_view("tfyni").find(first) == std::string_view::npos)
      return true;
    for (std::size_t at = 1; at < cell.size(); ++at)
      if (cell[at] == ':' || (cell[at] == '-' && text::is_digit(cell[at - 1]))) return true;
    return false;
  }

  // Label and weight come first: where they are wrong the rest is not looked at.
  Stop row(table::Rows& rows, const char* end, Outcome& out) {
    double label = std::numeric_limits<double>::quiet_NaN(), weight = 1.0;
    const std::size_t none = roles_.size();
    if (label_ < none && !rows.label_of(record_[label_], record_.end(label_, end), label))
      return stopped(Stop::label, label_, out);
    if (weight_ < none && !rows.weight_of(record_[weight_], record_.end(weight_, end), weight))
      return stopped(Stop::weight, weight_, out);
    for (std::size_t k = 0; k < roles_.size(); ++k) {
      if (roles_[k] < 0) continue;
      table::Column& column = rows.columns[static_cast<std::size_t>(roles_[k])];
      if (!rows.add_cell(column, record_[k], record_.end(k, end))) return stopped(Stop::cell, k, out);
    }
    rows.commit(label, weight, tag_ < none ? record_[tag_] : std::string_view());
    if (out.first < 0) out.first = out.lines;
    return Stop::end;
  }

  Stop stopped(Stop why, std::size_t field, Outcome& out) {
    out.field = field;
    out.cell = record_[field];
    return why;
  }

  Record record_;
  std::vector<std::int32_t> roles_;
  std::size_t label_, weight_, tag_;  // fields; as many as there are: none
};

}  // namespace skn::csv
