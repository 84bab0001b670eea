// Learners' kernels. A kernel object holds views of NumPy arrays and keeps them alive; Python owns the state.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "adagrad.hpp"
#include "bank.hpp"
#include "bindings_array.hpp"
#include "bindings_rows.hpp"
#include "frequent.hpp"
#include "full_newton.hpp"
#include "invariant_newton.hpp"
#include "newton.hpp"
#include "oja.hpp"
#include "projection.hpp"
#include "shared_newton.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skn;

namespace {

template <class S>
using Array1 = Array<S, 1>;
template <class S>
using Array2 = Array<S, 2>;
using Doubles = Array1<double>;
using ConstDoubles = Array1<const double>;

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

// A new NumPy array of doubles.
struct Vector {
  double* data;
  std::size_t size;
  explicit Vector(std::size_t n) : data(new double[n]), size(n) {}
  nb::ndarray<nb::numpy, double, nb::ndim<1>> array() {
    return {data, {size}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); })};
  }
};

template <class Index, class Value>
PyRows csr_rows(Array1<const std::int64_t> indptr, Array1<const Index> indices, Array1<const Value> values) {
  require(indptr.size() > 0, "indptr is empty");
  const std::int64_t n = extent(indptr.size()) - 1;
  const std::int64_t* p = indptr.data();
  require(p[0] >= 0, "indptr starts below zero");
  for (std::int64_t i = 0; i < n; ++i) require(p[i] <= p[i + 1], "indptr decreases");
  require(p[n] <= extent(indices.size()) && p[n] <= extent(values.size()), "indptr points beyond the data");
  return {std::make_unique<CsrRows<Index, Value>>(p, indices.data(), values.data(), n),
          nb::make_tuple(indptr, indices, values)};
}

template <class Value>
PyRows dense_rows(Array2<const Value> values) {
  return {std::make_unique<DenseRows<Value>>(values.data(), extent(values.shape(0)), extent(values.shape(1))),
          nb::cast(values)};
}

Problem problem(int loss, double parameter, double clip, double curvature, double eta, double power,
                bool by_dimension, bool project) {
  return {make_loss(loss, parameter), clip, curvature, eta, power, by_dimension, project};
}

void check_batch(const PyRows& x, std::int64_t features, const ConstDoubles& labels,
                 const std::optional<ConstDoubles>& weights, const Doubles& out) {
  require(x.fit(features), "rows must be scanned, and the table must have room for them");
  const std::size_t n = static_cast<std::size_t>(x.rows->count());
  require(labels.size() == n && out.size() == n && (!weights || weights->size() == n), "lengths differ");
}

const double* data_or_null(const std::optional<ConstDoubles>& weights) {
  return weights ? weights->data() : nullptr;
}

// Kernels of one table, whatever their sketch: what Python calls.
template <class Kernel, class T>
struct TableKernel {
  Kernel kernel;
  std::int64_t features;
  nb::object owner;

  void learn(const PyRows& x, ConstDoubles labels, std::optional<ConstDoubles> weights, Doubles out) {
    check_batch(x, features, labels, weights, out);
    nb::gil_scoped_release release;
    kernel.learn(*x.rows, labels.data(), data_or_null(weights), out.data());
  }

  void predict(const PyRows& x, Doubles out) {
    require(extent(out.size()) == x.rows->count(), "lengths differ");
    nb::gil_scoped_release release;
    kernel.predict(*x.rows, features, out.data());
  }

  // A single row, without the cost of arrays.
  double learn_one(const PyRows& x, double label) {
    require(x.fit(features) && x.rows->count() == 1, "one row, scanned, and the table must have room for it");
    double prediction = 0;
    kernel.learn(*x.rows, &label, nullptr, &prediction);
    return prediction;
  }
};

