// Mutation fuzzing of the svmlight parser, meant to run under AddressSanitizer and UBSan.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "text/svmlight.hpp"

namespace svmlight = skn::svmlight;
using fuzzing::require;
using fuzzing::same_bits;
using fuzzing::split_lines;
using svmlight::Error;

namespace {

// Valid lines, then one of every kind of mistake.
const std::vector<std::string> corpus = {
    "-1 154:0.095207 540:0.119736 7:-0.183437 1157:12 3812:0.12345678 4214:1.12345678 43:0.000000 9999:-1.5\n"
    "1 1:.5 22:-.25 333:12345678 4444:-0.12345678 5:00.123456 6:1. 154:0.095207 540:0.119736 12:-7 8:99.5\n",
    "1 17:0.123456 4021:-1.5 70:12 99999999:0.1234567890123 100000000:-0 3:-0.0 4:12345678.25 5:1\n",
    "-1 1:0.30000000000000004 2:9999999.99999999999 3:5. 4:.5 6:0.000001 7:1.5\t8:1 9:00.10 10:1e2\n",
    "1 1:0.5 2:1e-3 7:123456.789\n",
    "-1 qid:12 0:1 5:+2.5 # a comment\n",
    "+1\t3:.5\t4:5. \t\r\n",
    "0.25 4611686018427387904:1\n",
    "# only a comment\n\n \t\n1 1:1\n",
    "1 9:1 3:2 3:2\n-1 00000000000000000000007:0\n",
    "1 1:4.9406564584124654e-324 2:1.7976931348623157e308\n",
    "1 1:0.30000000000000004440892098500626 2:9007199254740993\n",
    "1 1:1e-400 2:0e999999999999999999999 3:123456789012345678901234567890e-20\n",
    "1 1:1e22 2:1e23 3:1e-22 4:1e-23 5:18446744073709551617 6:9007199254740992e22\n",
    "1 1:1#comment\n2 2:2",
    "3",
    "",
    "abc 1:2\n",
    "1:2 3:4\n",
    ":3\n",
    "1,2 1:1\n",
    "nan 1:1\n",
    "-inf 1:1\n",
    "1e999 1:1\n",
    "1 1:nan\n",
    "1 1:Infinity\n",
    "1 1:1e309 2:3\n",
    "1 1:0x1p3\n",
    "1 1:\n",
    "1 1: 2\n",
    "1 1:2:3\n",
    "1 1:abc\n",
    "1 1:1e\n",
    "1 1:1e+\n",
    "1 1:.\n",
    "1 1:-\n",
    "1 1:1_000\n",
    "1 12\n",
    "1 abc\n",
    "1 abc:1\n",
    "1 -3:1\n",
    "1 1.5:1\n",
    "1 :1\n",
    "1 4611686018427387905:1\n",
    "1 99999999999999999999999:1\n",
    "1 18446744073709551619:1\n",
    "1 qid:x 1:1\n",
    "1 qid: 1:1\n",
    "1 qid\n",
    "1 1:2 qid:3\n",
    std::string("1 1:2\0 3:4\n", 11),
    std::string("\0\0\0\0", 4),
    "1 1:2\r3:4\n",
    "1 \xff\xfe:2\n",
    "1 1:2\v2:3\n",
};

struct Parsed {
  svmlight::Outcome outcome;
  std::vector<std::int64_t> indptr, indices;
  std::vector<double> data, labels;
};

// All buffers, the text's included, lie in heap blocks of their exact size, so that any access beyond them
// is seen.
Parsed parse(std::string_view text, std::size_t max_line_bytes) {
  const std::unique_ptr<char[]> copy(new char[text.size()]);
  if (!text.empty()) std::memcpy(copy.get(), text.data(), text.size());
  const char* const end = copy.get() + text.size();
  const auto [rows, nonzeros] = svmlight::bounds(copy.get(), end);
  Parsed parsed;
  parsed.indptr = std::vector<std::int64_t>(rows + 1, -1);
  parsed.indices = std::vector<std::int64_t>(nonzeros, -1);
  parsed.data = std::vector<double>(nonzeros, NAN);
  parsed.labels = std::vector<double>(rows, NAN);
  parsed.outcome =
      svmlight::parse(copy.get(), end,
                      {parsed.indptr.data(), parsed.indices.data(), parsed.data.data(), parsed.labels.data()},
                      max_line_bytes);
  parsed.indptr.resize(parsed.outcome.rows + 1);
  parsed.labels.resize(parsed.outcome.rows);
  parsed.indices.resize(parsed.outcome.nonzeros);
  parsed.data.resize(parsed.outcome.nonzeros);
  return parsed;
}

void check_arrays(const Parsed& parsed, std::string_view text) {
  const auto& outcome = parsed.outcome;
  require(parsed.indptr.front() == 0, "indptr begins with 0", text);
  for (std::size_t row = 0; row < outcome.rows; ++row) {
    require(parsed.indptr[row] <= parsed.indptr[row + 1], "indptr is monotone", text);
    require(std::isfinite(parsed.labels[row]), "labels are finite", text);
  }
  require(parsed.indptr.back() == static_cast<std::int64_t>(outcome.nonzeros), "indptr ends at nonzeros",
          text);
  std::int64_t largest = -1;
  for (std::size_t k = 0; k < outcome.nonzeros; ++k) {
    require(std::isfinite(parsed.data[k]), "values are finite", text);
    require(parsed.indices[k] >= 0 && parsed.indices[k] <= std::int64_t{1} << 62, "indices are in range",
            text);
    largest = std::max(largest, parsed.indices[k]);
  }
  require(outcome.columns == largest + 1, "columns is 1 + the largest index", text);
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
  require(*svmlight::describe(outcome.error) != '\0', "the error has a message", text);
  const std::size_t behind = static_cast<std::size_t>(bad.data() + bad.size() - text.data());
  require(outcome.next == behind, "the text goes on behind the bad line", text);
}

// The rows, and the error, do not depend on how the text is cut into chunks.
void check_line_by_line(const Parsed& whole, const std::vector<std::string_view>& lines,
                        std::size_t max_line_bytes, std::string_view text) {
  std::vector<std::int64_t> indptr = {0}, indices;
  std::vector<double> data, labels;
  svmlight::Outcome last;
  std::size_t count = 0;
  for (const std::string_view line : lines) {
    const Parsed one = parse(line, max_line_bytes);
    last = one.outcome;
    for (std::size_t row = 0; row < one.outcome.rows; ++row) {
      indptr.push_back(one.indptr[row + 1] + static_cast<std::int64_t>(data.size()));
    }
    indices.insert(indices.end(), one.indices.begin(), one.indices.end());
    data.insert(data.end(), one.data.begin(), one.data.end());
    labels.insert(labels.end(), one.labels.begin(), one.labels.end());
    if (last.error != Error::none) break;
    ++count;
  }
  require(indptr == whole.indptr && indices == whole.indices && same_bits(data, whole.data) &&
              same_bits(labels, whole.labels),
          "line by line gives the same rows", text);
  require(last.error == whole.outcome.error && count == whole.outcome.lines &&
              last.column == whole.outcome.column && last.token == whole.outcome.token,
          "line by line gives the same error", text);
}

std::vector<std::string> split_tokens(std::string_view line) {
  std::vector<std::string> tokens;
  line = line.substr(0, line.find('#'));
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    tokens.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return tokens;
}

bool same_number(double value, const std::string& text) {
  char* end = nullptr;
  const double expected = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && std::memcmp(&value, &expected, sizeof value) == 0;
}

bool same_index(std::int64_t value, const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long expected = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && end == text.c_str() + text.size() &&
         static_cast<unsigned long long>(value) == expected;
}

// The accepted rows are those of a slow and simple reading with the C library's conversions.
void check_reference(const Parsed& parsed, const std::vector<std::string_view>& lines,
                     std::string_view text) {
  std::size_t row = 0, k = 0;
  for (std::size_t line = 0; line < parsed.outcome.lines; ++line) {
    const std::vector<std::string> tokens = split_tokens(lines[line]);
    if (tokens.empty()) continue;
    require(row < parsed.outcome.rows && same_number(parsed.labels[row], tokens[0]), "labels as strtod",
            text);
    const std::size_t first = tokens.size() > 1 && tokens[1].starts_with("qid:") ? 2 : 1;
    for (std::size_t t = first; t < tokens.size(); ++t, ++k) {
      const std::size_t colon = tokens[t].find(':');
      require(k < parsed.outcome.nonzeros && colon != std::string::npos, "a value per token", text);
      require(same_index(parsed.indices[k], tokens[t].substr(0, colon)), "indices as strtoull", text);
      require(same_number(parsed.data[k], tokens[t].substr(colon + 1)), "values as strtod", text);
    }
    require(parsed.indptr[++row] == static_cast<std::int64_t>(k), "indptr counts the tokens", text);
  }
  require(row == parsed.outcome.rows, "a row per line", text);
}

void check(std::string_view text, std::size_t max_line_bytes) {
  const Parsed parsed = parse(text, max_line_bytes);
  const std::vector<std::string_view> lines = split_lines(text);
  check_arrays(parsed, text);
  check_error(parsed, lines, text);
  check_line_by_line(parsed, lines, max_line_bytes, text);
  check_reference(parsed, lines, text);
}

}  // namespace

int main(int argc, char** argv) {
  return fuzzing::run("fuzz_svmlight", argc, argv, corpus, "0123456789+-.eE:# \t\r\nqidnaf",
                      [](std::string_view text, fuzzing::Mutator* mutator) {
                        const bool short_lines = mutator != nullptr && mutator->below(8) == 0;
                        check(text, short_lines ? 1 + mutator->below(40) : 1 << 20);
                      });
}
