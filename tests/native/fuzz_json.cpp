// Mutation fuzzing of JSON lines into rows, meant to run under AddressSanitizer and UBSan.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "text/json_rows.hpp"

namespace json = skn::json;
namespace table = skn::table;
using fuzzing::require;

namespace {

const std::vector<std::string> corpus = {
    "{\"label\": 1, \"price\": 2.5, \"city\": \"Rome\", \"vip\": true}\n",
    "{\"y\":-1,\"user\":{\"age\":33,\"name\":null,\"tags\":[\"a\",\"b\"]},\"list\":[1,2.5,null,true,\"x\"]}"
    "\n",
    "{\"label\":\"spam\",\"_weight\":2,\"_tag\":\"a\\u00e9\\ud83d\\ude00\",\"city\":\"say \\\"hi\\\"\"}\n",
    "{\"text\":\"Good "
    "food\",\"when\":\"2024-01-31T12:30\",\"code\":7.0,\"price\":\"NA\",\"empty\":{},\"none\":[]}\r\n",
    "{\"a|b\":1,\"a\":{\"b\":2},\"\":0,\"\\u0061\":1}\n",
    "{\"price\":1e400,\"x\":-0,\"y\":12345678901234567890,\"z\":1E-5}\n",
    "{\"city\":\"caf\xc3\xa9\",\"price\":1,\"price\":2}\n",
    "{\"deep\":{\"er\":{\"x\":1}},\"lists\":[[1]]}\n",
    "{}\n",
    "\n",
    "  \r\n",
    "[1]\n",
    "{\"open\": \"\n",
    "{\"half\": \"\\ud800\"}\n",
    "{\"nan\": NaN, \"x\": Infinity}\n",
    "nonsense",
};

json::Parser parser_of() {
  json::Roles roles;
  roles.labels = {"label", "y"};
  roles.weight = "_weight";
  roles.tag = "_tag";
  roles.drop = {"dropped"};
  roles.kinds = {{"text", "text:3"}, {"when", "date"}, {"code", "category"}};
  roles.column_numbers.emplace("city", 1);
  return json::Parser(roles);
}

table::Rows rows_of() {
  table::Rows rows({(1u << 18) - 1, nullptr, true, false, {"NA"}});
  rows.label_mode = table::Labels::codes;
  return rows;
}

// Parses to the end; what is asked for is a cell without features, what is not certainly right is left out.
void parse_all(json::Parser& parser, table::Rows& rows, std::string_view text) {
  const std::unique_ptr<char[]> copy(
      new char[text.size()]);  // of the exact size: any access beyond it is seen
  std::memcpy(copy.get(), text.data(), text.size());
  std::size_t at = 0;
  while (true) {
    const json::Outcome out = parser.parse(rows, copy.get(), copy.get() + text.size(), at, 1 << 20);
    require(rows.labels.size() + 1 == rows.indptr.size() && rows.data.size() == rows.indices.size() &&
                rows.spaces.size() == rows.indices.size() &&
                rows.indptr.back() == static_cast<std::int64_t>(rows.indices.size()),
            "arrays belong together", text);
    if (out.why == json::Stop::end) return;
    require(out.at >= at && out.next > out.at && out.next <= text.size(), "it goes on", text);
    at = out.at;
    if (out.why == json::Stop::cell)
      rows.know(out.column, out.number, out.cell, {});
    else if (out.why == json::Stop::label)
      rows.know_label(out.number, out.cell, 1.0);
    else
      at = out.next;
  }
}

void check(std::string_view text) {
  json::Parser parser = parser_of(), other = parser_of();
  table::Rows whole = rows_of(), parts = rows_of();
  parse_all(parser, whole, text);
  for (const std::string_view line : fuzzing::split_lines(text)) parse_all(other, parts, line);
  require(whole.indices == parts.indices && whole.indptr == parts.indptr && whole.spaces == parts.spaces &&
              whole.tags == parts.tags && whole.numbers == parts.numbers &&
              fuzzing::same_bits(whole.data, parts.data) && fuzzing::same_bits(whole.labels, parts.labels) &&
              fuzzing::same_bits(whole.weights, parts.weights),
          "a line alone is the same row", text);
  for (const double value : whole.data)
    require(value - value == 0.0 && value != 0.0, "values are finite and not zero", text);
}

}  // namespace

int main(int argc, char** argv) {
  return fuzzing::run("fuzz_json", argc, argv, corpus, "{}[]\":,\\u0123456789abtfn.-eE \n",
                      [](std::string_view given, fuzzing::Mutator*) { check(std::string(given) + "\n"); });
}
