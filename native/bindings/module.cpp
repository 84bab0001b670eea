// The module `sketchnewton._native`: each room of the core registers its own functions.
#include "bindings/module.hpp"

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels. State is plain NumPy arrays owned by Python; a kernel works on views of them.";
  nanobind::set_leak_warnings(false);  // learners that are alive when Python exits are no leak
  skn::bind_arrays(m);
  skn::bind_rows(m);
  skn::bind_losses(m);
  skn::bind_kernels(m);
  skn::bind_newton(m);
  skn::bind_full_newton(m);
  skn::bind_bank(m);
  skn::bind_class_bank(m);
  skn::bind_adagrad(m);
  skn::bind_dicts(m);
  skn::bind_sketches(m);
  skn::bind_streams(m);
  skn::bind_tables(m);
}
