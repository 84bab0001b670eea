// Rows of a table in the making: cells of columns become features, by the rules of `features/kinds.py`.
//
// Numbers, booleans, categories, ASCII texts and plain dates are done here. Of any other cell this asks, by
// answering `unknown`, and remembers what it is told: each different one is asked for once.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/cells.hpp"
#include "text/hashing.hpp"
#include "text/names.hpp"
#include "text/table_column.hpp"

namespace skn::table {

struct Options {
  std::uint64_t mask = 0;
  Names* names = nullptr;
  bool spaced = false;  // whether features tell their namespace and column
  bool decimal_comma = false;
  std::vector<std::string> missing;  // what stands for no value, without blanks around it
};

enum class Labels : std::uint8_t { ignored, numbers, codes };

class Rows {
 public:
  std::vector<std::int64_t> indptr{0}, indices, entries;
  std::vector<double> data, labels, weights;
  std::vector<std::uint8_t> spaces, numbers;
  std::vector<std::string> tags;
  bool weighted = false, tagged = false;

  std::vector<Column> columns;
  ByText<double> known_labels, known_number_labels, known_weights;
  std::int64_t misfits = 0;  // cells taken as missing, in rows that stay
  Labels label_mode = Labels::numbers;
  std::vector<std::size_t> found;  // columns whose kind was found here, in order

  explicit Rows(Options options) : options_(std::move(options)) {
    for (const std::string& text : options_.missing)
      longest_missing_ = std::max(longest_missing_, text.size());
    note_missing_numbers();
  }

  const Options& options() const { return options_; }
  void set_decimal_comma() {
    options_.decimal_comma = true;
    note_missing_numbers();
  }

  std::size_t add_column(std::string_view key, std::uint8_t number = 0) {
    columns.emplace_back(key, number);
    return columns.size() - 1;
  }

  // "number", "boolean", "category", "text", "text:3", "date"; false for anything else.
  bool set_kind(std::size_t at, std::string_view kind) {
    Column& column = columns[at];
    column.longest = 1;
    if (kind == "number") return column.kind = Kind::number, true;
    if (kind == "boolean") return column.kind = Kind::boolean, true;
    if (kind == "category") return column.kind = Kind::category, true;
    if (kind == "date") return column.kind = Kind::date, true;
    if (!kind.starts_with("text")) return false;
    column.kind = Kind::text;
    int longest = 1;
    for (std::size_t i = 5; i < kind.size(); ++i) longest = 10 * longest * (i > 5) + (kind[i] - '0');
    column.longest = static_cast<std::uint8_t>(std::min(longest, 255));
    return true;
  }

  // --- what was asked for

  void know(std::size_t column, bool number, std::string_view cell, Known known) {
    remembered_ += cell.size() + sizeof(Known) + 64;
    for (const Feature& feature : known.features) remembered_ += feature.ending.size() + sizeof(Feature);
    (number ? columns[column].numbers : columns[column].texts)
        .insert_or_assign(std::string(cell), std::move(known));
  }

  void know_label(bool number, std::string_view cell, double label) {
    remembered_ += cell.size() + 64;
    (number ? known_number_labels : known_labels).insert_or_assign(std::string(cell), label);
  }

  void know_weight(std::string_view cell, double weight) {
    remembered_ += cell.size() + 64;
    known_weights.insert_or_assign(std::string(cell), weight);
  }

  // Where a text begins, so that memory does not grow with the stream. Not within it: a record that asks
  // twice needs both answers.
  void forget_if_many(std::size_t at) {
    if (at > 0 || remembered_ < kMostRemembered) return;
    remembered_ = 0;
    for (Column& column : columns) {
      column.texts.clear();
      column.numbers.clear();
    }
    known_labels.clear();
    known_number_labels.clear();
    known_weights.clear();
  }

  // --- a row

  // Room for so many more features, so that they are not moved while rows are added.
  void reserve(std::size_t features) {
    indices.reserve(indices.size() + features);
    data.reserve(data.size() + features);
  }

  // Called before each row, with how much of a text is read: once some rows tell, there is room for the rest.
  // Rows that were taken before are not counted: then there is less room than could be, never more.
  void expect(std::size_t read, std::size_t size) {
    if (labels.size() != kTelling || read == 0) return;
    const double features = static_cast<double>(indices.size()) / static_cast<double>(read);
    reserve(static_cast<std::size_t>(1.1 * features * static_cast<double>(size - read)));
  }

  void commit(double label, double weight, std::string_view tag) {
    if (options_.names != nullptr) enter_names();
    misfits += std::exchange(row_misfits_, 0);
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
    labels.push_back(label);
    weights.push_back(weight);
    weighted |= weight != 1.0;
    if (!tag.empty() && !tagged) {
      tagged = true;
      tags.resize(labels.size() - 1);
    }
    if (tagged) tags.emplace_back(tag);
  }

