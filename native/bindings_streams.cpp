#include <nanobind/nanobind.h>
void bind_streams(nanobind::module_&) {}
