// Kernels of the learners of SON: one sketch each, and one sketch for several classes.
#include "learners/newton.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "bindings/state.hpp"
#include "curvature/oja.hpp"
#include "curvature/projection.hpp"
#include "learners/frequent_newton.hpp"
#include "learners/shared_newton.hpp"

namespace skn {

using namespace nb::literals;

namespace {

using SketchKernelPtr = std::unique_ptr<SketchKernel>;

// How large scores are expected to be.
double scale_of(const Problem& p) { return std::isfinite(p.clip) ? p.clip : 1.0; }

NewtonState newton_view(const State& s, double first_alpha, bool diagonal) {
  return {s.get<std::int64_t>("counts", {3}),
          {s.get<double>("intercept", {2})},
          s.get<double>("alpha", {1}),
          s.get<double>("lengths", {3}),
          first_alpha,
          diagonal};
}

template <class T, class Sketch>
SketchKernelPtr make_newton(const Problem& p, const NewtonState& state, const State& s, Sketch sketch) {
  using Kernel = Newton<T, Sketch>;
  return std::make_unique<SketchKernelOf<Kernel, T>>(s.rows("active"), 1, s.owner(),
                                                     Kernel(p, state, table_view<T>(s), std::move(sketch)));
}

template <class T>
SketchKernelPtr newton(const Problem& p, double first_alpha, bool diagonal, nb::dict arrays) {
  const State s(arrays);
  const NewtonState state = newton_view(s, first_alpha, diagonal);
  return make_newton<T>(p, state, s, NoSketch<T>(state.alpha));
}

template <class T>
OjaState oja_view(const State& s, std::int64_t block, std::int64_t outputs = 1) {
  const std::int64_t m = s.rows("F"), ld = padded4(m), room = s.rows("recent");
  require(m > 0 && block > 0 && s.columns("table") >= 2 + m + (block > 1 ? block : 0) + outputs - 1,
          "the table is too narrow");
  return {m,
          block,
          s.get<std::int64_t>("sketch_counts", {5}),
          s.get<double>("growth", {1}),
          s.get<double>("F", {m, ld}),
          s.get<double>("energy", {ld}),
          outputs > 1 ? s.get<double>("c", {outputs, ld}) : s.get<double>("c", {ld}),
          s.has("rate") ? s.get<double>("rate", {ld}) : nullptr,
          s.get<double>("Y", {block, ld}),
          s.get<double>("G", {block, block}),
          s.get<std::int64_t>("recent", {room}),
          room,
          outputs};
}

template <class T>
SketchKernelPtr oja_newton(const Problem& p, double first_alpha, bool diagonal, nb::dict arrays,
                           std::int64_t block) {
  const State s(arrays);
  const NewtonState state = newton_view(s, first_alpha, diagonal);
  return make_newton<T>(p, state, s, Oja<T>(oja_view<T>(s, block), state.alpha, scale_of(p)));
}

template <class T>
FrequentState<T> frequent_view(const State& s, std::int64_t m, std::int64_t every, const ShrinkRule& rule) {
  const std::int64_t n = m - 1 + every, ld = padded4(n), q = std::max<std::int64_t>(m - 1, 1);
  const std::int64_t width = Table<T>::padded(Table<T>::kSketch + FrequentFeatures<T>::columns(m));
  require(m > 0 && every > 0 && s.columns("table") == width, "the table has the wrong width");
  using Epochs = EpochState<T>;
  const Epochs epochs{s.get<std::int64_t>("items", {3}), s.get<T>("open", {Epochs::kGroup, q + every, width}),
                      s.get<T>("suffix", {2 * Epochs::kFan, q, width}),
                      s.get<T>("archive", {Epochs::kFan * Epochs::kFan, q, width})};
  const std::int64_t slots = s.rows("recent"), members = s.rows("group");
  return {rule,
          s.get<double>("shrunk", {1}),
          s.get<double>("lost", {1}),
          s.get<double>("doubt", {1}),
          s.get<double>("M", {n, ld}),
          s.get<double>("H", {n, ld}),
          s.get<double>("C", {every, padded4(q)}),
          s.get<double>("T", {every, padded4(every)}),
          s.get<double>("spread", {every}),
          s.get<double>("c", {ld}),
          {m, every, s.get<std::int64_t>("sketch_counts", {FrequentCounts::kSize}),
           s.get<std::int64_t>("recent", {slots}), s.get<T>("slots", {slots, padded4(every)}),
           s.get<std::int64_t>("group", {members}), epochs, slots, members}};
}

template <class T>
SketchKernelPtr frequent_newton(const Problem& p, double first_alpha, bool diagonal, nb::dict arrays,
                                std::int64_t size, std::int64_t every, double share, double ridge) {
  const State s(arrays);
  const NewtonState state = newton_view(s, first_alpha, diagonal);
  const ShrinkRule rule{share, ridge};
  const FrequentState<T> sketch = frequent_view<T>(s, size, every, rule);
  using Kernel = FrequentNewton<T>;
  const std::int64_t room = s.rows("few");
  require(room >= FewFeatures::few(size, every), "there is too little room for few features");
  double* const few = s.get<double>("few", {room, Kernel::stride(size, every)});
  return std::make_unique<SketchKernelOf<Kernel, T>>(s.rows("active"), 1, s.owner(),
                                                     Kernel(p, state, table_view<T>(s), sketch, few, room));
}

template <class T>
SketchKernelPtr projection_newton(const Problem& p, double first_alpha, bool diagonal, nb::dict arrays,
                                  std::uint64_t seed) {
  const State s(arrays);
  const NewtonState state = newton_view(s, first_alpha, diagonal);
  const std::int64_t size = s.rows("G"), ld = padded4(size);
  require(size > 0 && s.columns("table") >= 2 + size, "the table is too narrow");
  const ProjectionState view{size, seed, s.get<std::int64_t>("sketch_counts", {2}),
                             s.get<double>("G", {size, ld}), s.get<double>("b", {ld})};
  return make_newton<T>(p, state, s, Projection<T>(view, state.alpha, scale_of(p)));
}

template <class T>
std::unique_ptr<RowKernel> shared_newton(const Problem& p, double kappa, double first_alpha, bool diagonal,
                                         nb::dict arrays) {
  const State s(arrays);
  const std::int64_t classes = s.rows("intercepts");
  require(classes > 1, "there must be several classes");
  const SharedState state{{s.get<std::int64_t>("counts", {3}),
                           {nullptr},
                           s.get<double>("alpha", {1}),
                           s.get<double>("lengths", {3}),
                           first_alpha,
                           diagonal},
                          s.get<double>("intercepts", {classes}),
                          s.get<double>("metric", {1}),
                          classes};
  using Kernel = SharedNewton<T>;
  return std::make_unique<KernelOf<Kernel>>(
      s.rows("active"), classes, s.owner(),
      Kernel(p.loss, p.clip, kappa, state, table_view<T>(s),
             Oja<T>(oja_view<T>(s, 1, classes), state.newton.alpha, scale_of(p))));
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> normal_row(std::uint64_t seed, std::uint64_t row, std::size_t n) {
  Vector values(n);
  CounterNormal::fill(seed, row, extent(n), values.data);
  return values.array();
}

template <class T>
void bind_for(nb::module_& m, const std::string& bits) {
  m.def(("newton" + bits).c_str(), &newton<T>, "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a);
  m.def(("oja_newton" + bits).c_str(), &oja_newton<T>, "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a,
        "block"_a);
  m.def(("frequent_newton" + bits).c_str(), &frequent_newton<T>, "problem"_a, "first_alpha"_a, "diagonal"_a,
        "arrays"_a, "sketch_size"_a, "every"_a, "share"_a, "ridge"_a);
  m.def(("projection_newton" + bits).c_str(), &projection_newton<T>, "problem"_a, "first_alpha"_a,
        "diagonal"_a, "arrays"_a, "seed"_a);
  m.def(("shared_newton" + bits).c_str(), &shared_newton<T>, "problem"_a, "kappa"_a, "first_alpha"_a,
        "diagonal"_a, "arrays"_a);
}

}  // namespace

void bind_newton(nb::module_& m) {
  bind_for<float>(m, "32");
  bind_for<double>(m, "64");
  m.def("normal_row", &normal_row, "seed"_a, "row"_a, "n"_a,
        "The standard normal numbers that a random projection draws for a row.");
}

}  // namespace skn
