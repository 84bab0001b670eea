// Parsers of tables as Python objects: they stop where something is to be asked, and continue from there.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/memory.hpp"
#include "bindings/module.hpp"
#include "bindings/text_arrays.hpp"
#include "memory/buffer_pool.hpp"
#include "text/column_rows.hpp"
#include "text/csv_rows.hpp"
#include "text/json_rows.hpp"
#include "text/table_rows.hpp"

namespace skn {

namespace {

using table::Rows;

constexpr const char* kKinds[] = {"", "number", "boolean", "category", "text", "date"};
constexpr const char* kCsvStops[] = {"end", "open", "fields", "cell", "label", "weight"};
constexpr const char* kJsonStops[] = {"end", "long", "line", "cell", "label"};

std::vector<std::string> texts_of(const nb::list& list) {
  std::vector<std::string> texts;
  for (const nb::handle item : list) texts.emplace_back(view(nb::cast<nb::bytes>(item)));
  return texts;
}

// A copy as a memoryview; the vector is empty afterwards and keeps its room.
template <class T>
nb::object taken(std::vector<T>& values) {
  Pooled<T> memory = pooled<T>(values.size());
  std::copy(values.begin(), values.end(), memory.get());
  const std::size_t size = values.size();
  values.clear();
  return Memory::view(std::move(memory), size);
}

void make_rows(Rows* rows, std::uint64_t mask, Names* names, bool spaced, const nb::list& missing,
               const std::string& labels) {
  new (rows) Rows({mask, names, spaced, false, texts_of(missing)});
  rows->label_mode = labels == "ignored" ? table::Labels::ignored
                     : labels == "codes" ? table::Labels::codes
                                         : table::Labels::numbers;
}

table::Column& column_at(Rows& rows, std::size_t at) {
  if (at >= rows.columns.size()) throw nb::index_error("no such column");
  return rows.columns[at];
}

void know(Rows& rows, std::size_t column, bool number, const nb::bytes& cell, const nb::list& features,
          bool misfit) {
  column_at(rows, column);
  std::vector<table::Feature> known;
  for (const nb::handle item : features) {
    const auto pair = nb::cast<nb::tuple>(item);
    known.push_back({std::string(view(nb::cast<nb::bytes>(pair[0]))), nb::cast<double>(pair[1])});
  }
  rows.know(column, number, view(cell), {std::move(known), misfit});
}

// A row that was made elsewhere, of (namespace, name, number of the column, value).
void add_row(Rows& rows, double label, double weight, const nb::bytes& tag, const nb::list& features) {
  for (const nb::handle item : features) {
    const auto parts = nb::cast<nb::tuple>(item);
    const std::string_view space = view(nb::cast<nb::bytes>(parts[0]));
    const std::string_view name = view(nb::cast<nb::bytes>(parts[1]));
    rows.add(space, name, nb::cast<std::uint8_t>(parts[2]),
             hashing::name_hash(name, hashing::name_hash(space, 0)), nb::cast<double>(parts[3]));
  }
  std::unique_lock<ForkSafeMutex> lock;
  if (rows.options().names != nullptr) lock = std::unique_lock(rows.options().names->mutex());
  rows.commit(label, weight, view(tag));
}

// (indptr, indices, data, labels, weights, tags, spaces, numbers, entries), the last five None where they say
// nothing. No rows are left.
nb::tuple take(Rows& rows) {
  nb::object weights = nb::none(), tags = nb::none(), spaces = nb::none(), numbers = nb::none(),
             entries = nb::none();
  if (rows.weighted) weights = taken(rows.weights);
  if (rows.tagged) {
    nb::list list;
    for (const std::string& tag : rows.tags) list.append(to_bytes(tag));
    tags = list;
  }
  if (rows.options().spaced) {
    spaces = taken(rows.spaces);
    numbers = taken(rows.numbers);
  }
  if (rows.options().names != nullptr) entries = taken(rows.entries);
  nb::object indptr = taken(rows.indptr), indices = taken(rows.indices), data = taken(rows.data),
             labels = taken(rows.labels);
  rows.indptr.assign(1, 0);
  rows.weights.clear();
  rows.tags.clear();
  rows.weighted = rows.tagged = false;
  return nb::make_tuple(indptr, indices, data, labels, weights, tags, spaces, numbers, entries);
}

// The columns whose kinds were found since the last call.
nb::list found(Rows& rows) {
  nb::list list;
  for (const std::size_t at : rows.found) {
    const table::Column& column = rows.columns[at];
    list.append(nb::make_tuple(to_bytes(column.key), kKinds[static_cast<std::size_t>(column.kind)]));
  }
  rows.found.clear();
  return list;
}

// Calls f with the text, without the GIL, and with the names locked.
template <class F>
auto on_text(Rows& rows, const Text& text, std::size_t at, F f) {
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const char* const end = begin + text.shape(0);
  if (at > text.shape(0)) throw nb::index_error("beyond the text");
  if (begin < end && end[-1] != '\n') throw nb::value_error("a text must end with a line end");
  const nb::gil_scoped_release release;
  std::unique_lock<ForkSafeMutex> lock;
  if (rows.options().names != nullptr) lock = std::unique_lock(rows.options().names->mutex());
  return f(begin, end);
}

// How many records a text has that are not blank lines, up to `most`; where the first of them begins and
// ends, and how many lines stand before it and are its own.
nb::tuple csv_start(const Text& text, char delimiter, char quote, std::size_t most) {
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const char* const end = begin + text.shape(0);
  if (begin < end && end[-1] != '\n') throw nb::value_error("a text must end with a line end");
  std::size_t records = 0;
  std::ptrdiff_t first = 0, behind = 0;
  std::int64_t lines = 0, own = 0;
  {
    const nb::gil_scoped_release release;
    csv::Record record(delimiter, quote);
    record.begin(end);
    for (const char* p = begin; p < end && records < most;) {
      const char* const next = record.read(p, end);
      if (next == nullptr) break;
      if (record.size() > 0 && records++ == 0) {
        first = p - begin;
        behind = next - begin;
        own = record.lines();
      }
      lines += records == 0;
      p = next;
    }
  }
  return nb::make_tuple(records, first, behind, lines, own);
}

struct CsvParser {
  csv::Parser parser;
  std::int32_t most = -1;  // of the columns
  std::size_t fields = 0;