  // As if the row had not begun.
  void abandon() {
    const auto begin = static_cast<std::size_t>(indptr.back());
    indices.resize(begin);
    data.resize(begin);
    if (options_.spaced) {
      spaces.resize(begin);
      numbers.resize(begin);
    }
    texts_.clear();
    named_.clear();
    row_misfits_ = 0;
  }

  // A feature of any name.
  void add(std::string_view space, std::string_view name, std::uint8_t number, std::uint64_t hash,
           double value) {
    if (value == 0.0) return;
    indices.push_back(static_cast<std::int64_t>(hash & options_.mask));
    data.push_back(value);
    if (options_.spaced) {
      spaces.push_back(space.empty() ? std::uint8_t{' '} : static_cast<std::uint8_t>(space[0]));
      numbers.push_back(number);
    }
    if (options_.names != nullptr) {
      named_.push_back({space.size(), name.size()});
      texts_ += space;
      texts_ += name;
    }
  }

  void add_number(const Column& column, double value) {
    add(column.space, column.name, column.number, column.plain, value);
  }

  void add_missing(const Column& column) {
    if (options_.names == nullptr) return add(column.space, {}, column.number, column.missing, 1.0);
    add(column.space, column.named, column.number, column.missing, 1.0);
  }

  // `name=text`
  void add_member(const Column& column, std::string_view text) {
    const std::uint64_t hash = member_hash(column, text);
    add(column.space, name_, column.number, hash, 1.0);
  }

  std::uint64_t member_hash(const Column& column, std::string_view text) {
    name_.assign(column.named);
    name_ += text;
    return hashing::name_hash(name_, column.seed);
  }

  // An item of a list of numbers, by its place.
  void add_numbered(const Column& column, std::size_t place, double value) {
    char digits[24];
    const auto [end, status] = std::to_chars(digits, digits + sizeof digits, place);
    const std::string_view name(digits, static_cast<std::size_t>(end - digits));
    add(column.within, name, column.number, hashing::name_hash(name, column.within_seed), value);
  }

  // What is known of a cell; false: nothing.
  bool add_known(const Column& column, bool number, std::string_view cell) {
    const ByText<Known>& cells = number ? column.numbers : column.texts;
    const auto known = cells.find(cell);
    if (known == cells.end()) return false;
    row_misfits_ += known->second.misfit;
    for (const Feature& feature : known->second.features) {
      name_.assign(column.name);
      name_ += feature.ending;
      add(column.space, name_, column.number, hashing::name_hash(name_, column.seed), feature.value);
    }
    return true;
  }

  bool is_missing(std::string_view text) const {
    text = cells::stripped(text);
    if (text.empty()) return true;
    if (!missing_numbers_.empty() && text.back() == '0') {
      if (const std::size_t digits = cells::whole_digits(text); digits > 0) text = text.substr(0, digits);
      if (text == "-0") text = "0";
    }
    if (text.size() > longest_missing_) return false;
    for (const std::string& known : options_.missing)
      if (text == known) return true;
    return false;
  }

  // Whether a number stands for no value.
  bool is_missing(double value) const {
    return std::find(missing_numbers_.begin(), missing_numbers_.end(), value) != missing_numbers_.end();
  }

  // A number that is written in a text, behind which any byte up to `end` can be read.
  bool number_of(std::string_view text, const char* end, double& value) const {
    if (options_.decimal_comma) return cells::comma_number(text, value);
    return cells::plain_number(text, end, value);
  }

  // The features of a text; false: unknown.
  bool add_cell(Column& column, std::string_view text, const char* end) {
    if (column.kind == Kind::number) {
      if (double value; number_of(text, end, value))
        return is_missing(value) ? add_missing(column) : add_number(column, value), true;
    }
    if (is_missing(text)) return add_missing(column), true;
    if (column.kind == Kind::boolean) {
      if (bool value; cells::plain_truth(text, value)) return add_number(column, value), true;
    }
    if (column.kind == Kind::category) {
      if (!cells::may_have_other_form(text)) return add_member(column, text), true;
      if (std::string_view name; cells::category(text, category_, name))
        return add_member(column, name), true;
    }
    if (column.kind == Kind::text && is_ascii(text)) {
      if (std::string_view form; cells::category(text, category_, form)) return add_words(column, form), true;
    }
    if (column.kind == Kind::date && add_date(column, cells::stripped(text))) return true;
    return add_known(column, false, text);
  }

