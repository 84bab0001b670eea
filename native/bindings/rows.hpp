// A batch of rows as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/rows.hpp"

namespace skn {

// `owner` keeps the arrays alive. They are looked at once; a row that has become another since then is
// refused when it is loaded.
struct PyRows {
  std::unique_ptr<Rows> rows;
  nanobind::object owner;
  std::optional<Scan> scan = {};

  // May a kernel with a table of so many features learn them?
  bool fit(std::int64_t features) const {
    return scan && scan->bad_row < 0 && scan->largest_index < features;
  }
};

}  // namespace skn
