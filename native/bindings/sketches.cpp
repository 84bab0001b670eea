// What matrix sketches need beyond NumPy and LAPACK.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/module.hpp"
#include "eigen/householder.hpp"
#include "eigen/tridiagonal.hpp"

namespace skn {

using namespace nb::literals;

namespace {

template <class S>
using Array1 = Array<const S, 1>;

template <class S>
Tridiagonal<S> tridiagonal(const Array1<S>& diagonal, const Array1<S>& beside) {
  if (diagonal.size() == 0 || beside.size() != diagonal.size() - 1)
    throw std::invalid_argument("not a tridiagonal matrix");
  return {diagonal.data(), beside.data(), static_cast<std::int64_t>(diagonal.size())};
}

template <class S>
nb::capsule owner(S* data) {
  return nb::capsule(data, [](void* p) noexcept { delete[] static_cast<S*>(p); });
}

// Lanes go through registers eight at a time; a rest would take as long as all others.
std::int64_t whole_registers(std::int64_t lanes) { return (lanes + 7) / 8 * 8; }

template <class S>
nb::ndarray<nb::numpy, S, nb::ndim<1>> values_of(Array1<S> diagonal, Array1<S> beside, std::int64_t count) {
  const Tridiagonal<S> T = tridiagonal(diagonal, beside);
  if (count < 1 || count > T.n) throw std::invalid_argument("there are not so many eigenvalues");
  auto* data = new S[static_cast<std::size_t>(count)];
  nb::ndarray<nb::numpy, S, nb::ndim<1>> out(data, {static_cast<std::size_t>(count)}, owner(data));
  nb::gil_scoped_release release;
  std::vector<S> values(whole_registers(count));
  leading_values(T, static_cast<std::int64_t>(values.size()), values.data());
  std::copy_n(values.begin(), count, data);
  return out;
}

template <class S>
std::pair<nb::ndarray<nb::numpy, S, nb::ndim<2>>, double> vectors_of(Array1<S> diagonal, Array1<S> beside,
                                                                     Array1<S> values) {
  const Tridiagonal<S> T = tridiagonal(diagonal, beside);
  const std::size_t n = diagonal.size(), k = values.size();
  if (k == 0) throw std::invalid_argument("no eigenvalues");
  auto* data = new S[n * k];
  nb::ndarray<nb::numpy, S, nb::ndim<2>> out(data, {n, k}, owner(data));
  nb::gil_scoped_release release;
  const std::int64_t lanes = whole_registers(static_cast<std::int64_t>(k));
  std::vector<S> shifts(lanes, values.data()[k - 1]), all(n * lanes);
  std::copy_n(values.data(), k, shifts.begin());
  const S residual = InverseIteration<S>().compute(T, shifts.data(), lanes, all.data());
  for (std::size_t i = 0; i < n; ++i) std::copy_n(&all[i * lanes], k, data + i * k);
  return {std::move(out), static_cast<double>(residual)};
}

template <class S>
nb::ndarray<nb::numpy, S, nb::ndim<1>> copied(const std::vector<S>& values) {
  auto* data = new S[values.size()];
  std::copy(values.begin(), values.end(), data);
  return {data, {values.size()}, owner(data)};
}

template <class S>
void bind_for(nb::module_& m, const char* form) {
  using Square = Array<const S, 2>;
  using Columns = Array<S, 2>;
  nb::class_<Householder<S>>(m, form, "A symmetric matrix as QTQᵀ with T tridiagonal.")
      .def_prop_ro(
          "diagonal", [](const Householder<S>& self) { return copied(self.diagonal); }, nb::rv_policy::move)
      .def_prop_ro(
          "beside", [](const Householder<S>& self) { return copied(self.beside); }, nb::rv_policy::move)
      .def(
          "apply",
          [](const Householder<S>& self, Columns X) {
            if (X.shape(0) != self.diagonal.size()) throw std::invalid_argument("not as many rows");
            nb::gil_scoped_release release;
            self.apply(X.data(), static_cast<std::int64_t>(X.shape(1)));
          },
          "X"_a, "X becomes QX.");
  m.def(
      "tridiagonal_form",
      [](Square matrix) {
        if (matrix.shape(0) == 0 || matrix.shape(0) != matrix.shape(1))
          throw std::invalid_argument("not a square matrix");
        nb::gil_scoped_release release;
        Householder<S> result;
        result.compute(matrix.data(), static_cast<std::int64_t>(matrix.shape(0)));
        return result;
      },
      "matrix"_a, "The tridiagonal form of a symmetric matrix.");
  m.def("tridiagonal_values", &values_of<S>, "diagonal"_a, "beside"_a, "count"_a,
        "The largest eigenvalues of a symmetric tridiagonal matrix, largest first.");
  m.def("tridiagonal_vectors", &vectors_of<S>, "diagonal"_a, "beside"_a, "values"_a,
        "Unit eigenvectors for these eigenvalues, as columns, and the largest entry of TV − V diag(values).");
}

}  // namespace

void bind_sketches(nb::module_& m) {
  bind_for<float>(m, "TridiagonalForm32");
  bind_for<double>(m, "TridiagonalForm64");
}

}  // namespace skn
