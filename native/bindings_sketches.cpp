// What matrix sketches need beyond NumPy and LAPACK.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "tridiagonal.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skn;

namespace {

template <class S>
using Array1 = nb::ndarray<const S, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

template <class S>
nb::ndarray<nb::numpy, S, nb::ndim<1>> values_of(Array1<S> diagonal, Array1<S> beside, std::int64_t count) {
  const Tridiagonal<S> T = tridiagonal(diagonal, beside);
  if (count < 1 || count > T.n) throw std::invalid_argument("there are not so many eigenvalues");
  auto* data = new S[static_cast<std::size_t>(count)];
  nb::ndarray<nb::numpy, S, nb::ndim<1>> out(data, {static_cast<std::size_t>(count)}, owner(data));
  nb::gil_scoped_release release;
  leading_values(T, count, data);
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
  const S residual = InverseIteration<S>().compute(T, values.data(), static_cast<std::int64_t>(k), data);
  return {std::move(out), static_cast<double>(residual)};
}

template <class S>
void bind_for(nb::module_& m) {
  m.def("tridiagonal_values", &values_of<S>, "diagonal"_a, "beside"_a, "count"_a,
        "The largest eigenvalues of a symmetric tridiagonal matrix, largest first.");
  m.def("tridiagonal_vectors", &vectors_of<S>, "diagonal"_a, "beside"_a, "values"_a,
        "Unit eigenvectors for these eigenvalues, as columns, and the largest entry of TV − V diag(values).");
}

}  // namespace

void bind_sketches(nb::module_& m) {
  bind_for<float>(m);
  bind_for<double>(m);
}
