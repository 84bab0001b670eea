// Learners' kernels. A kernel object holds views of NumPy arrays and keeps them alive; Python owns the state.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "adagrad.hpp"
#include "full_newton.hpp"
#include "newton.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skn;

namespace {

template <class S>
using Array1 = nb::ndarray<S, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class S>
using Array2 = nb::ndarray<S, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = Array1<double>;
using ConstDoubles = Array1<const double>;
using Integers = Array1<std::int64_t>;

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

// A batch of rows; `owner` keeps the arrays alive.
struct PyRows {
  std::unique_ptr<Rows> rows;
  nb::object owner;
  std::int64_t largest = -1;  // feature index, known once scanned
  bool scanned = false;
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

Problem problem(int loss, double parameter, double clip, double curvature, double eta, double power) {
  return {make_loss(loss, parameter), clip, curvature, eta, power};
}

template <class T>
Table<T> table_view(const Array2<T>& table, const Integers& active) {
  require(extent(active.size()) >= extent(table.shape(0)), "the list of active features is too short");
  require(Table<T>::padded(extent(table.shape(1))) == extent(table.shape(1)),
          "the table has an odd row length");
  return {table.data(), extent(table.shape(1)), active.data()};
}

void check_batch(const PyRows& x, std::int64_t features, const ConstDoubles& labels,
                 const std::optional<ConstDoubles>& weights, const Doubles& out) {
  require(x.scanned && x.largest < features, "rows must be scanned, and the table must have room for them");
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
};

template <class Kernel, class T>
nb::class_<TableKernel<Kernel, T>> bind_table_kernel(nb::module_& m, const char* name) {
  using K = TableKernel<Kernel, T>;
  return nb::class_<K>(m, name)
      .def("learn", &K::learn, "rows"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def("predict", &K::predict, "rows"_a, "out"_a);
}

template <class T>
void bind_for(nb::module_& m, const std::string& suffix) {
  using Gradient = Newton<T, NoSketch<T>>;
  using OjaNewton = Newton<T, Oja<T>>;

  bind_table_kernel<Gradient, T>(m, ("Gradient" + suffix).c_str());
  m.def(
      "gradient",
      [](const Problem& p, double alpha, bool diagonal, Array2<T> table, Integers active, Integers counts,
         Doubles intercept) {
        require(counts.size() >= 3 && intercept.size() == 2, "state has the wrong shape");
        const NewtonState state{counts.data(), {intercept.data()}, alpha, diagonal};
        return TableKernel<Gradient, T>{{p, state, table_view(table, active), NoSketch<T>(alpha)},
                                        extent(table.shape(0)),
                                        nb::make_tuple(table, active, counts, intercept)};
      },
      "problem"_a, "alpha"_a, "diagonal"_a, "table"_a, "active"_a, "counts"_a, "intercept"_a);

  bind_table_kernel<OjaNewton, T>(m, ("OjaNewton" + suffix).c_str());
  m.def(
      "oja_newton",
      [](const Problem& p, double alpha, bool diagonal, Array2<T> table, Integers active, Integers counts,
         Doubles intercept, std::int64_t block, Integers sketch_counts, Doubles growth, Array2<double> F,
         Array2<double> R, Doubles energy, Doubles c, std::optional<Doubles> rate, Array2<double> Y,
         Array2<double> G, Integers recent) {
        const std::int64_t rows = extent(F.shape(0)), ld = padded4(rows);
        require(
            counts.size() >= 3 && intercept.size() == 2 && sketch_counts.size() >= 5 && growth.size() == 1,
            "state has the wrong shape");
        require(rows > 0 && block > 0 && extent(F.shape(1)) == ld && extent(R.shape(0)) == rows &&
                    extent(R.shape(1)) == ld && extent(energy.size()) == ld && extent(c.size()) == ld &&
                    (!rate || extent(rate->size()) == ld) && extent(Y.shape(0)) == block &&
                    extent(Y.shape(1)) == ld && extent(G.shape(0)) == block && extent(G.shape(1)) == block &&
                    extent(table.shape(1)) >= 2 + rows + (block > 1 ? block : 0),
                "sketch state has the wrong shape");
        const NewtonState state{counts.data(), {intercept.data()}, alpha, diagonal};
        const OjaState oja{
            rows,          block,    sketch_counts.data(),          growth.data(), F.data(), R.data(),
            energy.data(), c.data(), rate ? rate->data() : nullptr, Y.data(),      G.data(), recent.data()};
        return TableKernel<OjaNewton, T>{{p, state, table_view(table, active), Oja<T>(oja, alpha, std::isfinite(p.clip) ? p.clip : 1.0)},
                                         extent(table.shape(0)),
                                         nb::make_tuple(table, active, counts, intercept, sketch_counts,
                                                        growth, F, R, energy, c, rate, Y, G, recent)};
      },
      "problem"_a, "alpha"_a, "diagonal"_a, "table"_a, "active"_a, "counts"_a, "intercept"_a, "block"_a,
      "sketch_counts"_a, "growth"_a, "F"_a, "R"_a, "energy"_a, "c"_a, "rate"_a.none(), "Y"_a, "G"_a,
      "recent"_a);

  bind_table_kernel<AdaGrad<T>, T>(m, ("AdaGrad" + suffix).c_str());
  m.def(
      "adagrad",
      [](const Problem& p, double eta, double sigma, bool has_intercept, Array2<T> table, Integers active,
         Integers counts, Doubles intercept) {
        require(counts.size() >= 3 && intercept.size() == 2, "state has the wrong shape");
        const AdaGradState state{counts.data(), intercept.data(), eta, sigma, has_intercept};
        return TableKernel<AdaGrad<T>, T>{{p, state, table_view(table, active)},
                                          extent(table.shape(0)),
                                          nb::make_tuple(table, active, counts, intercept)};
      },
      "problem"_a, "eta"_a, "sigma"_a, "has_intercept"_a, "table"_a, "active"_a, "counts"_a, "intercept"_a);
}

struct PyFullNewton {
  FullNewton kernel;
  std::int64_t features;
  nb::object owner;
};

}  // namespace

void bind_learners(nb::module_& m) {
  nb::class_<PyRows>(m, "Rows")
      .def("__len__", [](const PyRows& x) { return x.rows->count(); })
      .def(
          "scan",
          [](PyRows& x, double limit) {
            Scan s;
            {
              nb::gil_scoped_release release;
              s = x.rows->scan(limit);
            }
            x.scanned = s.bad_row < 0;
            x.largest = s.largest_index;
            return std::make_tuple(s.largest_index, s.widest_row, s.bad_row, s.bad_index, s.bad_value);
          },
          "limit"_a, "(largest index, widest row, first bad row or -1, its feature, its value)");
  m.def("csr_rows", &csr_rows<std::int32_t, float>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int32_t, double>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int64_t, float>, "indptr"_a, "indices"_a, "values"_a);
  m.def("csr_rows", &csr_rows<std::int64_t, double>, "indptr"_a, "indices"_a, "values"_a);
  m.def("dense_rows", &dense_rows<float>, "values"_a);
  m.def("dense_rows", &dense_rows<double>, "values"_a);

  nb::class_<Problem>(m, "Problem");
  m.def("problem", &problem, "loss"_a, "parameter"_a, "clip"_a, "curvature"_a, "eta"_a, "power"_a);
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
  m.def("padded_columns", &Table<float>::padded, "columns"_a);

  bind_for<float>(m, "32");
  bind_for<double>(m, "64");

  nb::class_<PyFullNewton>(m, "FullNewton")
      .def(
          "learn",
          [](PyFullNewton& k, const PyRows& x, std::int64_t begin, std::int64_t end, ConstDoubles labels,
             std::optional<ConstDoubles> weights, Doubles out) {
            check_batch(x, k.features, labels, weights, out);
            require(0 <= begin && begin <= end && end <= x.rows->count(), "rows out of range");
            nb::gil_scoped_release release;
            k.kernel.learn(*x.rows, begin, end, labels.data(), data_or_null(weights), out.data());
          },
          "rows"_a, "begin"_a, "end"_a, "labels"_a, "weights"_a.none(), "out"_a)
      .def(
          "predict",
          [](PyFullNewton& k, const PyRows& x, Doubles out) {
            require(extent(out.size()) == x.rows->count(), "lengths differ");
            nb::gil_scoped_release release;
            k.kernel.predict(*x.rows, out.data());
          },
          "rows"_a, "out"_a);
  m.def(
      "full_newton",
      [](const Problem& p, bool intercept, Integers counts, Doubles w, Array2<double> P, Array2<double> A) {
        const std::int64_t n = extent(w.size());
        require(counts.size() >= 2 && extent(P.shape(0)) == n && extent(P.shape(1)) == n &&
                    extent(A.shape(0)) == n && extent(A.shape(1)) == n,
                "state has the wrong shape");
        const FullNewtonState state{counts.data(), w.data(), P.data(), A.data(), n, intercept};
        return PyFullNewton{FullNewton(p, state), n - 1, nb::make_tuple(counts, w, P, A)};
      },
      "problem"_a, "intercept"_a, "counts"_a, "w"_a, "P"_a, "A"_a);
}
