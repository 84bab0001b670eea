// Columns → rows: numbers and texts that are in memory column by column, as Arrow has them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/table_rows.hpp"

namespace skn::table {

// Texts one after the other, and which of them each row has, none where that is negative.
struct PackedTexts {
  std::vector<std::int64_t> codes, offsets;
  std::string_view data;

  std::size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }

  // Whether all codes are those of a text, and all texts within the data.
  bool valid() const {
    for (const std::int64_t code : codes)
      if (code >= static_cast<std::int64_t>(size())) return false;
    for (std::size_t at = 0; at + 1 < offsets.size(); ++at)
      if (offsets[at] < 0 || offsets[at] > offsets[at + 1]) return false;
    return offsets.empty() || offsets.back() <= static_cast<std::int64_t>(data.size());
  }

  std::string_view operator[](std::size_t at) const {
    return data.substr(static_cast<std::size_t>(offsets[at]),
                       static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  }
};

// The columns of some rows. Each text in use is made into features once, unless these are to be named: names
// are numbered in the order of rows.
class Columns {
 public:
  void add_numbers(std::size_t column, std::span<const double> values) {
    parts_.emplace_back(column, values);
  }

  // The texts in use of which something must be asked, in the order of rows.
  std::vector<std::int64_t> add_texts(Rows& rows, std::size_t column, PackedTexts texts) {
    std::vector<std::int64_t> unknown;
    std::vector<std::int32_t> places(texts.size(), kNew);
    Part& part = parts_.emplace_back(column, std::span<const double>(), std::move(texts), std::move(places),
                                     std::vector<std::size_t>{0});
    for (const std::int64_t code : part.texts.codes) {
      if (code < 0 || part.places[static_cast<std::size_t>(code)] != kNew) continue;
      if (!resolve(rows, part, static_cast<std::size_t>(code))) unknown.push_back(code);
    }
    return unknown;
  }

  // Lists of numbers, where each row's end; NaN is none.
  void add_number_lists(std::size_t column, std::vector<std::int64_t> ends, std::span<const double> items) {
    Part& part = parts_.emplace_back(column, items);
    part.ends_of_lists = std::move(ends);
  }

  // Lists of words, where each row's end. Each different word is hashed once: a long one may come often.
  void add_word_lists(Rows& rows, std::size_t column, std::vector<std::int64_t> ends, PackedTexts items) {
    Part& part = parts_.emplace_back(column, std::span<const double>(), std::move(items));
    part.ends_of_lists = std::move(ends);
    for (std::size_t at = 0; at < part.texts.size(); ++at)
      part.hashes.push_back(rows.member_hash(rows.columns[column], part.texts[at]));
  }

  // Whether each row has the last column, `kHere`, has no value in it, `kMissing`, or not the column either.
  void set_states(std::vector<std::uint8_t> states) { parts_.back().states = std::move(states); }

  // The text of the last column that does not fit: as if it had no value. False: no such text.
  bool leave_out(std::size_t code) {
    if (parts_.empty() || code >= parts_.back().places.size()) return false;
    parts_.back().places[code] = kNone;
    return true;
  }

  std::size_t size() const { return parts_.size(); }

  // Whether all columns have so many rows.
  bool have(std::size_t rows) const {
    for (const Part& part : parts_)
      if (part.rows() != rows || (!part.states.empty() && part.states.size() != rows)) return false;
    return true;
  }

  // Adds the features of a row; false if something is still unknown.
  bool add_row(Rows& rows, std::size_t row) {
    for (Part& part : parts_)
      if (!add_cell(rows, part, row)) return false;
    return true;
  }

  static constexpr std::uint8_t kHere = 0, kMissing = 1;

 private:
  static constexpr std::int32_t kNew = -1, kUnknown = -2, kNone = -3;

  struct Part {
    std::size_t column;
    std::span<const double> values;  // or
    PackedTexts texts{};
    std::vector<std::int32_t> places{};  // of each text among those that were made
    std::vector<std::size_t> ends{};     // of the features of each
    std::vector<std::pair<std::int64_t, double>> features{};
    std::vector<std::int64_t> ends_of_lists{};  // of items; empty: each row has a value
    std::vector<std::uint64_t> hashes{};        // of words in lists
    std::vector<std::uint8_t> states{};         // empty: all are there

    std::size_t items() const { return values.empty() ? texts.codes.size() : values.size(); }
    std::size_t rows() const { return ends_of_lists.empty() ? items() : ends_of_lists.size(); }
  };

  // Makes the features of a text, as a row that does not stay.
  bool resolve(Rows& rows, Part& part, std::size_t code) {
    const std::size_t begin = rows.indices.size();
    const bool known = add_text(rows, rows.columns[part.column], part.texts[code]);
    if (known) {
      for (std::size_t at = begin; at < rows.indices.size(); ++at)
        part.features.emplace_back(rows.indices[at], rows.data[at]);
      part.ends.push_back(part.features.size());
    }
    part.places[code] = known ? static_cast<std::int32_t>(part.ends.size() - 2) : kUnknown;
    rows.abandon();
    return known;
  }

  bool add_text(Rows& rows, Column& column, std::string_view text) {
    if (column.kind != Kind::number) return rows.add_cell(column, text, text.data() + text.size());
    number_.assign(text);
    number_ += '\n';  // ends a number
    return rows.add_cell(column, {number_.data(), text.size()}, number_.data() + number_.size());
  }

  bool add_cell(Rows& rows, Part& part, std::size_t row) {
    Column& column = rows.columns[part.column];
    if (!part.states.empty() && part.states[row] != kHere) {
      if (part.states[row] == kMissing) rows.add_missing(column);
      return true;
    }
    if (!part.ends_of_lists.empty()) return add_list(rows, part, row), true;
    if (!part.values.empty()) {
      const double value = part.values[row];
      std::isnan(value) ? rows.add_missing(column) : rows.add_number(column, value);
      return true;
    }
    const std::int64_t code = part.texts.codes[row];
    const std::int32_t place = code < 0 ? kNone : part.places[static_cast<std::size_t>(code)];
    if (place == kNone) return rows.add_missing(column), true;
    if (place < 0 || rows.options().names != nullptr)
      return add_text(rows, column, part.texts[static_cast<std::size_t>(code)]);
    const auto made = static_cast<std::size_t>(place);
    for (std::size_t at = part.ends[made]; at < part.ends[made + 1]; ++at)
      rows.add(column.space, {}, column.number, static_cast<std::uint64_t>(part.features[at].first),
               part.features[at].second);
    return true;
  }

  // A bag of words, or numbered features.
  static void add_list(Rows& rows, Part& part, std::size_t row) {
    const Column& column = rows.columns[part.column];
    const auto begin = row == 0 ? std::size_t{0} : static_cast<std::size_t>(part.ends_of_lists[row - 1]);
    const auto end = static_cast<std::size_t>(part.ends_of_lists[row]);
    for (std::size_t at = begin; at < end; ++at) {
      if (!part.values.empty()) {
        if (!std::isnan(part.values[at])) rows.add_numbered(column, at - begin, part.values[at]);
      } else if (part.texts.codes[at] >= 0) {
        const auto code = static_cast<std::size_t>(part.texts.codes[at]);
        if (rows.options().names != nullptr)
          rows.add_member(column, part.texts[code]);
        else
          rows.add(column.space, {}, column.number, part.hashes[code], 1.0);
      }
    }
  }

  std::vector<Part> parts_;
  std::string number_;
};

}  // namespace skn::table
