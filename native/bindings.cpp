// The module `sketchnewton._native`: each room of the core registers its own functions.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_arrays(nb::module_& m);
void bind_dicts(nb::module_& m);
void bind_learners(nb::module_& m);
void bind_sketches(nb::module_& m);
void bind_streams(nb::module_& m);

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels. State is plain NumPy arrays owned by Python; a kernel works on views of them.";
  nb::set_leak_warnings(false);  // learners that are alive when Python exits are no leak
  bind_arrays(m);
  bind_learners(m);
  bind_dicts(m);
  bind_sketches(m);
  bind_streams(m);
}
