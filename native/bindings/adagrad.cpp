// Kernels of AdaGrad's learners: diagonal, with penalties, sketched.
#include "learners/adagrad.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "bindings/state.hpp"
#include "eigen/singular_update.hpp"
#include "learners/adagrad_frequent.hpp"
#include "learners/adagrad_penalty.hpp"
#include "learners/adagrad_sketched.hpp"
#include "learners/penalty.hpp"

namespace skn {

using namespace nb::literals;

namespace {

// A kernel whose weights follow from sums in its table.
class PenaltyKernel : public RowKernel {
 public:
  using RowKernel::RowKernel;
  // The weights of all active features, class by class.
  virtual void weights(Array<double, 2> out) const = 0;
};

template <class T>
class PenaltyKernelOf final : public KernelOf<PenaltyAdaGrad<T>, PenaltyKernel> {
 public:
  using KernelOf<PenaltyAdaGrad<T>, PenaltyKernel>::KernelOf;

  void weights(Array<double, 2> out) const override {
    require(extent(out.shape(0)) == this->kernel_.active() && extent(out.shape(1)) == this->kernel_.classes(),
            "there must be room for the weights of all active features");
    this->kernel_.weights(out.data());
  }
};

template <class T>
std::unique_ptr<RowKernel> adagrad(const Problem& p, double eta, double sigma, bool intercept,
                                   nb::dict arrays) {
  const State s(arrays);
  const AdaGradState state{s.get<std::int64_t>("counts", {3}), s.get<double>("intercept", {2}), eta, sigma,
                           intercept};
  return std::make_unique<KernelOf<AdaGrad<T>>>(s.rows("table"), 1, s.owner(),
                                                AdaGrad<T>(p, state, table_view<T>(s)));
}

template <class T>
std::unique_ptr<PenaltyKernel> composite_adagrad(const Problem& p, const Composite& c, bool intercept,
                                                 nb::dict arrays) {
  const State s(arrays);
  const std::int64_t classes = s.rows("intercept");
  require(classes > 0 && s.columns("table") >= 2 * classes + 2, "the table is too narrow");
  const PenaltyAdaGradState state{s.get<std::int64_t>("counts", {3}), classes,
                                  s.get<double>("intercept", {classes, 3}), intercept};
  return std::make_unique<PenaltyKernelOf<T>>(s.rows("table"), classes, s.owner(),
                                              PenaltyAdaGrad<T>(p, c, state, table_view<T>(s)));
}

// The blocks of a learner: `weights` classes share each of `blocks` sketches. A block takes `width` columns
// of the table, the first weight of all blocks but the first included.
struct BlockShape {
  std::int64_t blocks, weights, width, further, sums;