  // The label that a text is; false: unknown.
  bool label_of(std::string_view text, const char* end, double& label) const {
    label = std::numeric_limits<double>::quiet_NaN();
    if (label_mode == Labels::ignored) return true;
    if (label_mode == Labels::numbers && number_of(text, end, label)) return true;
    label = std::numeric_limits<double>::quiet_NaN();
    if (is_missing(text)) return true;
    const auto known = known_labels.find(text);
    if (known == known_labels.end()) return false;
    label = known->second;
    return true;
  }

  // The weight that a text is; false: unknown.
  bool weight_of(std::string_view text, const char* end, double& weight) const {
    if (number_of(text, end, weight) && weight >= 0.0) return true;
    const auto known = known_weights.find(text);
    if (known == known_weights.end()) return false;
    weight = known->second;
    return true;
  }

 private:
  struct Named {
    std::size_t space, name;  // how many bytes
  };

  // The spellings of missing that are numbers, as cells would be read now.
  void note_missing_numbers() {
    missing_numbers_.clear();
    for (const std::string& text : options_.missing) {
      if (text.empty() || text.find_first_not_of("0123456789+-.,eE") != text.npos) continue;
      const std::string ended = text + '\n';
      if (double value; number_of({ended.data(), text.size()}, ended.data() + ended.size(), value))
        missing_numbers_.push_back(value);
    }
  }

  static bool is_ascii(std::string_view text) {
    unsigned char all = 0;
    for (const char c : text) all |= static_cast<unsigned char>(c);
    return all < 0x80;
  }

  static bool in_word(char c) { return text::is_digit(c) || (c >= 'a' && c <= 'z') || c == '_'; }

  // Single words, then pairs of neighbours, and so on.
  void add_words(const Column& column, std::string_view text) {
    lower_.resize(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) lower_[i] = cells::lower(text[i]);
    words_.clear();
    for (std::size_t at = 0; at < lower_.size();) {
      if (!in_word(lower_[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < lower_.size() && in_word(lower_[at])) ++at;
      words_.push_back(std::string_view(lower_).substr(begin, at - begin));
    }
    for (std::size_t n = 1; n <= column.longest; ++n) {
      for (std::size_t first = 0; first + n <= words_.size(); ++first) {
        gram_.assign(words_[first]);
        for (std::size_t k = first + 1; k < first + n; ++k) (gram_ += ' ') += words_[k];
        add_member(column, gram_);
      }
    }
  }

  // False: not a plain date, or one that takes more care.
  bool add_date(const Column& column, std::string_view text) {
    static constexpr std::array<std::string_view, 7> weekdays = {"mon", "tue", "wed", "thu",
                                                                 "fri", "sat", "sun"};
    constexpr double year = 365.2425 * 86400.0;
    cells::Moment m;
    const bool known = text.size() == 10 ? cells::read_date(text, m) : cells::read_moment(text, m);
    if (!known || m.offset || !m.fraction.empty() || !m.valid()) return false;
    const std::int64_t days = m.days();
    const std::int64_t seconds = 86400 * days + 3600 * m.hour + 60 * m.minute + m.second;
    add_number(column, static_cast<double>(seconds) / year);
    add_part(column, ".month=", std::to_string(m.month));
    add_part(column, ".day=", std::to_string(m.day));
    add_part(column, ".weekday=", weekdays[static_cast<std::size_t>(((days + 5) % 7 + 7) % 7)]);
    if (!m.midnight()) add_part(column, ".hour=", std::to_string(m.hour));
    return true;
  }

  void add_part(const Column& column, std::string_view part, std::string_view value) {
    name_.assign(column.name);
    (name_ += part) += value;
    add(column.space, name_, column.number, hashing::name_hash(name_, column.seed), 1.0);
  }

  // When the row is known to stay: a bad one leaves no names.
  void enter_names() {
    std::string_view rest = texts_;
    auto at = static_cast<std::size_t>(indptr.back());
    for (const Named& named : named_) {
      const std::string_view space = rest.substr(0, named.space), name = rest.substr(named.space, named.name);
      rest.remove_prefix(named.space + named.name);
      const std::int64_t entry = options_.names->named(space, name, indices[at]);
      entries.push_back(entry);
      indices[at++] = options_.names->index(entry);
    }
    texts_.clear();
    named_.clear();
  }

  static constexpr std::size_t kTelling = 256;                          // rows
  static constexpr std::size_t kMostRemembered = std::size_t{1} << 24;  // bytes

  Options options_;
  std::size_t longest_missing_ = 0;
  std::vector<double> missing_numbers_;
  std::size_t remembered_ = 0;
  std::int64_t row_misfits_ = 0;
  std::string name_, category_, lower_, gram_;
  std::vector<std::string_view> words_;
  std::string texts_;  // namespaces and names of the row in progress, one after the other
  std::vector<Named> named_;
};

}  // namespace skn::table
