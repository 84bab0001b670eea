// Text parsers as Python functions: buffers in, NumPy arrays out, the GIL released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>

#include "svmlight.hpp"

namespace nb = nanobind;
namespace svmlight = sketchnewton::svmlight;

namespace {

using Text = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Hands memory over to a NumPy array of the first `size` elements.
template <class T>
nb::object to_numpy(std::unique_ptr<T[]> memory, std::size_t size) {
  T* const start = memory.get();
  const nb::capsule owner(start, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  memory.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(start, {size}, owner));
}

nb::tuple parse_svmlight(const Text& text, std::size_t max_line_bytes) {
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const char* const end = begin + text.shape(0);
  std::unique_ptr<std::int64_t[]> indptr, indices;
  std::unique_ptr<double[]> data, labels;
  svmlight::Outcome result;
  {
    const nb::gil_scoped_release release;
    const auto [rows, nonzeros] = svmlight::bounds(begin, end);
    indptr = std::make_unique_for_overwrite<std::int64_t[]>(rows + 1);
    indices = std::make_unique_for_overwrite<std::int64_t[]>(nonzeros);
    data = std::make_unique_for_overwrite<double[]>(nonzeros);
    labels = std::make_unique_for_overwrite<double[]>(rows);
    result =
        svmlight::parse(begin, end, {indptr.get(), indices.get(), data.get(), labels.get()}, max_line_bytes);
  }
  nb::object error = nb::none();
  if (result.error != svmlight::Error::none) {
    nb::object token = nb::none();
    if (result.error != svmlight::Error::line_too_long) {
      token = nb::bytes(result.token.data(), result.token.size());
    }
    error = nb::make_tuple(result.column, svmlight::describe(result.error), token);
  }
  return nb::make_tuple(to_numpy(std::move(indptr), result.rows + 1),
                        to_numpy(std::move(indices), result.nonzeros),
                        to_numpy(std::move(data), result.nonzeros), to_numpy(std::move(labels), result.rows),
                        result.columns, result.lines, error);
}

}  // namespace

void bind_streams(nb::module_& m) {
  m.def("parse_svmlight", &parse_svmlight, nb::arg("text"), nb::arg("max_line_bytes"),
        "Parse whole lines: (indptr, indices, data, labels, columns, lines, error).\n\n"
        "error is None or (column, message, token) for the line after the first `lines`; the rows are those\n"
        "before it. token is None where there is none to show.");
}