  CsvParser(char delimiter, char quote, std::vector<std::int32_t> roles)
      : parser(delimiter, quote, roles), fields(roles.size()) {
    for (const std::int32_t role : roles) most = std::max(most, role);
  }

  nb::tuple parse(Rows& rows, const Text& text, std::size_t at) {
    if (most >= extent(rows.columns.size())) throw nb::index_error("no such column");
    rows.forget_if_many(at);
    const csv::Outcome out = on_text(rows, text, at, [&](const char* begin, const char* end) {
      return parser.parse(rows, begin, end, at);
    });
    return nb::make_tuple(kCsvStops[static_cast<std::size_t>(out.why)], out.at, out.next, out.lines, out.own,
                          out.first, out.fields, out.field, to_bytes(out.cell));
  }

  nb::list look(Rows& rows, const Text& text, std::size_t at, const std::vector<std::size_t>& wanted,
                std::size_t records, bool all) {
    for (const std::size_t field : wanted)
      if (field >= fields) throw nb::index_error("no such field");
    const auto columns = on_text(rows, text, at, [&](const char* begin, const char* end) {
      return parser.look(rows, begin + at, end, wanted, records, all);
    });
    nb::list result;
    for (const auto& cells : columns) {
      nb::list list;
      for (const std::string& cell : cells) list.append(to_bytes(cell));
      result.append(list);
    }
    return result;
  }
};

// The columns of some rows of a table. Numbers and the bytes of texts are read where they are.
struct TableColumns {
  table::Columns columns;
  nb::list owners;

  explicit TableColumns(Rows& rows) { rows.forget_if_many(0); }

  void add_numbers(Rows& rows, std::size_t column, const Numbers<double>& values) {
    column_at(rows, column);
    columns.add_numbers(column, view(values));
    owners.append(nb::cast(values));
  }

  std::vector<std::int64_t> add_texts(Rows& rows, std::size_t column, const Numbers<std::int64_t>& codes,
                                      const Numbers<std::int64_t>& offsets, const Text& data) {
    column_at(rows, column);
    table::PackedTexts texts = packed(codes, offsets, data);
    const nb::gil_scoped_release release;
    return columns.add_texts(rows, column, std::move(texts));
  }

  void add_number_lists(Rows& rows, std::size_t column, const Numbers<std::int64_t>& ends,
                        const Numbers<double>& items) {
    column_at(rows, column);
    columns.add_number_lists(column, checked_ends(ends, items.size()), view(items));
    owners.append(nb::cast(items));
  }

  void add_word_lists(Rows& rows, std::size_t column, const Numbers<std::int64_t>& ends,
                      const Numbers<std::int64_t>& codes, const Numbers<std::int64_t>& offsets,
                      const Text& data) {
    column_at(rows, column);
    columns.add_word_lists(rows, column, checked_ends(ends, codes.size()), packed(codes, offsets, data));
  }

