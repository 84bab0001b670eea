// Mutation fuzzing of delimited text into rows, meant to run under AddressSanitizer and UBSan.
//
// Records are compared with a plain reading of RFC 4180, a byte at a time; rows with those of each record
// alone.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "text/csv_rows.hpp"

namespace csv = skn::csv;
namespace table = skn::table;
using fuzzing::require;

namespace {

const std::vector<std::string> corpus = {
    "1,2.5,Rome,yes,2024-01-31,Good food\n",
    "-1,0,true,no,2024-01-31T12:30:00Z,x\n",
    "1,NA,\"a,b\",1,,\"say \"\"hi\"\"\"\n",
    "1,\"2\",\"two\nlines\",0,2024-02-29 00:00,\r\n\r\n",
    "1,2\n\n\n3,4",
    "0,1e5,7.0,false,2024-01-31T12:30:00.500+02:00,Words Words words\n",
    "\"open,1\n2,3\n",
    "\"\"",
    "\"",
    "\"\"\"",
    ",,\n,\n",
    "a\rb\rc",
    "1,5\" disk,2\n",
    "\"closed\"behind,1\n",
    "",
    "\r",
    "\n",
    std::string("1,\0,2,3,4,5\n", 12),
};

struct Plain {
  std::vector<std::vector<std::string>> records;  // without fields: a blank line
  std::vector<std::size_t> ends;
  bool open = false;
};

// The definition, with a state for each byte. The text ends with a line end.
Plain plain_records(std::string_view text, char delimiter, char quote) {
  Plain result;
  std::vector<std::string> fields;
  std::string field;
  enum { start, bare, quoted, behind } state = start;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (state == quoted) {
      if (c != quote)
        field += c;
      else if (at + 1 < text.size() && text[at + 1] == quote)
        field += text[++at];
      else
        state = behind;
    } else if (c == delimiter) {
      fields.push_back(std::exchange(field, ""));
      state = start;
    } else if (c == '\n' || c == '\r') {
      if (state != start || !fields.empty()) fields.push_back(std::exchange(field, ""));
      if (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++at;
      result.records.push_back(std::exchange(fields, {}));
      result.ends.push_back(at + 1);
      state = start;
    } else if (c == quote && quote != 0 && state == start) {
      state = quoted;
    } else {
      field += c;
      if (state == start) state = bare;
    }
  }
  result.open = state == quoted;
  return result;
}

// In a heap block of the exact size, so that any access beyond it is seen.
struct Block {
  std::unique_ptr<char[]> copy;
  std::size_t size;
  explicit Block(std::string_view text) : copy(new char[text.size()]), size(text.size()) {
    if (size > 0) std::memcpy(copy.get(), text.data(), size);
  }
  const char* begin() const { return copy.get(); }
  const char* end() const { return copy.get() + size; }
};

void check_records(std::string_view text, char delimiter, char quote) {
  const Plain expected = plain_records(text, delimiter, quote);
  const Block block(text);
  csv::Record record(delimiter, quote);
  record.begin(block.end());
  const char* p = block.begin();
  for (std::size_t i = 0; i < expected.records.size(); ++i) {
    require(p < block.end(), "as many records", text);
    p = record.read(p, block.end());
    require(p != nullptr && p - block.begin() == static_cast<std::ptrdiff_t>(expected.ends[i]),
            "a record ends where it does", text);
    require(record.size() == expected.records[i].size(), "as many fields", text);
    for (std::size_t k = 0; k < record.size(); ++k)
      require(record[k] == expected.records[i][k], "the same field", text);
  }
  if (expected.open) require(record.read(p, block.end()) == nullptr, "open quotes are seen", text);
  if (!expected.open) require(p == block.end(), "no more records", text);
}

table::Rows six_columns() {
  table::Rows rows({(1u << 18) - 1, nullptr, true, false, {"NA", "-1"}});
  for (const char* kind : {"number", "category", "boolean", "date", "text:2"}) {
    rows.set_kind(rows.add_column(kind), kind);
  }
  return rows;
}

// Parses to the end; what is asked for is a cell without features, what is wrong is left out.
std::size_t parse_all(table::Rows& rows, std::string_view text, bool comma) {
  const Block block(text);
  csv::Parser parser(comma ? ';' : ',', '"', {csv::kLabel, 0, 1, 2, 3, 4});
  if (comma) rows.set_decimal_comma();
  std::size_t at = 0, asked = 0;
  while (true) {
    const csv::Outcome out = parser.parse(rows, block.begin(), block.end(), at);
    require(rows.labels.size() + 1 == rows.indptr.size() && rows.data.size() == rows.indices.size() &&
                rows.spaces.size() == rows.indices.size() &&
                rows.indptr.back() == static_cast<std::int64_t>(rows.indices.size()),
            "arrays belong together", text);
    if (out.why == csv::Stop::end || out.why == csv::Stop::open) return asked;
    require(out.at >= at && out.next > out.at && out.next <= text.size(), "it goes on", text);
    at = out.at;
    if (out.why == csv::Stop::cell)
      rows.know(out.field - 1, false, out.cell, {});
    else if (out.why == csv::Stop::label)
      rows.know_label(false, out.cell, 1.0);
    else
      at = out.next;
    ++asked;
  }
}

void check_rows(std::string_view text, bool comma) {
  table::Rows whole = six_columns();
  parse_all(whole, text, comma);
  for (const std::int64_t index : whole.indices) require(index >= 0 && index < 1 << 18, "an index", text);
  table::Rows parts = six_columns();
  std::size_t begin = 0;
  for (const std::size_t end : plain_records(text, comma ? ';' : ',', '"').ends) {
    parse_all(parts, text.substr(begin, end - begin), comma);
    begin = end;
  }
  require(whole.indices == parts.indices && whole.indptr == parts.indptr && whole.spaces == parts.spaces &&
              fuzzing::same_bits(whole.data, parts.data) && fuzzing::same_bits(whole.labels, parts.labels),
          "a record alone is the same row", text);
  csv::Parser parser(comma ? ';' : ',', '"', {csv::kLabel, 0, 1, 2, 3, 4});
  const Block block(text);
  parser.look(whole, block.begin(), block.end(), {0, 1, 2, 3, 4, 5}, 1000, comma);
}

}  // namespace

int main(int argc, char** argv) {
  return fuzzing::run("fuzz_csv", argc, argv, corpus, "0123456789,,;\"\"\"\t\r\n\n.-:TZe+ ",
                      [](std::string_view given, fuzzing::Mutator*) {
                        const std::string text = std::string(given) + "\n";
                        check_records(text, ',', '"');
                        check_records(text, '\t', '\0');
                        check_rows(text, false);
                        check_rows(text, true);
                      });
}
