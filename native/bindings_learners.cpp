#include <nanobind/nanobind.h>
void bind_learners(nanobind::module_&) {}
