// JSON lines → rows: an object's members are cells of columns, as in `streams/object_rows.py`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_lines.hpp"
#include "text/table_rows.hpp"

namespace skn::json {

// What keys are, and what becomes of the rest.
struct Roles {
  std::vector<std::string> labels;  // the first that an object has is its label
  std::string weight, tag;
  bool weight_wanted = false;  // in every object
  std::vector<std::string> drop;
  bool only_labels = false;
  table::ByText<std::string> kinds;            // of columns, as far as they are known
  table::ByText<std::uint8_t> column_numbers;  // of those with interactions
};

enum class Stop : std::uint8_t { end, too_long, line, cell, label };

struct Outcome {
  Stop why = Stop::end;
  std::size_t at = 0, next = 0;  // the line where it stopped, and the one behind it
  std::int64_t lines = 0;        // before it
  std::size_t column = 0;        // of the cell
  bool number = false;           // whether it is one
  std::string cell;
};

class Parser {
 public:
  explicit Parser(Roles roles) : roles_(std::move(roles)) {}

  void set_kind(table::Rows& rows, std::string_view key, std::string_view kind) {
    roles_.kinds.insert_or_assign(std::string(key), std::string(kind));
    if (const std::int64_t column = keys_[keys_.find(key)].column; column >= 0)
      rows.set_kind(static_cast<std::size_t>(column), kind);
  }

  // Adds the lines of [begin + at, end), whose last byte is a line end, up to the first that has something to
  // ask for or that is not certainly right: of that no trace is left.
  Outcome parse(table::Rows& rows, const char* begin, const char* end, std::size_t at,
                std::size_t max_bytes) {
    Outcome out;
    const char* p = begin + at;
    while (p < end) {
      const char* const line_end =
          static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
      out.at = static_cast<std::size_t>(p - begin);
      rows.expect(out.at, static_cast<std::size_t>(end - begin));
      out.next = static_cast<std::size_t>(line_end + 1 - begin);
      if (static_cast<std::size_t>(line_end - p) > max_bytes) return out.why = Stop::too_long, out;
      if (!is_blank(p, line_end)) {
        out.why = row(rows, p, line_end, end, out);
        if (out.why != Stop::end) {
          undo(rows);
          return out;
        }
      }
      ++out.lines;
      p = line_end + 1;
    }
    out.at = static_cast<std::size_t>(p - begin);
    return out;
  }

 private:
  static bool is_blank(const char* p, const char* end) {
    while (p < end && is_space(*p)) ++p;
    return p == end;
  }

  void undo(table::Rows& rows) {
    rows.abandon();
    for (; rows.found.size() > found_before_; rows.found.pop_back())
      rows.columns[rows.found.back()].kind = table::Kind::unknown;
  }

  Stop row(table::Rows& rows, const char* p, const char* end, const char* limit, Outcome& out) {
    found_before_ = rows.found.size();
    unsigned char all = 0;
    for (const char* q = p; q < end; ++q) all |= static_cast<unsigned char>(*q);
    if (all >= 0x80 && !is_utf8(p, end)) return Stop::line;
    if (!line_.read(keys_, p, end, limit)) return Stop::line;
    note_new_keys();
    double label = std::numeric_limits<double>::quiet_NaN(), weight = 1.0;
    std::string_view tag;
    const std::int32_t label_key = label_among();
    bool has_weight = false;
    const std::vector<Item>& items = line_.items;
    for (std::size_t at = 0; at < items.size(); at += 1 + items[at].inside) {
      const Item& item = items[at];
      const Key& key = keys_[item.key];
      Stop stop = Stop::end;
      if (label_key >= 0 && key.label == label_key) {
        stop = read_label(rows, item, limit, label, out);
      } else if (key.weight) {
        has_weight = true;
        if (roles_.only_labels) continue;
        if (item.type != Type::number || !(item.value >= 0.0)) return Stop::line;
        weight = item.value;
      } else if (key.tag) {
        if (!roles_.only_labels && !read_tag(item, tag)) return Stop::line;
      } else if (!roles_.only_labels && !key.dropped) {
        stop = member(rows, at, limit, out);
      }
      if (stop != Stop::end) return stop;
    }
    if (roles_.weight_wanted && !has_weight && !roles_.only_labels) return Stop::line;
    rows.commit(label, weight, tag);
    return Stop::end;
  }

