// Where the records of delimited text begin and end, and how many fields they have: what is needed to cut a
// stream into pieces and to say where an error is. A quote is special where a field begins, as in RFC 4180.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skn::csv {

struct Records {
  std::vector<std::int64_t> ends;    // behind each record's line end
  std::vector<std::int64_t> fields;  // 0: a blank line
  std::vector<std::int64_t> lines;   // how many lines each record takes
  bool open = false;                 // the text ends within quotes; then the last record is left out
};

// The records of [begin, end); the last one may lack its line end. `quote` 0: none is special.
inline Records scan(const char* begin, const char* end, char delimiter, char quote) {
  Records result;
  const char* p = begin;
  while (p < end) {
    const char* const record = p;
    std::int64_t fields = 1, lines = 1;
    bool at_start = true;
    while (p < end && *p != '\n' && *p != '\r') {
      if (*p == delimiter) {
        ++fields;
        at_start = true;
        ++p;
      } else if (at_start && *p == quote && quote != 0) {
        bool closed = false;
        for (++p; p < end && !closed; ++p) {
          lines += *p == '\n';
          if (*p != quote) continue;
          if (p + 1 < end && p[1] == quote) {
            ++p;  // two quotes mean one
          } else {
            closed = true;
          }
        }
        if (!closed) {
          result.open = true;
          return result;
        }
        at_start = false;
      } else {
        at_start = false;
        ++p;
      }
    }
    if (p == record) fields = 0;
    if (p < end && *p == '\r' && p + 1 < end && p[1] == '\n') ++p;
    if (p < end) ++p;
    result.ends.push_back(p - begin);
    result.fields.push_back(fields);
    result.lines.push_back(lines);
  }
  return result;
}

}  // namespace skn::csv
