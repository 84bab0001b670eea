// Kernels of learners that keep whole matrices.
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "bindings/state.hpp"
#include "learners/full_newton.hpp"
#include "learners/invariant_newton.hpp"

namespace skn {

using namespace nb::literals;

namespace {

std::unique_ptr<RowKernel> full_newton(const Problem& p, bool intercept, nb::dict arrays) {
  const State s(arrays);
  const std::int64_t n = s.rows("w");
  const FullNewtonState state{s.get<std::int64_t>("counts", {2}), s.get<double>("w", {n}),
                              s.get<double>("U", {n, n}), n, intercept};
  return std::make_unique<KernelOf<FullNewton>>(n - 1, 1, s.owner(), FullNewton(p, state));
}

std::unique_ptr<RowKernel> invariant_newton(const Problem& p, bool intercept, nb::dict arrays) {
  const State s(arrays);
  const std::int64_t n = s.rows("v");
  const InvariantNewtonState state{s.get<std::int64_t>("counts", {3}),
                                   s.get<double>("unit", {n}),
                                   s.get<double>("Q", {n, n}),
                                   s.get<double>("U", {n, n}),
                                   s.get<double>("R", {n, n}),
                                   s.get<double>("length", {n}),
                                   s.get<double>("v", {n}),
                                   n,
                                   intercept};
  return std::make_unique<KernelOf<InvariantNewton>>(n - 1, 1, s.owner(), InvariantNewton(p, state));
}

}  // namespace

void bind_full_newton(nb::module_& m) {
  m.def("full_newton", &full_newton, "problem"_a, "intercept"_a, "arrays"_a);
  m.def("invariant_newton", &invariant_newton, "problem"_a, "intercept"_a, "arrays"_a);
}

}  // namespace skn