  // The roles of keys that were not there before.
  void note_new_keys() {
    for (; noted_ < keys_.size(); ++noted_) {
      Key& key = keys_[noted_];
      key.dropped = std::find(roles_.drop.begin(), roles_.drop.end(), key.text) != roles_.drop.end();
      if (key.dropped) continue;  // it has no other role, then
      const auto label = std::find(roles_.labels.begin(), roles_.labels.end(), key.text);
      if (label != roles_.labels.end()) key.label = static_cast<std::int32_t>(label - roles_.labels.begin());
      key.weight = key.text == roles_.weight;
      key.tag = key.text == roles_.tag;
    }
  }

  std::int32_t label_among() {
    std::int32_t first = -1;
    const std::vector<Item>& items = line_.items;
    for (std::size_t at = 0; at < items.size(); at += 1 + items[at].inside) {
      const std::int32_t label = keys_[items[at].key].label;
      if (label >= 0 && (first < 0 || label < first)) first = label;
    }
    return first;
  }

  // The text of a string; false where half a character is escaped.
  static bool text_of(const Item& item, std::string& scratch, std::string_view& text) {
    text = {item.begin, static_cast<std::size_t>(item.end - item.begin)};
    if (!item.escaped) return true;
    if (!unescape(text, scratch)) return false;
    const std::size_t size = scratch.size();
    scratch += '\n';  // ends a number
    text = {scratch.data(), size};
    return true;
  }

  const char* behind(const Item& item, const char* limit) const {
    return item.escaped ? scratch_.data() + scratch_.size() : limit;
  }

  Stop read_label(table::Rows& rows, const Item& item, const char* limit, double& label, Outcome& out) {
    const bool codes = rows.label_mode == table::Labels::codes;
    if (rows.label_mode == table::Labels::ignored || item.type == Type::null) return Stop::end;
    if (item.type == Type::string) {
      std::string_view text;
      if (!text_of(item, scratch_, text)) return Stop::line;
      return rows.label_of(text, behind(item, limit), label) ? Stop::end
                                                             : asked(Stop::label, text, false, out);
    }
    const bool truth = item.type == Type::yes || item.type == Type::no;
    if (!truth && item.type != Type::number) return Stop::line;
    if (!codes) return label = truth ? item.type == Type::yes : item.value, Stop::end;
    const std::string_view token = truth ? word_of(item) : token_of(item);
    const auto known = rows.known_number_labels.find(token);
    if (known == rows.known_number_labels.end()) return asked(Stop::label, token, true, out);
    return label = known->second, Stop::end;
  }

  bool read_tag(const Item& item, std::string_view& tag) {
    if (item.type == Type::null) return true;
    if (item.type == Type::string) return text_of(item, tag_, tag);
    if (!is_digits(item)) return false;
    tag = token_of(item);
    return true;
  }

  static std::string_view token_of(const Item& item) {
    return {item.begin, static_cast<std::size_t>(item.end - item.begin)};
  }

  static std::string_view word_of(const Item& item) { return item.type == Type::yes ? "true" : "false"; }

  // An integer that Python writes as it stands here.
  static bool is_digits(const Item& item) {
    return item.type == Type::number && item.integer && token_of(item).size() < 300 && token_of(item) != "-0";
  }

  Stop asked(Stop why, std::string_view cell, bool number, Outcome& out) {
    out.cell = cell;
    out.number = number;
    return why;
  }

