// What each part of the module `sketchnewton._native` registers.
#pragma once

#include <nanobind/nanobind.h>

namespace skn {

void bind_arrays(nanobind::module_& m);
void bind_rows(nanobind::module_& m);
void bind_losses(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);  // what all kernels have in common; before those of learners
void bind_newton(nanobind::module_& m);
void bind_full_newton(nanobind::module_& m);
void bind_bank(nanobind::module_& m);
void bind_class_bank(nanobind::module_& m);
void bind_adagrad(nanobind::module_& m);
void bind_dicts(nanobind::module_& m);
void bind_sketches(nanobind::module_& m);
void bind_streams(nanobind::module_& m);
void bind_tables(nanobind::module_& m);  // after streams, which has the names

}  // namespace skn