template <class Kernel, class T>
nb::class_<TableKernel<Kernel, T>> bind_table_kernel(nb::module_& m, const char* name) {
  using K = TableKernel<Kernel, T>;
  return nb::class_<K>(m, name)
      .def("learn", &K::learn, "rows"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def("learn_one", &K::learn_one, "row"_a, "label"_a)
      .def("predict", &K::predict, "rows"_a, "out"_a);
}

template <class Kernel, class T>
void bind_newton(nb::module_& m, const std::string& name) {
  using K = TableKernel<Kernel, T>;
  bind_table_kernel<Kernel, T>(m, name.c_str())
      .def(
          "settled", [](K& k, Array2<T> out) { k.kernel.settled(out.data(), extent(out.shape(1))); }, "out"_a,
          "Copies of the rows of all active features, with all work done that was put off.");
}

// The arrays of a learner by name, checked to be what the kernel reads; -1 stands for any length.
class State {
 public:
  explicit State(nb::dict arrays) : arrays_(arrays) {}

  // Nothing is converted (see `Array`): the kernel keeps the pointer, and writes through it.
  template <class S>
  S* get(const char* name, std::initializer_list<std::int64_t> shape) const {
    const nb::object held = arrays_[name];
    nb::ndarray<S, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(held, array, false) || !aligned(array))
      throw std::invalid_argument(std::string("array ") + name +
                                  " must be writable, in C order, aligned and of the kernel's dtype");
    held_.append(held);
    bool fits = array.ndim() == shape.size();
    std::size_t axis = 0;
    for (std::int64_t n : shape) {
      fits = fits && (n < 0 || extent(array.shape(axis)) == n);
      ++axis;
    }
    if (!fits) throw std::invalid_argument(std::string("array ") + name + " has the wrong shape");
    return array.data();
  }

  std::int64_t rows(const char* name) const {
    return nb::cast<std::int64_t>(nb::object(arrays_[name]).attr("shape")[0]);
  }
  std::int64_t columns(const char* name) const {
    return nb::cast<std::int64_t>(nb::object(arrays_[name]).attr("shape")[1]);
  }
  bool has(const char* name) const { return arrays_.contains(name); }
  // Keeps alive what was got, whatever becomes of the dictionary.
  nb::object owner() const { return held_; }

 private:
  nb::dict arrays_;
  mutable nb::list held_;
};

template <class T>
Table<T> table_view(const State& s) {
  const std::int64_t rows = s.rows("table"), stride = s.columns("table");
  require(Table<T>::padded(stride) == stride, "the table has an odd row length");
  return {s.get<T>("table", {rows, stride}), stride, s.get<std::int64_t>("active", {rows})};
}

NewtonState newton_view(const State& s, double first_alpha, bool diagonal) {
  return {s.get<std::int64_t>("counts", {3}),
          {s.get<double>("intercept", {2})},
          s.get<double>("alpha", {1}),
          first_alpha,
          diagonal};
}

template <class T>
OjaState oja_view(const State& s, std::int64_t block, std::int64_t outputs = 1) {
  const std::int64_t m = s.rows("F"), ld = padded4(m);
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
          s.get<std::int64_t>("recent", {-1}),
          outputs};
}

template <class T>
MapState<T> maps_view(const State& s, std::int64_t q, std::int64_t width) {
  using Maps = MapState<T>;
  return {s.get<std::int64_t>("items", {Maps::kLevels}),
          s.get<T>("suffix", {Maps::kLevels * Maps::kGroup, q, width}),
          {s.get<T>("archive0", {Maps::archived(0), q, width}),
           s.get<T>("archive1", {Maps::archived(1), q, width}),
           s.get<T>("archive2", {Maps::archived(2), q, width})}};
}

template <class T>
FrequentState<T> frequent_view(const State& s, std::int64_t m, const ShrinkRule& rule) {
  const std::int64_t n = 2 * m - 1, ld = padded4(n), q = std::max<std::int64_t>(m - 1, 1);
  const std::int64_t width = Table<T>::padded(Table<T>::kSketch + FrequentFeatures<T>::columns(m));
  require(m > 0 && s.columns("table") == width, "the table has the wrong width");
  using Epochs = EpochState<T>;
  const Epochs epochs{s.get<std::int64_t>("items", {3}), s.get<T>("open", {Epochs::kGroup, q + m, width}),
                      s.get<T>("suffix", {2 * Epochs::kFan, q, width}),
                      s.get<T>("archive", {Epochs::kFan * Epochs::kFan, q, width})};
  const std::int64_t slots = s.rows("recent");
  return {rule,
          s.get<double>("shrunk", {1}),
          s.get<double>("doubt", {1}),
          s.get<double>("M", {n, ld}),
          s.get<double>("H", {n, ld}),
          s.get<double>("C", {m, padded4(q)}),
          s.get<double>("T", {m, padded4(m)}),
          s.get<double>("spread", {m}),
          s.get<double>("c", {ld}),
          {m, s.get<std::int64_t>("sketch_counts", {6}), s.get<std::int64_t>("recent", {slots}),
           s.get<T>("slots", {slots, padded4(m)}), s.get<std::int64_t>("group", {-1}), epochs}};
}