  table::Column& column_of(table::Rows& rows, std::uint32_t number) {
    Key& key = keys_[number];
    if (key.column < 0) {
      const auto joined = roles_.column_numbers.find(key.text);
      const std::uint8_t mark = joined == roles_.column_numbers.end() ? std::uint8_t{0} : joined->second;
      const std::size_t at = rows.add_column(key.text, mark);
      key.column = static_cast<std::int64_t>(at);
      if (const auto kind = roles_.kinds.find(key.text); kind != roles_.kinds.end())
        rows.set_kind(at, kind->second);
    }
    return rows.columns[static_cast<std::size_t>(key.column)];
  }

  Stop member(table::Rows& rows, std::size_t at, const char* limit, Outcome& out) {
    const Item& item = line_.items[at];
    if (item.type == Type::object) {
      for (std::size_t inner = at + 1; inner <= at + item.inside;) {
        if (const Stop stop = cell(rows, inner, limit, out); stop != Stop::end) return stop;
        inner += 1 + line_.items[inner].inside;
      }
      return Stop::end;
    }
    return cell(rows, at, limit, out);
  }

  // A member that is no object, unless an empty one.
  Stop cell(table::Rows& rows, std::size_t at, const char* limit, Outcome& out) {
    using table::Kind;
    const Item& item = line_.items[at];
    if (keys_[item.key].dropped) return Stop::end;  // by the name of an object and its own
    table::Column& column = column_of(rows, item.key);
    const auto find_out = [&](Kind kind) {
      if (column.kind != Kind::unknown) return;
      column.kind = kind;
      rows.found.push_back(static_cast<std::size_t>(keys_[item.key].column));
    };
    out.column = static_cast<std::size_t>(keys_[item.key].column);
    switch (item.type) {
      case Type::null:
        return rows.add_missing(column), Stop::end;
      case Type::object:
        return Stop::end;
      case Type::list:
        return list(rows, column, at);
      case Type::number: {
        if (rows.is_missing(item.value)) return rows.add_missing(column), Stop::end;
        find_out(Kind::number);
        if (column.kind == Kind::number) return rows.add_number(column, item.value), Stop::end;
        const std::string_view token = token_of(item);
        if (column.kind == Kind::category && is_digits(item))
          return rows.add_member(column, token), Stop::end;
        return rows.add_known(column, true, token) ? Stop::end : asked(Stop::cell, token, true, out);
      }
      case Type::yes:
      case Type::no: {
        find_out(Kind::boolean);
        if (column.kind == Kind::boolean || column.kind == Kind::number)
          return rows.add_number(column, item.type == Type::yes), Stop::end;
        return truth(rows, column, word_of(item), out);
      }
      case Type::string:
        break;
    }
    std::string_view text;
    if (!text_of(item, scratch_, text)) return Stop::line;
    if (column.kind == Kind::unknown && !rows.is_missing(text)) find_out(Kind::category);
    return rows.add_cell(column, text, behind(item, limit)) ? Stop::end : asked(Stop::cell, text, false, out);
  }

  // True or false in a column of another kind: what its text is there, even if that stands for a missing one.
  Stop truth(table::Rows& rows, table::Column& column, std::string_view word, Outcome& out) {
    if (column.kind == table::Kind::category) return rows.add_member(column, word), Stop::end;
    return rows.add_known(column, true, word) ? Stop::end : asked(Stop::cell, word, true, out);
  }

  // A bag of words, or numbered features.
  Stop list(table::Rows& rows, const table::Column& column, std::size_t at) {
    const std::size_t count = line_.items[at].inside;
    for (std::size_t place = 0; place < count; ++place) {
      const Item& item = line_.items[at + 1 + place];
      if (item.type == Type::null) continue;
      if (item.type == Type::string) {
        std::string_view text;
        if (!text_of(item, scratch_, text)) return Stop::line;
        rows.add_member(column, text);
        continue;
      }
      rows.add_numbered(column, place, item.type == Type::number ? item.value : item.type == Type::yes);
    }
    return Stop::end;
  }

  Roles roles_;
  Keys keys_;
  Line line_;
  std::uint32_t noted_ = 0;  // keys whose roles are known
  std::size_t found_before_ = 0;
  std::string scratch_, tag_;
};

}  // namespace skn::json
