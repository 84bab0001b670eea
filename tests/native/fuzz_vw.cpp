// Mutation fuzzing of the VW text parser, and of what is made of its rows, meant to run under
// AddressSanitizer and UBSan.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "text/hashing.hpp"
#include "text/interactions.hpp"
#include "text/names.hpp"
#include "text/vw_text.hpp"

namespace vw = skn::vw;
using fuzzing::require;
using fuzzing::same_bits;
using fuzzing::split_lines;
using skn::Names;
using vw::Error;

namespace {

constexpr std::uint64_t mask = (1 << 18) - 1;

// Valid lines, then one of every kind of mistake.
const std::vector<std::string> corpus = {
    "1 | 17:0.123456 4021:-1.5 7:12 99999999:0.1234567890123 a:.5 name_of:-0 abc:3.25 1:0 x:10000000\n",
    "-1 | 154:0.095207 540:0.119736 7:-0.183437 1157:12 3812:0.12345678 4214:1.12345678 43:0.000000 "
    "9999:-1.5\n"
    "1 | 1:.5 22:-.25 333:12345678 4444:-0.12345678 5:00.123456 6:1. 154:0.095207 540:0.119736 12:-7 "
    "8:99.5\n"
    "1 | 2:0.5 12345678901234567890123456789012345678901234567890:2 10:0.5 11:0.5 12:0.25 13:0.25 14:0.75\n",
    "-1 |user anna age:31 _\xc3\xbc-x.y:0.30000000000000004 |item p1234567890 q:-0.0 123456789:1 z:1.5|b w\n",
    "1 | price:.23 sqft:.25 age:.05 2006\n",
    "1 2 'second_house | price:.18 sqft:.15 age:.35 1976\n",
    "0 1 0.5 'third_house|a x:1 y |b:2.5 z:-3 7:2\r\n",
    "1 1.0 zebra|MetricFeatures:3.28 height:1.5 |Says black with white stripes\n",
    "-1 |a :2 :3 c |a :4 | d\n",
    "| a b\n'tag | c\n\n \t\n",
    "\xef\xbb\xbf"
    "1 | a\n",
    "1 |\xc3\xbc \xc3\xb6:2 \x01x\x02\n",
    "1 |12 345 00000000000000000000000012345678901234567890:2\n",
    "1 |a x:0 y:-0 z:1e-400 |b:0 w\n",
    "1 |a||b | |c",
    "1 |a b:text c:text|with:all d\n",
    "1 |a \t b \t\n",
    "1 2 3\n",
    "1\t|a x\n",
    "1 2 3 4 | x\n",
    "1 2 3 4 5 6 | x\n",
    "abc | x\n",
    "1,2 | x\n",
    "nan | x\n",
    "1e999 | x\n",
    "1 -2 | x\n",
    "1 x | y\n",
    "1 2 x | y\n",
    "1 |:2 x\n",
    "1 |a:b x\n",
    "1 |a: x\n",
    "1 |a x:\n",
    "1 |a x:1x\n",
    "1 |a x:nan y:inf\n",
    "1 |a:1e200 x:1e200\n",
    "1 |a x\ry\n",
    std::string("1 |a x\0y:2\n", 11),
    std::string("\0\0\0", 3),
    "",
    "|",
};

struct Parsed {
  vw::Outcome outcome;
  std::vector<std::int64_t> indptr, indices, entries;
  std::vector<double> data, labels, importances, bases;
  std::vector<std::uint8_t> spaces;
};

// All buffers, the text's included, lie in heap blocks of their exact size, so that any access beyond them
// is seen.
Parsed parse(std::string_view text, std::size_t max_line_bytes, bool string_values, Names* names = nullptr) {
  const std::unique_ptr<char[]> copy(new char[text.size()]);
  if (!text.empty()) std::memcpy(copy.get(), text.data(), text.size());
  const char* const end = copy.get() + text.size();
  const auto [rows, nonzeros] = vw::bounds(copy.get(), end);
  Parsed parsed;
  parsed.indptr = std::vector<std::int64_t>(rows + 1, -1);
  parsed.indices = std::vector<std::int64_t>(nonzeros, -1);
  parsed.entries = std::vector<std::int64_t>(nonzeros, -1);
  parsed.data = std::vector<double>(nonzeros, NAN);
  parsed.labels = parsed.importances = parsed.bases = std::vector<double>(rows, NAN);
  parsed.spaces = std::vector<std::uint8_t>(nonzeros, 0);
  const vw::Arrays out{parsed.indptr.data(),      parsed.indices.data(),
                       parsed.data.data(),        parsed.labels.data(),
                       parsed.importances.data(), parsed.bases.data(),
                       parsed.spaces.data(),      names != nullptr ? parsed.entries.data() : nullptr};
  parsed.outcome = vw::parse(copy.get(), end, out, {mask, string_values}, names, max_line_bytes);
  parsed.indptr.resize(parsed.outcome.rows + 1);
  for (auto* each : {&parsed.labels, &parsed.importances, &parsed.bases}) each->resize(parsed.outcome.rows);
  parsed.indices.resize(parsed.outcome.nonzeros);
  parsed.entries.resize(parsed.outcome.nonzeros);
  parsed.data.resize(parsed.outcome.nonzeros);
  parsed.spaces.resize(parsed.outcome.nonzeros);
  return parsed;
}

void check_arrays(const Parsed& parsed, std::string_view text) {
  const auto& outcome = parsed.outcome;
  require(parsed.indptr.front() == 0, "indptr begins with 0", text);
  for (std::size_t row = 0; row < outcome.rows; ++row) {
    require(parsed.indptr[row] <= parsed.indptr[row + 1], "indptr is monotone", text);
    require(!std::isinf(parsed.labels[row]), "labels are finite or none", text);
    require(std::isfinite(parsed.importances[row]) && parsed.importances[row] >= 0, "importances are sound",
            text);
    require(std::isfinite(parsed.bases[row]), "bases are finite", text);
  }
  require(parsed.indptr.back() == static_cast<std::int64_t>(outcome.nonzeros), "indptr ends at nonzeros",
          text);
  std::int64_t largest = -1;
  for (std::size_t k = 0; k < outcome.nonzeros; ++k) {
    require(std::isfinite(parsed.data[k]) && parsed.data[k] != 0.0, "values are finite and not 0", text);
    require(parsed.indices[k] >= 0 && parsed.indices[k] <= static_cast<std::int64_t>(mask),
            "indices are in range", text);
    largest = std::max(largest, parsed.indices[k]);
  }
  require(outcome.columns == largest + 1, "columns is 1 + the largest index", text);
  require(outcome.tag_ends.empty() || outcome.tag_ends.size() == outcome.rows, "a tag per row", text);
  require(std::is_sorted(outcome.tag_ends.begin(), outcome.tag_ends.end()), "tags follow one another", text);
}

void check_error(const Parsed& parsed, const std::vector<std::string_view>& lines, std::string_view text) {
  const auto& outcome = parsed.outcome;
  if (outcome.error == Error::none) {
    require(outcome.lines == lines.size(), "all lines are counted", text);
    return;
  }
  require(outcome.lines < lines.size(), "the bad line exists", text);
  const std::string_view bad = lines[outcome.lines];
  require(outcome.column >= 1 && outcome.column <= bad.size() + 1, "the column is in the line", text);
  require(bad.substr(outcome.column - 1).substr(0, outcome.token.size()) == outcome.token,
          "the token stands at the column", text);
  require(*vw::describe(outcome.error) != '\0', "the error has a message", text);
  const std::size_t behind = static_cast<std::size_t>(bad.data() + bad.size() - text.data());
  require(outcome.next == behind, "the text goes on behind the bad line", text);
}

// The rows, and the error, do not depend on how the text is cut into chunks.
void check_line_by_line(const Parsed& whole, const std::vector<std::string_view>& lines,
                        std::size_t max_line_bytes, bool string_values, std::string_view text) {
  std::vector<std::int64_t> indptr = {0}, indices;
  std::vector<double> data, labels, importances, bases;
  std::string tags;
  vw::Outcome last;
  std::size_t count = 0;
  for (const std::string_view line : lines) {
    const Parsed one = parse(line, max_line_bytes, string_values);
    last = one.outcome;
    for (std::size_t row = 0; row < one.outcome.rows; ++row) {
      indptr.push_back(one.indptr[row + 1] + static_cast<std::int64_t>(data.size()));
    }
    indices.insert(indices.end(), one.indices.begin(), one.indices.end());
    data.insert(data.end(), one.data.begin(), one.data.end());
    labels.insert(labels.end(), one.labels.begin(), one.labels.end());
    importances.insert(importances.end(), one.importances.begin(), one.importances.end());
    bases.insert(bases.end(), one.bases.begin(), one.bases.end());
    tags += one.outcome.tags;
    if (last.error != Error::none) break;
    ++count;
  }
  require(indptr == whole.indptr && indices == whole.indices && same_bits(data, whole.data) &&
              same_bits(labels, whole.labels) && same_bits(importances, whole.importances) &&
              same_bits(bases, whole.bases) && tags == whole.outcome.tags,
          "line by line gives the same rows", text);
  require(last.error == whole.outcome.error && count == whole.outcome.lines &&
              last.column == whole.outcome.column && last.token == whole.outcome.token,
          "line by line gives the same error", text);
}

double as_number(const std::string& word) { return std::strtod(word.c_str(), nullptr); }

std::vector<std::string> split(std::string_view text, const char* blanks) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(blanks, at)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// The accepted rows are those of a slow and simple reading. (Not for texts as values, which may hold a '|'.)
void check_reference(const Parsed& parsed, const std::vector<std::string_view>& lines,
                     std::string_view text) {
  std::size_t row = 0, k = 0;
  for (std::size_t number = 0; number < parsed.outcome.lines; ++number) {
    std::string_view line = lines[number];
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    const std::size_t bar = line.find('|');
    require(bar != line.npos && row < parsed.outcome.rows, "a row has a bar", text);
    std::vector<std::string> words = split(line.substr(0, bar), " ");
    const bool touches = bar > 0 && line[bar - 1] != ' ';
    if (!words.empty() && (touches || words.back()[0] == '\'')) words.pop_back();
    require(words.empty() ? std::isnan(parsed.labels[row]) : parsed.labels[row] == as_number(words[0]),
            "labels as strtod", text);
    require(parsed.importances[row] == (words.size() > 1 ? as_number(words[1]) : 1.0),
            "importances as strtod", text);
    require(parsed.bases[row] == (words.size() > 2 ? as_number(words[2]) : 0.0), "bases as strtod", text);
    for (std::size_t at = bar; at != line.npos;) {
      const std::size_t next = line.find('|', at + 1);
      const std::string_view part = line.substr(at + 1, next == line.npos ? next : next - at - 1);
      at = next;
      std::vector<std::string> features = split(part, " \t");
      std::string space;
      if (!part.empty() && part[0] != ' ' && part[0] != '\t') {
        space = features.front();
        features.erase(features.begin());
      }
      const std::size_t colon = std::min(space.find(':'), space.size());
      const double weight = colon < space.size() ? as_number(space.substr(colon + 1)) : 1.0;
      space.resize(colon);
      const std::uint64_t seed = space.empty() ? 0 : skn::hashing::name_hash(space, 0);
      std::uint64_t anonymous = 0;
      for (const std::string& feature : features) {
        const std::size_t end = std::min(feature.find(':'), feature.size());
        const double value = end < feature.size() ? as_number(feature.substr(end + 1)) : 1.0;
        const std::uint64_t hash =
            end == 0 ? seed + anonymous++ : skn::hashing::name_hash(feature.substr(0, end), seed);
        if (weight * value == 0.0) continue;
        require(k < parsed.outcome.nonzeros && parsed.data[k] == weight * value, "values as strtod", text);
        require(parsed.indices[k] == static_cast<std::int64_t>(hash & mask), "indices as hashed", text);
        require(parsed.spaces[k] == (space.empty() ? ' ' : static_cast<std::uint8_t>(space[0])), "namespaces",
                text);
        ++k;
      }
    }
    require(parsed.indptr[++row] == static_cast<std::int64_t>(k), "indptr counts the features", text);
  }
  require(row == parsed.outcome.rows, "a row per line", text);
}

// Names give the same rows under other indices, one for each name; n-grams and interactions have the right
// number.
void check_names(const Parsed& plain, std::size_t max_line_bytes, bool string_values, bool exact,
                 std::string_view text) {
  Names names(exact);
  names.set_joins(true);
  const Parsed named = parse(text, max_line_bytes, string_values, &names);
  require(same_bits(named.data, plain.data) && named.indptr == plain.indptr, "names change no value", text);
  require(exact || named.indices == plain.indices, "recording names changes no index", text);
  for (std::size_t k = 0; k < named.indices.size(); ++k) {
    require(named.indices[k] == names.index(named.entries[k]), "each index is its name's", text);
  }
  if (named.data.size() > 60) return;
  skn::Expansion how;
  how.kept.fill(true);
  how.ngram.fill(2);
  how.interactions = {"ab", "::"};
  how.mask = exact ? ~std::uint64_t{0} : mask;
  const auto expanded = skn::Expander(how, &names)
                            .expand({named.indptr, named.indices, named.data, named.spaces, named.entries});
  require(expanded.indptr.size() == named.indptr.size(), "no row is lost", text);
  Names again(exact);
  again.set_joins(true);
  for (int kind = 0; kind < 2; ++kind) {
    for (std::size_t i = 0; i < (kind == 0 ? names.singles() : names.joints()); ++i) {
      const auto entry = static_cast<std::int64_t>(2 * i + static_cast<std::size_t>(kind));
      require(again.restore(names.key(entry), names.index(entry)), "names can be restored", text);
      require(again.index(entry) == names.index(entry) && again.shown(entry) == names.shown(entry),
              "restored names are the same", text);
    }
  }
}

void check(std::string_view text, std::size_t max_line_bytes) {
  const std::vector<std::string_view> lines = split_lines(text);
  for (const bool string_values : {false, true}) {
    const Parsed parsed = parse(text, max_line_bytes, string_values);
    check_arrays(parsed, text);
    check_error(parsed, lines, text);
    check_line_by_line(parsed, lines, max_line_bytes, string_values, text);
    if (!string_values) check_reference(parsed, lines, text);
    // Slower than all the rest, so not for all.
    if (text.size() % 4 == 0) check_names(parsed, max_line_bytes, string_values, string_values, text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return fuzzing::run("fuzz_vw", argc, argv, corpus, "0123456789+-.eE:||  \t\r\nab'naf",
                      [](std::string_view text, fuzzing::Mutator* mutator) {
                        const bool short_lines = mutator != nullptr && mutator->below(8) == 0;
                        check(text, short_lines ? 1 + mutator->below(40) : 1 << 20);
                      });
}
