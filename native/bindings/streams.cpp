// Text parsers as Python functions: buffers in, arrays out, the GIL released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/memory.hpp"
#include "bindings/module.hpp"
#include "bindings/text_arrays.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/checksum.hpp"
#include "text/hashing.hpp"
#include "text/interactions.hpp"
#include "text/names.hpp"
#include "text/pair_text.hpp"
#include "text/svmlight.hpp"
#include "text/vw_text.hpp"

namespace skn {

namespace {

// The same in half the bytes, or None if a number would not come back as it was.
template <class To, class From>
nb::object narrowed(const Numbers<From>& values) {
  const std::size_t size = values.shape(0);
  Pooled<To> out;
  bool exact = true;
  {
    const nb::gil_scoped_release release;
    out = pooled<To>(size);
    constexpr std::size_t kRun = 256;  // where something is lost, that shows soon
    for (std::size_t start = 0; start < size && exact; start += kRun) {
      const std::size_t stop = std::min(start + kRun, size);
      for (std::size_t i = start; i < stop; ++i) {
        out[i] = static_cast<To>(values.data()[i]);
        exact &= static_cast<From>(out[i]) == values.data()[i];
      }
    }
  }
  return exact ? Memory::view(std::move(out), size) : nb::none();
}

// The same in twice the bytes.
template <class To, class From>
nb::object widened(const Numbers<From>& values) {
  const std::size_t size = values.shape(0);
  Pooled<To> out;
  {
    const nb::gil_scoped_release release;
    out = pooled<To>(size);
    std::copy(values.data(), values.data() + size, out.get());
  }
  return Memory::view(std::move(out), size);
}

// None, or where the error is and where to continue: (column, message, token, next).
template <class Outcome>
nb::object located(const Outcome& result, bool has_token) {
  nb::object token = nb::none();
  if (has_token) token = to_bytes(result.token);
  return nb::make_tuple(result.column, describe(result.error), token, result.next);
}

nb::tuple parse_svmlight(const Text& text, std::size_t max_line_bytes) {
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const char* const end = begin + text.shape(0);
  Pooled<std::int64_t> indptr, indices;
  Pooled<double> data, labels;
  svmlight::Outcome result;
  {
    const nb::gil_scoped_release release;
    const auto [rows, nonzeros] = svmlight::bounds(begin, end);
    indptr = pooled<std::int64_t>(rows + 1);
    indices = pooled<std::int64_t>(nonzeros);
    data = pooled<double>(nonzeros);
    labels = pooled<double>(rows);
    result =
        svmlight::parse(begin, end, {indptr.get(), indices.get(), data.get(), labels.get()}, max_line_bytes);
  }
  nb::object error = nb::none();
  if (result.error != svmlight::Error::none) {
    error = located(result, result.error != svmlight::Error::line_too_long);
  }
  return nb::make_tuple(Memory::view(std::move(indptr), result.rows + 1),
                        Memory::view(std::move(indices), result.nonzeros),
                        Memory::view(std::move(data), result.nonzeros),
                        Memory::view(std::move(labels), result.rows), result.columns, result.lines, error);
}

// The rows' tags as a list of bytes, or None when no row has one.
nb::object tag_list(const vw::Outcome& result) {
  if (result.tag_ends.empty()) return nb::none();
  nb::list tags;
  std::size_t begin = 0;
  for (const std::size_t end : result.tag_ends) {
    tags.append(nb::bytes(result.tags.data() + begin, end - begin));
    begin = end;
  }
  return tags;
}

nb::tuple parse_vw(const Text& text, std::size_t max_line_bytes, std::uint64_t mask, bool string_values,
                   bool spaced, Names* names) {
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const char* const end = begin + text.shape(0);
  Pooled<std::int64_t> indptr, indices, entries;
  Pooled<double> data, labels, importances, bases;
  Pooled<std::uint8_t> spaces;
  vw::Outcome result;
  {
    const nb::gil_scoped_release release;
    const auto [rows, nonzeros] = vw::bounds(begin, end);
    indptr = pooled<std::int64_t>(rows + 1);
    indices = pooled<std::int64_t>(nonzeros);
    data = pooled<double>(nonzeros);
    labels = pooled<double>(rows);
    importances = pooled<double>(rows);
    bases = pooled<double>(rows);
    if (spaced) spaces = pooled<std::uint8_t>(nonzeros);
    if (names != nullptr) entries = pooled<std::int64_t>(nonzeros);
    const vw::Arrays out{indptr.get(),      indices.get(), data.get(),   labels.get(),
                         importances.get(), bases.get(),   spaces.get(), entries.get()};
    std::unique_lock<ForkSafeMutex> lock;
    if (names != nullptr) lock = std::unique_lock(names->mutex());
    result = vw::parse(begin, end, out, {mask, string_values}, names, max_line_bytes);
  }
  nb::object error = nb::none();
  if (result.error != vw::Error::none) error = located(result, result.error != vw::Error::line_too_long);
  nb::object weights = nb::none(), base = nb::none(), space = nb::none(), entry = nb::none();
  if (result.weighted) weights = Memory::view(std::move(importances), result.rows);
  if (result.based) base = Memory::view(std::move(bases), result.rows);
  if (spaced) space = Memory::view(std::move(spaces), result.nonzeros);
  if (names != nullptr) entry = Memory::view(std::move(entries), result.nonzeros);
  return nb::make_tuple(
      Memory::view(std::move(indptr), result.rows + 1), Memory::view(std::move(indices), result.nonzeros),
      Memory::view(std::move(data), result.nonzeros), Memory::view(std::move(labels), result.rows),
      result.columns, result.lines, error, weights, base, tag_list(result), space, entry);
}

// The hash of each name within the namespace of this hash, masked.
nb::object hash_names(const nb::list& names, std::uint64_t seed, std::uint64_t mask) {
  std::vector<std::int64_t> hashes;
  hashes.reserve(names.size());
  for (const nb::handle name : names) {
    const std::uint64_t hash = hashing::name_hash(view(nb::cast<nb::bytes>(name)), seed);
    hashes.push_back(static_cast<std::int64_t>(hash & mask));
  }
  return to_numpy(std::move(hashes));
}

// The indices and entries of names within a namespace, which are added if they are new; `hashes` are the
// indices unless names are exact.
nb::tuple enter_names(Names& names, const nb::bytes& space, const nb::list& list,
                      const Numbers<std::int64_t>& hashes) {
  if (hashes.shape(0) != list.size()) throw nb::value_error("a hash for each name");
  const std::lock_guard lock(names.mutex());
  std::vector<std::int64_t> entries;
  entries.reserve(list.size());
  std::size_t at = 0;
  for (const nb::handle name : list) {
    entries.push_back(names.named(view(space), view(nb::cast<nb::bytes>(name)), hashes.data()[at++]));
  }
  std::vector<std::int64_t> indices;
  indices.reserve(entries.size());
  for (const std::int64_t entry : entries) indices.push_back(names.index(entry));
  return nb::make_tuple(to_numpy(std::move(indices)), to_numpy(std::move(entries)));
}

// Calls f with each entry: single features, then joined ones.
template <class F>
void for_each_entry(Names& names, F f) {
  const std::lock_guard lock(names.mutex());
  for (std::size_t i = 0; i < names.singles(); ++i) f(static_cast<std::int64_t>(2 * i));
  for (std::size_t i = 0; i < names.joints(); ++i) f(static_cast<std::int64_t>(2 * i + 1));
}

nb::tuple expand_rows(const Numbers<std::int64_t>& indptr, const Numbers<std::int64_t>& indices,
                      const Numbers<double>& data, std::optional<Numbers<std::uint8_t>> spaces,
                      std::optional<Numbers<std::int64_t>> entries, Names* names, const nb::bytes& kept,
                      const nb::bytes& ngram, const nb::list& interactions, std::uint64_t mask) {
  Expansion how;
  if (kept.size() != how.kept.size() || ngram.size() != how.ngram.size())
    throw nb::value_error("256 bytes each");
  for (std::size_t i = 0; i < how.kept.size(); ++i) {
    how.kept[i] = kept.c_str()[i] != 0;
    how.ngram[i] = static_cast<std::uint8_t>(ngram.c_str()[i]);
  }
  for (const nb::handle term : interactions) how.interactions.emplace_back(view(nb::cast<nb::bytes>(term)));
  how.mask = mask;
  SpacedRows rows{view(indptr), view(indices), view(data), {}, {}};
  if (spaces) rows.spaces = view(*spaces);
  if (entries) rows.entries = view(*entries);
  const std::size_t count = rows.indices.size();
  bool sound = rows.data.size() == count && !rows.indptr.empty() && rows.indptr.front() == 0 &&
               rows.indptr.back() == static_cast<std::int64_t>(count) &&
               std::is_sorted(rows.indptr.begin(), rows.indptr.end()) &&
               (!spaces || rows.spaces.size() == count) && (!entries || rows.entries.size() == count) &&
               (names != nullptr) == entries.has_value();
  if (!sound) throw nb::value_error("arrays that do not belong together");
  const bool joining =
      !how.interactions.empty() ||
      std::any_of(how.ngram.begin(), how.ngram.end(), [](std::uint8_t longest) { return longest > 1; });
  if (names != nullptr && names->exact() && joining && !names->joins()) {
    throw nb::value_error("names that are not to be joined");
  }
  ExpandedRows out;
  {
    const nb::gil_scoped_release release;
    std::unique_lock<ForkSafeMutex> lock;
    if (names != nullptr) lock = std::unique_lock(names->mutex());
    out = Expander(how, names).expand(rows);
  }
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.data)));
}