  void set_states(const Numbers<std::uint8_t>& states) {
    require(columns.size() > 0, "no column");
    const std::span<const std::uint8_t> each = view(states);
    columns.set_states({each.begin(), each.end()});
  }

  void leave_out(std::size_t code) {
    if (!columns.leave_out(code)) throw nb::index_error("no such text");
  }

  table::PackedTexts packed(const Numbers<std::int64_t>& codes, const Numbers<std::int64_t>& offsets,
                            const Text& data) {
    const std::span<const std::int64_t> each = view(codes), ends = view(offsets);
    table::PackedTexts texts{{each.begin(), each.end()},
                             {ends.begin(), ends.end()},
                             {reinterpret_cast<const char*>(data.data()), data.size()}};
    require(texts.valid(), "a text beyond the data");
    owners.append(nb::cast(data));
    return texts;
  }

  static std::vector<std::int64_t> checked_ends(const Numbers<std::int64_t>& ends, std::size_t items) {
    const std::span<const std::int64_t> each = view(ends);
    std::int64_t before = 0;
    for (const std::int64_t end : each) {
      require(end >= before && end <= static_cast<std::int64_t>(items), "a list beyond the items");
      before = end;
    }
    return {each.begin(), each.end()};
  }

  // Adds the rows, of which some are kept.
  void add_rows(Rows& rows, const Numbers<double>& labels, const std::optional<Numbers<double>>& weights,
                const std::optional<nb::list>& tags, const std::optional<Numbers<bool>>& kept) {
    const std::size_t count = labels.size();
    require(columns.have(count) && (!weights || weights->size() == count) &&
                (!tags || tags->size() == count) && (!kept || kept->size() == count),
            "columns of different lengths");
    const std::vector<std::string> texts = tags ? texts_of(*tags) : std::vector<std::string>();
    const nb::gil_scoped_release release;
    std::unique_lock<ForkSafeMutex> lock;
    if (rows.options().names != nullptr) lock = std::unique_lock(rows.options().names->mutex());
    rows.reserve(count * columns.size());
    for (std::size_t row = 0; row < count; ++row) {
      if (kept && !kept->data()[row]) continue;
      require(columns.add_row(rows, row), "a cell that nothing is known of");
      rows.commit(labels.data()[row], weights ? weights->data()[row] : 1.0,
                  tags ? std::string_view(texts[row]) : std::string_view());
    }
  }
};

void make_json_parser(json::Parser* parser, const nb::list& labels, const nb::bytes& weight,
                      const nb::bytes& tag, bool weight_wanted, const nb::list& drop, bool only_labels,
                      const nb::dict& column_numbers) {
  json::Roles roles;
  roles.labels = texts_of(labels);
  roles.weight = view(weight);
  roles.tag = view(tag);
  roles.weight_wanted = weight_wanted;
  roles.drop = texts_of(drop);
  roles.only_labels = only_labels;
  for (const auto [name, number] : column_numbers)
    roles.column_numbers.emplace(view(nb::cast<nb::bytes>(name)), nb::cast<std::uint8_t>(number));
  new (parser) json::Parser(std::move(roles));
}

nb::tuple parse_json(json::Parser& parser, Rows& rows, const Text& text, std::size_t at,
                     std::size_t max_line_bytes) {
  rows.forget_if_many(at);
  const json::Outcome out = on_text(rows, text, at, [&](const char* begin, const char* end) {
    return parser.parse(rows, begin, end, at, max_line_bytes);
  });
  nb::object key = nb::none();
  if (out.why == json::Stop::cell) key = to_bytes(rows.columns[out.column].key);
  return nb::make_tuple(kJsonStops[static_cast<std::size_t>(out.why)], out.at, out.next, out.lines,
                        out.column, key, out.number, to_bytes(out.cell));
}

}  // namespace

void bind_tables(nb::module_& m) {
  nb::class_<Rows>(m, "TableRows", "Rows of a table in the making.")
      .def("__init__", &make_rows, nb::arg("mask"), nb::arg("names").none(), nb::arg("spaced"),
           nb::arg("missing"), nb::arg("labels"), nb::keep_alive<1, 3>())
      .def(
          "add_column",
          [](Rows& rows, const nb::bytes& key, std::uint8_t number) {
            return rows.add_column(view(key), number);
          },
          nb::arg("key"), nb::arg("number"))
      .def(
          "set_kind",
          [](Rows& rows, std::size_t column, const std::string& kind) {
            column_at(rows, column);
            if (!rows.set_kind(column, kind)) throw nb::value_error("no such kind");
          },
          nb::arg("column"), nb::arg("kind"))
      .def("set_decimal_comma", &Rows::set_decimal_comma)
      .def("know", &know, nb::arg("column"), nb::arg("number"), nb::arg("cell"), nb::arg("features"),
           nb::arg("misfit"),
           "What a cell becomes: (what follows the column's name, value) for each feature.")
      .def(
          "know_label",
          [](Rows& rows, bool number, const nb::bytes& cell, double label) {
            rows.know_label(number, view(cell), label);
          },
          nb::arg("number"), nb::arg("cell"), nb::arg("label"))
      .def(
          "know_weight",
          [](Rows& rows, const nb::bytes& cell, double weight) { rows.know_weight(view(cell), weight); },
          nb::arg("cell"), nb::arg("weight"))
      .def(
          "misfits", [](Rows& rows) { return std::exchange(rows.misfits, 0); },
          "Cells that were taken as missing since the last call.")
      .def("add_row", &add_row, nb::arg("label"), nb::arg("weight"), nb::arg("tag"), nb::arg("features"))
      .def("found", &found, "The columns whose kinds were found since the last call, and these.")
      .def("take", &take,
           "(indptr, indices, data, labels, weights, tags, spaces, numbers, entries); none are left.");
  m.def("csv_start", &csv_start, nb::arg("text"), nb::arg("delimiter"), nb::arg("quote"), nb::arg("most"),
        "Records that are not blank lines, up to `most`, and the first: (records, begin, end, lines, own).");
  nb::class_<CsvParser>(m, "CsvParser")
      .def(nb::init<char, char, std::vector<std::int32_t>>(), nb::arg("delimiter"), nb::arg("quote"),
           nb::arg("roles"))
      .def("parse", &CsvParser::parse, nb::arg("rows"), nb::arg("text"), nb::arg("at"),
           "Add records until one needs an answer: (why, at, next, lines, own, first, fields, field, cell).")
      .def("look", &CsvParser::look, nb::arg("rows"), nb::arg("text"), nb::arg("at"), nb::arg("wanted"),
           nb::arg("records"), nb::arg("all"), "The different cells of some fields in the first records.");
  nb::class_<TableColumns>(m, "TableColumns", "The columns of some rows of a table.")
      .def(nb::init<Rows&>(), nb::arg("rows"))
      .def("add_numbers", &TableColumns::add_numbers, nb::arg("rows"), nb::arg("column"), nb::arg("values"),
           "NaN is a missing one.")
      .def("add_texts", &TableColumns::add_texts, nb::arg("rows"), nb::arg("column"), nb::arg("codes"),
           nb::arg("offsets"), nb::arg("data"), "The codes in use of texts of which something must be asked.")
      .def("add_number_lists", &TableColumns::add_number_lists, nb::arg("rows"), nb::arg("column"),
           nb::arg("ends"), nb::arg("items"), "NaN is no item.")
      .def("add_word_lists", &TableColumns::add_word_lists, nb::arg("rows"), nb::arg("column"),
           nb::arg("ends"), nb::arg("codes"), nb::arg("offsets"), nb::arg("data"))
      .def("set_states", &TableColumns::set_states, nb::arg("states"),
           "Whether each row has the last column (0), no value in it (1), or not the column either (2).")
      .def("leave_out", &TableColumns::leave_out, nb::arg("code"),
           "A text of the last column that is taken as missing.")
      .def("add_rows", &TableColumns::add_rows, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(),
           nb::arg("tags").none(), nb::arg("kept").none());
  nb::class_<json::Parser>(m, "JsonParser")
      .def("__init__", &make_json_parser, nb::arg("labels"), nb::arg("weight"), nb::arg("tag"),
           nb::arg("weight_wanted"), nb::arg("drop"), nb::arg("only_labels"), nb::arg("column_numbers"))
      .def(
          "set_kind",
          [](json::Parser& parser, Rows& rows, const nb::bytes& key, const std::string& kind) {
            parser.set_kind(rows, view(key), kind);
          },
          nb::arg("rows"), nb::arg("key"), nb::arg("kind"))
      .def("parse", &parse_json, nb::arg("rows"), nb::arg("text"), nb::arg("at"), nb::arg("max_line_bytes"),
           "Add lines until one needs an answer: (why, at, next, lines, column, key, number, cell).");
}

}  // namespace skn
