// What matrix sketches need beyond NumPy and LAPACK.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>

#include "tridiagonal.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace skn;

namespace {

template <class S>
using Array1 = nb::ndarray<const S, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class S>
nb::ndarray<nb::numpy, S, nb::ndim<2>> tridiagonal_vectors(Array1<S> diagonal, Array1<S> beside,
                                                           Array1<S> values) {
  const std::size_t n = diagonal.size(), k = values.size();
  if (n == 0 || k == 0 || beside.size() != n - 1) throw std::invalid_argument("not a tridiagonal matrix");
  auto vectors = std::make_unique<S[]>(n * k);
  {
    nb::gil_scoped_release release;
    InverseIteration<S>().compute(diagonal.data(), beside.data(), static_cast<std::int64_t>(n), values.data(),
                                  static_cast<std::int64_t>(k), vectors.get());
  }
  S* data = vectors.release();
  return {data, {n, k}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<S*>(p); })};
}

}  // namespace

void bind_sketches(nb::module_& m) {
  m.def("tridiagonal_vectors", &tridiagonal_vectors<float>, "diagonal"_a, "beside"_a, "values"_a);
  m.def("tridiagonal_vectors", &tridiagonal_vectors<double>, "diagonal"_a, "beside"_a, "values"_a,
        "Unit eigenvectors, as columns, of a symmetric tridiagonal matrix for eigenvalues of it.");
}