template <class T>
BankState<T> bank_view(const State& s, bool intercept) {
  const std::int64_t n = s.rows("buffer_length"), K = s.rows("experts"), m = s.rows("constant") - K;
  const std::int64_t q = std::max<std::int64_t>(m, 1);
  const std::int64_t ld = padded4(q), stride = s.columns("table");
  require(
      K > 0 && K <= Aggregate::kMost && m >= 0 && n >= m && stride >= std::max<std::int64_t>(K + m + 3, 8),
      "the table is too narrow");
  static_assert(sizeof(Expert) == 4 * sizeof(double));
  return {m,
          n,
          K,
          reinterpret_cast<const Expert*>(s.get<double>("experts", {K, 4})),
          s.get<std::int64_t>("counts", {3}),
          s.get<std::int64_t>("bank_counts", {BankState<T>::kBankCounts}),
          s.get<double>("scalars", {BankState<T>::kScalars}),
          s.get<double>("shares", {K}),
          s.get<double>("lambda", {ld}),
          s.get<double>("b", {K, ld}),
          s.get<double>("constant", {K + m}),
          s.get<std::int64_t>("buffer_index", {-1}),
          s.get<T>("buffer_value", {-1}),
          s.get<std::int64_t>("buffer_start", {n + 1}),
          s.get<double>("buffer_length", {n}),
          s.get<double>("buffer_c", {n, ld}),
          s.get<double>("buffer_gram", {n, padded4(std::max<std::int64_t>(n, 1))}),
          maps_view<T>(s, q, padded4(K + q)),
          intercept};
}

