// Losses, and what a learner is told about its problem.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/array.hpp"
#include "bindings/module.hpp"
#include "core/losses.hpp"
#include "core/newton_problem.hpp"

namespace skn {

using namespace nb::literals;

namespace {

Problem problem(int loss, double parameter, double clip, double curvature, double eta, double power,
                bool by_dimension, bool project) {
  return {make_loss(loss, parameter), clip, curvature, eta, power, by_dimension, project};
}

using NewVector = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

std::tuple<NewVector, NewVector> loss_values(int code, double parameter, ConstDoubles predictions,
                                             ConstDoubles labels) {
  const Loss loss = make_loss(code, parameter);
  require(predictions.size() == labels.size(), "lengths differ");
  Vector values(predictions.size()), derivatives(predictions.size());
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    values.data[i] = loss.value(predictions.data()[i], labels.data()[i]);
    derivatives.data[i] = loss.derivative(predictions.data()[i], labels.data()[i]);
  }
  return {values.array(), derivatives.array()};
}

}  // namespace

void bind_losses(nb::module_& m) {
  nb::class_<Problem>(m, "Problem");
  m.def("problem", &problem, "loss"_a, "parameter"_a, "clip"_a, "curvature"_a, "eta"_a, "power"_a,
        "by_dimension"_a = false, "project"_a = true);
  m.def("loss_values", &loss_values, "code"_a, "parameter"_a, "predictions"_a, "labels"_a);
}

}  // namespace skn
