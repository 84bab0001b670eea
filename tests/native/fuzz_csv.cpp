// Mutation fuzzing of the search for CSV records, meant to run under AddressSanitizer and UBSan.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "text/csv_records.hpp"

namespace csv = skn::csv;
using fuzzing::require;

namespace {

const std::vector<std::string> corpus = {
    "label,a,b\n1,2,3\n",
    "1,\"a,b\",\"say \"\"hi\"\"\"\n",
    "1,\"two\nlines\",3\r\n\r\n4,5,6\r\n",
    "1,2\n\n\n3,4",
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
    std::string("1,\0,2\n", 6),
};

// In a heap block of the exact size, so that any access beyond it is seen.
csv::Records scan(std::string_view text, char delimiter, char quote) {
  const std::unique_ptr<char[]> copy(new char[text.size()]);
  if (!text.empty()) std::memcpy(copy.get(), text.data(), text.size());
  return csv::scan(copy.get(), copy.get() + text.size(), delimiter, quote);
}

void check(std::string_view text, char delimiter, char quote) {
  const csv::Records whole = scan(text, delimiter, quote);
  require(whole.ends.size() == whole.fields.size() && whole.ends.size() == whole.lines.size(),
          "as many of each", text);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < whole.ends.size(); ++i) {
    const std::int64_t end = whole.ends[i];
    require(end > begin && end <= static_cast<std::int64_t>(text.size()), "ends grow", text);
    const std::string_view record =
        text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    const csv::Records one = scan(record, delimiter, quote);
    require(!one.open && one.ends.size() == 1 && one.fields[0] == whole.fields[i] &&
                one.lines[0] == whole.lines[i],
            "a record alone is the same record", text);
    require((whole.fields[i] == 0) == (record.find_first_not_of("\r\n") == record.npos),
            "blank lines have no field", text);
    begin = end;
  }
  require(whole.open == (begin < static_cast<std::int64_t>(text.size())), "all is read but an open record",
          text);
  require(!whole.open || quote != 0, "only quotes leave a record open", text);
}

}  // namespace

int main(int argc, char** argv) {
  return fuzzing::run("fuzz_csv", argc, argv, corpus, "0123456789,,\"\"\"\t\r\n\n",
                      [](std::string_view text, fuzzing::Mutator*) {
                        check(text, ',', '"');
                        check(text, '\t', '\0');
                      });
}
