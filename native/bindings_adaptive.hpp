// Bindings of AdaGrad's learners: part of bindings_learners.cpp, whose helpers it uses.
#pragma once

#include "adagrad_composite.hpp"
#include "adaptive.hpp"
#include "adaptive_frequent.hpp"

namespace {

// Kernels with one output per class and row.
template <class Kernel, class T>
struct ClassKernel {
  Kernel kernel;
  std::int64_t features, classes;
  nb::object owner;

  void learn(const PyRows& x, ConstDoubles labels, std::optional<ConstDoubles> weights, Array2<double> out) {
    const std::size_t n = check_out(x, out);
    require(x.fit(features), "rows must be scanned, and the table must have room for them");
    require(labels.size() == n && (!weights || weights->size() == n), "lengths differ");
    for (std::size_t i = 0; i < n && classes > 1; ++i)
      require(labels.data()[i] >= 0 && labels.data()[i] < static_cast<double>(classes), "no such class");
    nb::gil_scoped_release release;
    kernel.learn(*x.rows, labels.data(), data_or_null(weights), out.data());
  }

  void predict(const PyRows& x, Array2<double> out) {
    check_out(x, out);
    nb::gil_scoped_release release;
    kernel.predict(*x.rows, features, out.data());
  }

 private:
  std::size_t check_out(const PyRows& x, const Array2<double>& out) const {
    const auto n = static_cast<std::size_t>(x.rows->count());
    require(out.shape(0) == n && extent(out.shape(1)) == classes, "lengths differ");
    return n;
  }
};

template <class Kernel, class T>
nb::class_<ClassKernel<Kernel, T>> bind_class_kernel(nb::module_& m, const std::string& name) {
  using K = ClassKernel<Kernel, T>;
  return nb::class_<K>(m, name.c_str())
      .def("learn", &K::learn, "rows"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def("predict", &K::predict, "rows"_a, "out"_a);
}

template <class Kernel, class T>
void bind_adaptive_kernel(nb::module_& m, const std::string& name) {
  using K = ClassKernel<Kernel, T>;
  bind_class_kernel<Kernel, T>(m, name).def(
      "settled", [](K& k, Array2<T> out) { k.kernel.settled(out.data()); }, "out"_a,
      "Copies of the rows of all active features, with all work done that was put off.");
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
  BlockShape shape{of_data ? 1 : classes, of_data ? classes : 1, 0, further, 0};
  shape.width = wide + shape.weights;  // the first block has one column to spare
  const std::int64_t used = 2 + shape.blocks * shape.width;
  shape.sums = used;
  require(s.columns("table") >= used + (sums ? classes : 0), "the table is too narrow");
  return shape;
}

AdaptiveState adaptive_view(const State& s, bool intercept) {
  const std::int64_t classes = s.rows("intercept");
  return {s.get<std::int64_t>("counts", {3}), classes, s.get<double>("intercept", {classes, 3}), intercept};
}

template <class T, class Basis, class MakeBasis>
auto make_adaptive(const Problem& p, const Composite& c, bool intercept, const State& s,
                   const BlockShape& shape, std::int64_t ld, MakeBasis make_basis) {
  using Kernel = Adaptive<T, Basis>;
  double* a = s.get<double>("a", {shape.blocks});
  double* b = s.get<double>("b", {shape.blocks, shape.weights, ld});
  double* u = s.get<double>("u", {shape.blocks, shape.weights, ld});
  std::vector<typename Kernel::Block> blocks;
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    const BlockColumns at = shape.columns(i);
    const std::int64_t offset = i * shape.weights * ld;
    blocks.emplace_back(c, at, shape.sums + i * shape.weights, make_basis(i, at), a + i, b + offset,
                        u + offset);
  }
  const AdaptiveState state = adaptive_view(s, intercept);
  return ClassKernel<Kernel, T>{
      {p, c, state, table_view<T>(s), std::move(blocks)}, s.rows("table"), state.classes, s.owner()};
}

template <class T>
void bind_adaptive_for(nb::module_& m, const std::string& bits) {
  using Projected = Adaptive<T, ProjectionBasis<T>>;
  using Frequented = Adaptive<T, FrequentBasis<T>>;
  using Diagonal = CompositeAdaGrad<T>;
  bind_adaptive_kernel<Projected, T>(m, "ProjectionAdaptive" + bits);
  bind_adaptive_kernel<Frequented, T>(m, "FrequentAdaptive" + bits);
  using K = ClassKernel<Diagonal, T>;
  bind_class_kernel<Diagonal, T>(m, "CompositeAdaGrad" + bits)
      .def(
          "weights", [](const K& k, Array2<double> out) { k.kernel.weights(out.data()); }, "out"_a,
          "The weights of all active features, class by class.");

  m.def(("projection_adaptive" + bits).c_str(),
        [](const Problem& p, const Composite& c, bool intercept, nb::dict arrays, std::int64_t size,
           std::uint64_t seed) {
          const State s(arrays);
          require(size > 0, "the sketch is empty");
          const BlockShape shape = block_shape(s, c.of_data, size, size, c.averaging && c.l1 > 0);
          const std::int64_t ld = padded4(size);
          std::int64_t* counts = s.get<std::int64_t>("sketch_counts", {shape.blocks, 2});
          double* G = s.get<double>("G", {shape.blocks, size, ld});
          const double scale = std::isfinite(p.clip) ? p.clip : 1.0;
          return make_adaptive<T, ProjectionBasis<T>>(
              p, c, intercept, s, shape, ld, [&](std::int64_t i, const BlockColumns& at) {
                // blocks draw from streams of their own
                const ProjectionBasisState view{size,
                                                seed + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL,
                                                counts + 2 * i, G + i * size * ld};
                return ProjectionBasis<T>(view, at, scale);
              });
        },
        "problem"_a, "composite"_a, "intercept"_a, "arrays"_a, "sketch_size"_a, "seed"_a);
  m.def(
      ("frequent_adaptive" + bits).c_str(),
      [](const Problem& p, const Composite& c, bool intercept, nb::dict arrays, std::int64_t size,
         double ridge) {
        const State s(arrays);
        require(size > 0, "the sketch is empty");
        const std::int64_t q = std::max<std::int64_t>(size - 1, 1), n = 2 * size - 1, ld = padded4(n);
        const std::int64_t ldq = padded4(q), ldm = padded4(size);
        const BlockShape shape = block_shape(s, c.of_data, 1 + q + size, 1 + q, c.averaging && c.l1 > 0);
        const MapShape map{q + shape.weights - 1, padded4(q + shape.weights)};
        using Epochs = MapState<T>;
        const std::int64_t blocks = shape.blocks, room = s.columns("touched");
        std::int64_t* counts = s.get<std::int64_t>("sketch_counts", {blocks, 5});
        std::int64_t* touched = s.get<std::int64_t>("touched", {blocks, room});
        std::int64_t* items = s.get<std::int64_t>("items", {blocks, Epochs::kLevels});
        double* alpha = s.get<double>("alpha", {blocks});
        double* doubt = s.get<double>("doubt", {blocks});
        double* M = s.get<double>("M", {blocks, n, ld});
        double* C = s.get<double>("C", {blocks, size, ldq});
        double* Tm = s.get<double>("T", {blocks, size, ldm});
        T* suffix = s.get<T>("suffix", {blocks, Epochs::kLevels * Epochs::kGroup, map.q, map.width});
        std::array<T*, Epochs::kLevels - 1> archive;
        for (std::int64_t l = 0; l + 1 < Epochs::kLevels; ++l)
          archive[l] = s.get<T>(("archive" + std::to_string(l)).c_str(),
                                {blocks, Epochs::archived(l), map.q, map.width});
        return make_adaptive<T, FrequentBasis<T>>(
            p, c, intercept, s, shape, ld, [&](std::int64_t i, const BlockColumns& at) {
              Epochs epochs{items + i * Epochs::kLevels,
                            suffix + i * Epochs::kLevels * Epochs::kGroup * map.size(), archive};
              for (std::int64_t l = 0; l + 1 < Epochs::kLevels; ++l)
                epochs.archive[l] += i * Epochs::archived(l) * map.size();
              const FrequentBasisState<T> view{
                  size,           ShrinkRule{1.0, ridge}, counts + 5 * i,      alpha + i,          doubt + i,
                  M + i * n * ld, C + i * size * ldq,     Tm + i * size * ldm, touched + i * room, epochs};
              return FrequentBasis<T>(view, at);
            });
      },
      "problem"_a, "composite"_a, "intercept"_a, "arrays"_a, "sketch_size"_a, "ridge"_a);
  m.def(("composite_adagrad" + bits).c_str(),
        [](const Problem& p, const Composite& c, bool intercept, nb::dict arrays) {
          const State s(arrays);
          const std::int64_t classes = s.rows("intercept");
          require(s.columns("table") >= 2 * classes + 2, "the table is too narrow");
          const CompositeAdaGradState state{s.get<std::int64_t>("counts", {3}), classes,
                                            s.get<double>("intercept", {classes, 3}), intercept};
          return ClassKernel<Diagonal, T>{
              {p, c, state, table_view<T>(s)}, s.rows("table"), classes, s.owner()};
        },
        "problem"_a, "composite"_a, "intercept"_a, "arrays"_a);
}

void bind_adaptive(nb::module_& m) {
  nb::class_<Composite>(m, "Composite");
  m.def(
      "composite",
      [](double eta, double sigma, double l1, double l2, bool averaging, bool of_data) {
        return Composite{eta, sigma, l1, l2, averaging, of_data};
      },
      "eta"_a, "sigma"_a, "l1"_a, "l2"_a, "averaging"_a, "of_data"_a);
  m.def(
      "proximal_newton",
      [](Array2<const double> columns, ConstDoubles center, ConstDoubles pull, double h, double l1,
         double l2) {
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
      },
      "columns"_a, "center"_a, "pull"_a, "h"_a, "l1"_a, "l2"_a,
      "argmin ½(β − center)ᵀ(hI + RᵀR)(β − center) − ⟨pull, β⟩ + l1‖β‖₁ + ½l2‖β‖²; `columns` is Rᵀ.");
  bind_adaptive_for<float>(m, "32");
  bind_adaptive_for<double>(m, "64");
}

// One sketch for all classes of SON.
template <class T>
void bind_shared_for(nb::module_& m, const std::string& bits) {
  using Kernel = SharedNewton<T>;
  using K = ClassKernel<Kernel, T>;
  bind_class_kernel<Kernel, T>(m, "SharedNewton" + bits);
  m.def(("shared_newton" + bits).c_str(),
        [](const Problem& p, double kappa, bool diagonal, nb::dict arrays) {
          const State s(arrays);
          const std::int64_t classes = s.rows("intercepts");
          const SharedState state{
              {s.get<std::int64_t>("counts", {3}), {nullptr}, s.get<double>("alpha", {1}), kappa, diagonal},
              s.get<double>("intercepts", {classes}),
              s.get<double>("metric", {1}),
              classes};
          const double scale = std::isfinite(p.clip) ? p.clip : 1.0;
          return K{{p.loss, p.clip, kappa, state, table_view<T>(s),
                    Oja<T>(oja_view<T>(s, 1, classes), state.newton.alpha, scale)},
                   s.rows("table"),
                   classes,
                   s.owner()};
        },
        "problem"_a, "kappa"_a, "diagonal"_a, "arrays"_a);
}

}  // namespace
