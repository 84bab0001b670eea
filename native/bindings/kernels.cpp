// The interfaces of kernels (row_kernel.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "core/table.hpp"

namespace skn {

using namespace nb::literals;

void bind_kernels(nb::module_& m) {
  nb::class_<RowKernel>(m, "RowKernel")
      .def("learn", &RowKernel::learn, "rows"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def("learn_one", &RowKernel::learn_one, "row"_a, "label"_a)
      .def("predict", &RowKernel::predict, "rows"_a, "out"_a);
  nb::class_<SketchKernel, RowKernel>(m, "SketchKernel")
      .def("settled", &SketchKernel::settled, "out"_a,
           "Copies of the rows of all active features, with all work done that was put off.");
  m.def("padded_columns", &Table<float>::padded, "columns"_a);
}

}  // namespace skn