nb::tuple pairs_of_rows(const Numbers<std::int64_t>& indptr, const Numbers<std::int64_t>& indices,
                        const Numbers<double>& data) {
  const auto rows = view(indptr);
  const bool sound = !rows.empty() && rows.front() >= 0 && std::is_sorted(rows.begin(), rows.end()) &&
                     rows.back() <= static_cast<std::int64_t>(indices.shape(0)) &&
                     indices.shape(0) == data.shape(0);
  if (!sound) throw nb::value_error("arrays that do not belong together");
  PairText result;
  {
    const nb::gil_scoped_release release;
    result = write_pairs(rows, view(indices), view(data));
  }
  return nb::make_tuple(nb::bytes(result.text.data(), result.text.size()), to_numpy(std::move(result.ends)));
}

nb::str lines_of_numbers(const Numbers<double>& numbers) {
  std::string text;
  {
    const nb::gil_scoped_release release;
    text = write_lines(view(numbers));
  }
  return nb::str(text.data(), text.size());
}

void bind_names(nb::module_& m) {
  nb::class_<Names>(m, "NameTable")
      .def(nb::init<bool>(), nb::arg("exact"))
      .def_prop_ro("exact", &Names::exact)
      .def("set_joins", &Names::set_joins, nb::arg("joins"))
      .def_prop_ro("joins", &Names::joins)
      .def("__len__",
           [](Names& names) {
             const std::lock_guard lock(names.mutex());
             return names.singles() + names.joints();
           })
      .def("enter", &enter_names, nb::arg("space"), nb::arg("names"), nb::arg("hashes"))
      .def("shown",
           [](Names& names) {
             nb::list list;
             for_each_entry(names, [&](std::int64_t entry) {
               list.append(nb::make_tuple(names.index(entry), to_bytes(names.shown(entry))));
             });
             return list;
           })
      .def(
          "keys",
          [](Names& names, std::size_t begin) {
            const std::lock_guard lock(names.mutex());
            nb::list list;
            for (std::size_t i = begin; i < names.singles(); ++i) {
              list.append(to_bytes(names.key(static_cast<std::int64_t>(2 * i))));
            }
            return list;
          },
          nb::arg("begin"))
      .def("snapshot",
           [](Names& names) {
             nb::list keys;
             std::vector<std::int64_t> indices;
             for_each_entry(names, [&](std::int64_t entry) {
               keys.append(to_bytes(names.key(entry)));
               indices.push_back(names.index(entry));
             });
             return nb::make_tuple(keys, to_numpy(std::move(indices)));
           })
      .def("restore", [](Names& names, const nb::bytes& key, std::int64_t hashed) {
        const std::lock_guard lock(names.mutex());
        return names.restore(std::string(view(key)), hashed);
      });
}

}  // namespace

