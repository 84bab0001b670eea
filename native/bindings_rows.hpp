// A batch of rows as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "rows.hpp"

// `owner` keeps the arrays alive.
struct PyRows {
  std::unique_ptr<skn::Rows> rows;
  nanobind::object owner;
  std::int64_t largest = -1;  // feature index, known once scanned
  bool scanned = false;
};