  BlockColumns columns(std::int64_t block) const {
    const std::int64_t start = 2 + block * width;
    return {weights, block == 0 ? 0 : start, block == 0 ? start : start + 1,
            (block == 0 ? start : start + 1) + further};
  }
};

// `wide`: columns of a sketch without weights; `further`: where further weights stand within a block.
BlockShape block_shape(const State& s, bool of_data, std::int64_t wide, std::int64_t further, bool sums) {
  const std::int64_t classes = s.rows("intercept");
  require(classes > 0, "there are no classes");
  BlockShape shape{of_data ? 1 : classes, of_data ? classes : 1, 0, further, 0};
  shape.width = wide + shape.weights;  // the first block has one column to spare
  const std::int64_t used = 2 + shape.blocks * shape.width;
  shape.sums = used;
  require(s.columns("table") >= used + (sums ? classes : 0), "the table is too narrow");
  return shape;
}

SketchedAdaGradState sketched_view(const State& s, bool intercept) {
  const std::int64_t classes = s.rows("intercept");
  return {s.get<std::int64_t>("counts", {3}), classes, s.get<double>("intercept", {classes, 3}), intercept};
}

template <class T, class Basis, class MakeBasis>
std::unique_ptr<SketchKernel> make_sketched(const Problem& p, const Composite& c, bool intercept,
                                            const State& s, const BlockShape& shape, std::int64_t ld,
                                            MakeBasis make_basis) {
  using Kernel = SketchedAdaGrad<T, Basis>;
  double* a = s.get<double>("a", {shape.blocks});
  double* b = s.get<double>("b", {shape.blocks, shape.weights, ld});
  double* u = s.get<double>("u", {shape.blocks, shape.weights, ld});
  double* sums = Basis::kSpans ? s.get<double>("c", {shape.blocks, shape.weights, ld}) : b;
  std::vector<typename Kernel::Block> blocks;
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    const BlockColumns at = shape.columns(i);
    const std::int64_t offset = i * shape.weights * ld;
    blocks.emplace_back(c, at, shape.sums + i * shape.weights, make_basis(i, at), a + i, b + offset,
                        u + offset, sums + offset);
  }
  const SketchedAdaGradState state = sketched_view(s, intercept);
  return std::make_unique<SketchKernelOf<Kernel, T>>(
      s.rows("table"), state.classes, s.owner(), Kernel(p, c, state, table_view<T>(s), std::move(blocks)));
}

template <class T>
std::unique_ptr<SketchKernel> projection_adaptive(const Problem& p, const Composite& c, bool intercept,
                                                  nb::dict arrays, std::int64_t size, std::uint64_t seed) {
  const State s(arrays);
  require(size > 0, "the sketch is empty");
  const BlockShape shape = block_shape(s, c.of_data, size, size, c.averaging);
  const std::int64_t ld = padded4(size);
  const std::int64_t counters = c.averaging ? 3 : 2;
  std::int64_t* counts = s.get<std::int64_t>("sketch_counts", {shape.blocks, counters});
  double* G = s.get<double>("G", {shape.blocks, size, ld});
  const double scale = std::isfinite(p.clip) ? p.clip : 1.0;
  return make_sketched<T, ProjectionBasis<T>>(
      p, c, intercept, s, shape, ld, [&](std::int64_t i, const BlockColumns& at) {
        // blocks draw from streams of their own
        const ProjectionBasisState view{size, seed + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL,
                                        counts + counters * i, G + i * size * ld,
                                        shape.sums + i * shape.weights};
        return ProjectionBasis<T>(view, at, scale);
      });
}

template <class T>
std::unique_ptr<SketchKernel> frequent_adaptive(const Problem& p, const Composite& c, bool intercept,
                                                nb::dict arrays, std::int64_t size, double ridge) {
  const State s(arrays);
  require(size > 0, "the sketch is empty");
  const std::int64_t q = std::max<std::int64_t>(size - 1, 1), n = 2 * size - 1, ld = padded4(n);
  const std::int64_t ldq = padded4(q), ldm = padded4(size);
  const BlockShape shape = block_shape(s, c.of_data, 1 + q + size, 1 + q, c.averaging && c.l1 > 0);
  const MapShape map{q + shape.weights - 1, padded4(q + shape.weights)};
  using Maps = MapState<T>;
  const std::int64_t blocks = shape.blocks, room = s.columns("touched");
  std::int64_t* counts = s.get<std::int64_t>("sketch_counts", {blocks, 7});
  std::int64_t* touched = s.get<std::int64_t>("touched", {blocks, room});
  std::int64_t* items = s.get<std::int64_t>("items", {blocks, Maps::kLevels});
  double* alpha = s.get<double>("alpha", {blocks});
  double* doubt = s.get<double>("doubt", {blocks});
  double* values = s.get<double>("s", {blocks, ld});
  double* E = s.get<double>("E", {blocks, n, ld});
  double* C = s.get<double>("C", {blocks, size, ldq});
  double* Tm = s.get<double>("T", {blocks, size, ldm});
  T* suffix = s.get<T>("suffix", {blocks, Maps::kLevels * Maps::kGroup, map.q, map.width});
  std::array<T*, Maps::kLevels - 1> archive;
  for (std::int64_t l = 0; l + 1 < Maps::kLevels; ++l)
    archive[l] =
        s.get<T>(("archive" + std::to_string(l)).c_str(), {blocks, Maps::archived(l), map.q, map.width});
  return make_sketched<T, FrequentBasis<T>>(
      p, c, intercept, s, shape, ld, [&](std::int64_t i, const BlockColumns& at) {
        Maps epochs{items + i * Maps::kLevels, suffix + i * Maps::kLevels * Maps::kGroup * map.size(),
                    archive};
        for (std::int64_t l = 0; l + 1 < Maps::kLevels; ++l)
          epochs.archive[l] += i * Maps::archived(l) * map.size();
        const FrequentBasisState<T> view{size,
                                         ridge,
                                         counts + 7 * i,
                                         alpha + i,
                                         doubt + i,
                                         values + i * ld,
                                         E + i * n * ld,
                                         C + i * size * ldq,
                                         Tm + i * size * ldm,
                                         touched + i * room,
                                         room,
                                         epochs};
        return FrequentBasis<T>(view, at);
      });
}

Composite composite(double eta, double sigma, double l1, double l2, bool averaging, bool of_data) {
  return {eta, sigma, l1, l2, averaging, of_data};
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> proximal_newton(Array<const double, 2> columns,
                                                            ConstDoubles center, ConstDoubles pull, double h,
                                                            double l1, double l2) {
  const std::int64_t d = extent(columns.shape(0)), k = extent(columns.shape(1)), ld = padded4(k);
  require(extent(center.size()) == d && extent(pull.size()) == d, "lengths differ");
  Vector beta(static_cast<std::size_t>(d));
  {
    nb::gil_scoped_release release;
    std::vector<double> R(static_cast<std::size_t>(d * ld), 0.0);
    for (std::int64_t i = 0; i < d; ++i) std::copy_n(columns.data() + i * k, k, &R[i * ld]);
    ProximalNewton().solve(R.data(), k, d, center.data(), pull.data(), h, l1, l2, beta.data);
  }
  return beta.array();
}

// SᵀS + vvᵀ, where S has the singular values s and the vectors E, a row each, padded to a multiple of four.
void add_singular_row(Doubles s, Array<double, 2> E, ConstDoubles v) {
  const std::int64_t n = extent(s.size()), ld = padded4(n);
  require(extent(E.shape(0)) == n && extent(E.shape(1)) == ld && extent(v.size()) == n, "shapes differ");
  std::vector<double> row(static_cast<std::size_t>(ld), 0.0);
  std::copy_n(v.data(), n, row.begin());
  nb::gil_scoped_release release;
  SingularUpdate().add(s.data(), {E.data(), ld}, n, row.data());
}

template <class T>
void bind_for(nb::module_& m, const std::string& bits) {
  m.def(("adagrad" + bits).c_str(), &adagrad<T>, "problem"_a, "eta"_a, "sigma"_a, "intercept"_a, "arrays"_a);
  m.def(("composite_adagrad" + bits).c_str(), &composite_adagrad<T>, "problem"_a, "composite"_a,
        "intercept"_a, "arrays"_a);
  m.def(("projection_adaptive" + bits).c_str(), &projection_adaptive<T>, "problem"_a, "composite"_a,
        "intercept"_a, "arrays"_a, "sketch_size"_a, "seed"_a);
  m.def(("frequent_adaptive" + bits).c_str(), &frequent_adaptive<T>, "problem"_a, "composite"_a,
        "intercept"_a, "arrays"_a, "sketch_size"_a, "ridge"_a);
}

}  // namespace

void bind_adagrad(nb::module_& m) {
  nb::class_<Composite>(m, "Composite");
  m.def("composite", &composite, "eta"_a, "sigma"_a, "l1"_a, "l2"_a, "averaging"_a, "of_data"_a);
  m.def("proximal_newton", &proximal_newton, "columns"_a, "center"_a, "pull"_a, "h"_a, "l1"_a, "l2"_a,
        "argmin ½(β − center)ᵀ(hI + RᵀR)(β − center) − ⟨pull, β⟩ + l1‖β‖₁ + ½l2‖β‖²; `columns` is Rᵀ.");
  m.def("add_singular_row", &add_singular_row, "s"_a, "E"_a, "v"_a,
        "The singular values s and right singular vectors E, in rows, of a matrix that gains the row v.");
  nb::class_<PenaltyKernel, RowKernel>(m, "PenaltyKernel")
      .def("weights", &PenaltyKernel::weights, "out"_a,
           "The weights of all active features, class by class.");
  bind_for<float>(m, "32");
  bind_for<double>(m, "64");
}

}  // namespace skn