template <class T>
void bind_for(nb::module_& m, const std::string& bits) {
  using Gradient = Newton<T, NoSketch<T>>;
  using OjaNewton = Newton<T, Oja<T>>;
  using FrequentNewton = Newton<T, Frequent<T>>;
  using ProjectionNewton = Newton<T, Projection<T>>;
  bind_newton<Gradient, T>(m, "Gradient" + bits);
  bind_newton<OjaNewton, T>(m, "OjaNewton" + bits);
  bind_newton<FrequentNewton, T>(m, "FrequentNewton" + bits);
  bind_newton<ProjectionNewton, T>(m, "ProjectionNewton" + bits);
  bind_table_kernel<AdaGrad<T>, T>(m, ("AdaGrad" + bits).c_str());

  m.def(("newton" + bits).c_str(),
        [](const Problem& p, double first_alpha, bool diagonal, nb::dict arrays) {
          const State s(arrays);
          const NewtonState state = newton_view(s, first_alpha, diagonal);
          return TableKernel<Gradient, T>{
              {p, state, table_view<T>(s), NoSketch<T>(state.alpha)}, s.rows("table"), s.owner()};
        },
        "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a);
  m.def(("oja_newton" + bits).c_str(),
        [](const Problem& p, double first_alpha, bool diagonal, nb::dict arrays, std::int64_t block) {
          const State s(arrays);
          const NewtonState state = newton_view(s, first_alpha, diagonal);
          const double scale = std::isfinite(p.clip) ? p.clip : 1.0;
          return TableKernel<OjaNewton, T>{
              {p, state, table_view<T>(s), Oja<T>(oja_view<T>(s, block), state.alpha, scale)},
              s.rows("table"),
              s.owner()};
        },
        "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a, "block"_a);
  m.def(("frequent_newton" + bits).c_str(),
        [](const Problem& p, double first_alpha, bool diagonal, nb::dict arrays, std::int64_t size,
           double share, double ridge) {
          const State s(arrays);
          const NewtonState state = newton_view(s, first_alpha, diagonal);
          const ShrinkRule rule{share, ridge};
          return TableKernel<FrequentNewton, T>{
              {p, state, table_view<T>(s), Frequent<T>(frequent_view<T>(s, size, rule), state.alpha)},
              s.rows("table"),
              s.owner()};
        },
        "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a, "sketch_size"_a, "share"_a, "ridge"_a);
  m.def(("projection_newton" + bits).c_str(),
        [](const Problem& p, double first_alpha, bool diagonal, nb::dict arrays, std::uint64_t seed) {
          const State s(arrays);
          const NewtonState state = newton_view(s, first_alpha, diagonal);
          const double scale = std::isfinite(p.clip) ? p.clip : 1.0;
          const std::int64_t size = s.rows("G"), ld = padded4(size);
          require(size > 0 && s.columns("table") >= 2 + size, "the table is too narrow");
          const ProjectionState view{size, seed, s.get<std::int64_t>("sketch_counts", {2}),
                                     s.get<double>("G", {size, ld}), s.get<double>("b", {ld})};
          return TableKernel<ProjectionNewton, T>{
              {p, state, table_view<T>(s), Projection<T>(view, state.alpha, scale)},
              s.rows("table"),
              s.owner()};
        },
        "problem"_a, "first_alpha"_a, "diagonal"_a, "arrays"_a, "seed"_a);
  using BankKernel = TableKernel<Bank<T>, T>;
  bind_table_kernel<Bank<T>, T>(m, ("NewtonBank" + bits).c_str())
      .def(
          "settled", [](BankKernel& k, Array2<T> out) { k.kernel.settled(out.data()); }, "out"_a)
      .def(
          "predict_experts",
          [](BankKernel& k, const PyRows& x, Array2<double> out) {
            require(extent(out.shape(0)) == x.rows->count(), "lengths differ");
            nb::gil_scoped_release release;
            k.kernel.predict_experts(*x.rows, k.features, out.data());
          },
          "rows"_a, "out"_a);
  m.def(("newton_bank" + bits).c_str(),
        [](int loss, double parameter, bool intercept, nb::dict arrays) {
          const State s(arrays);
          const Aggregate aggregate{make_loss(loss, parameter)};
          return BankKernel{
              {aggregate, bank_view<T>(s, intercept), table_view<T>(s)}, s.rows("table"), s.owner()};
        },
        "loss"_a, "parameter"_a, "intercept"_a, "arrays"_a);
  m.def(("adagrad" + bits).c_str(),
        [](const Problem& p, double eta, double sigma, bool intercept, nb::dict arrays) {
          const State s(arrays);
          const AdaGradState state{s.get<std::int64_t>("counts", {3}), s.get<double>("intercept", {2}), eta,
                                   sigma, intercept};
          return TableKernel<AdaGrad<T>, T>{{p, state, table_view<T>(s)}, s.rows("table"), s.owner()};
        },
        "problem"_a, "eta"_a, "sigma"_a, "intercept"_a, "arrays"_a);
}

// Kernels of learners that keep whole matrices.
template <class Kernel>
struct MatrixKernel {
  Kernel kernel;
  std::int64_t features;
  nb::object owner;
};

template <class Kernel>
void bind_matrix_kernel(nb::module_& m, const char* name) {
  using K = MatrixKernel<Kernel>;
  nb::class_<K>(m, name)
      .def(
          "learn",
          [](K& k, const PyRows& x, ConstDoubles labels, std::optional<ConstDoubles> weights, Doubles out) {
            check_batch(x, k.features, labels, weights, out);
            nb::gil_scoped_release release;
            k.kernel.learn(*x.rows, labels.data(), data_or_null(weights), out.data());
          },
          "rows"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def(
          "predict",
          [](K& k, const PyRows& x, Doubles out) {
            require(extent(out.size()) == x.rows->count(), "lengths differ");
            nb::gil_scoped_release release;
            k.kernel.predict(*x.rows, out.data());
          },
          "rows"_a, "out"_a);
}

}  // namespace

#include "bindings_adaptive.hpp"

void bind_learners(nb::module_& m) {
  bind_adaptive(m);
  nb::class_<PyRows>(m, "Rows")
      .def("__len__", [](const PyRows& x) { return x.rows->count(); })
      .def(
          "scan",
          [](PyRows& x) {
            if (!x.scan) {
              Scan found;
              {
                nb::gil_scoped_release release;
                found = x.rows->scan(kLargestValue);
              }
              x.scan = found;
              if (found.clean && found.bad_row < 0) x.rows->trust();
            }
            const Scan& s = *x.scan;
            return std::make_tuple(s.largest_index, s.widest_row, s.bad_row, s.bad_index, s.bad_value);
          },
          "(largest index, widest row, first bad row or -1, its feature, its value)")
      .def(
          "part",
          [](const PyRows& x, std::int64_t begin, std::int64_t end) {
            require(0 <= begin && begin <= end && end <= x.rows->count(), "no such rows");
            PyRows part{x.rows->part(begin, end), x.owner};
            if (x.scan && x.scan->bad_row < 0) part.scan = x.scan;
            return part;
          },
          "begin"_a, "end"_a, "A view of the rows [begin, end).");
  m.def(
      "spread_row",
      [](const PyRows& x, std::int64_t r, Doubles out) {
        require(r >= 0 && r < x.rows->count(), "no such row");
        Row row;
        x.rows->load(r, row);
        std::fill_n(out.data(), out.size(), 0.0);
        for (std::int64_t k = 0; k < row.size() && row.index()[k] < extent(out.size()); ++k)
          out.data()[row.index()[k]] = row.value()[k];
        return row.size() > 0 ? row.index()[row.size() - 1] : -1;
      },
      "rows"_a, "r"_a, "out"_a,
      "Writes one row as a dense vector, cut off at its length; returns its last index.");
  m.def("csr_rows", &csr_rows<std::int32_t, float>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int32_t, double>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int64_t, float>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int64_t, double>, "indptr"_a, "indices"_a, "values"_a);
  m.def("dense_rows", &dense_rows<float>, "values"_a);
  m.def("dense_rows", &dense_rows<double>, "values"_a);

  nb::class_<Problem>(m, "Problem");
  m.def("problem", &problem, "loss"_a, "parameter"_a, "clip"_a, "curvature"_a, "eta"_a, "power"_a,
        "by_dimension"_a = false, "project"_a = true);
  m.def(
      "loss_values",
      [](int code, double parameter, ConstDoubles predictions, ConstDoubles labels) {
        const Loss loss = make_loss(code, parameter);
        require(predictions.size() == labels.size(), "lengths differ");
        Vector values(predictions.size()), derivatives(predictions.size());
        for (std::size_t i = 0; i < predictions.size(); ++i) {
          values.data[i] = loss.value(predictions.data()[i], labels.data()[i]);
          derivatives.data[i] = loss.derivative(predictions.data()[i], labels.data()[i]);
        }
        return std::make_tuple(values.array(), derivatives.array());
      },
      "code"_a, "parameter"_a, "predictions"_a, "labels"_a);
  m.def(
      "normal_row",
      [](std::uint64_t seed, std::uint64_t row, std::size_t n) {
        Vector values(n);
        CounterNormal::fill(seed, row, extent(n), values.data);
        return values.array();
      },
      "seed"_a, "row"_a, "n"_a, "The standard normal numbers that a random projection draws for a row.");
  m.attr("LARGEST_VALUE") = kLargestValue;
  m.def("padded_columns", &Table<float>::padded, "columns"_a);

  bind_for<float>(m, "32");
  bind_for<double>(m, "64");
  bind_shared_for<float>(m, "32");
  bind_shared_for<double>(m, "64");

  bind_matrix_kernel<FullNewton>(m, "FullNewton");
  m.def(
      "full_newton",
      [](const Problem& p, bool intercept, nb::dict arrays) {
        const State s(arrays);
        const std::int64_t n = s.rows("w");
        const FullNewtonState state{s.get<std::int64_t>("counts", {2}), s.get<double>("w", {n}),
                                    s.get<double>("U", {n, n}), n, intercept};
        return MatrixKernel<FullNewton>{FullNewton(p, state), n - 1, s.owner()};
      },
      "problem"_a, "intercept"_a, "arrays"_a);
  bind_matrix_kernel<InvariantNewton>(m, "InvariantNewton");
  m.def(
      "invariant_newton",
      [](const Problem& p, bool intercept, nb::dict arrays) {
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
        return MatrixKernel<InvariantNewton>{InvariantNewton(p, state), n - 1, s.owner()};
      },
      "problem"_a, "intercept"_a, "arrays"_a);
}