void bind_streams(nb::module_& m) {
  bind_names(m);
  Memory::bind(m);
  m.def(
      "murmur3",
      [](const nb::bytes& data, std::uint32_t seed) {
        return hashing::murmur3(data.c_str(), data.size(), seed);
      },
      nb::arg("data"), nb::arg("seed"));
  m.def(
      "name_hash",
      [](const nb::bytes& name, std::uint64_t seed) { return hashing::name_hash(view(name), seed); },
      nb::arg("name"), nb::arg("seed"));
  m.def("hash_names", &hash_names, nb::arg("names"), nb::arg("seed"), nb::arg("mask"));
  m.def("expand_rows", &expand_rows, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
        nb::arg("spaces").none(), nb::arg("entries").none(), nb::arg("names").none(), nb::arg("kept"),
        nb::arg("ngram"), nb::arg("interactions"), nb::arg("mask"),
        "Drop namespaces, add n-grams and interactions: (indptr, indices, data).");
  m.def("write_pairs", &pairs_of_rows, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
        "All rows as ` index:value …`, and where each ends.");
  m.def("write_lines", &lines_of_numbers, nb::arg("numbers"), "A number per line, with nine digits.");
  m.def("narrowed", &narrowed<std::int32_t, std::int64_t>, nb::arg("values").noconvert());
  m.def("narrowed", &narrowed<float, double>, nb::arg("values").noconvert(),
        "The same in half the bytes, or None if something would be lost by it.");
  m.def("widened", &widened<std::int64_t, std::int32_t>, nb::arg("values").noconvert());
  m.def("widened", &widened<double, float>, nb::arg("values").noconvert(), "The same in twice the bytes.");
  m.def(
      "checksum",
      [](const Text& data, std::int64_t seed) {
        const nb::gil_scoped_release release;
        return static_cast<std::int64_t>(
            checksum(data.data(), data.shape(0), static_cast<std::uint64_t>(seed)));
      },
      nb::arg("data"), nb::arg("seed") = 0,
      "Of bytes that we wrote ourselves; `seed`: of those before them.");
  m.def("parse_vw", &parse_vw, nb::arg("text"), nb::arg("max_line_bytes"), nb::arg("mask"),
        nb::arg("string_values"), nb::arg("spaced"), nb::arg("names").none(),
        "Parse whole lines: (indptr, indices, data, labels, columns, lines, error, weights, base, tags, "
        "spaces,\n"
        "entries), the last five None where they say nothing; error as in parse_svmlight.");
  m.def("parse_svmlight", &parse_svmlight, nb::arg("text"), nb::arg("max_line_bytes"),
        "Parse whole lines: (indptr, indices, data, labels, columns, lines, error).\n\n"
        "error is None or (column, message, token, next) for the line after the first `lines`; the rows are\n"
        "those before it, and the text continues at `next`. token is None where there is none to show.");
}

}  // namespace skn
