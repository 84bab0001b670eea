// Small dense matrices in double: row-major, every row padded with zeros to a multiple of four.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/simd.hpp"

namespace skn {

struct Small {
  double* data;
  std::int64_t ld;
  double* row(std::int64_t i) const { return data + i * ld; }
  double& at(std::int64_t i, std::int64_t j) const { return data[i * ld + j]; }
};

inline std::int64_t padded4(std::int64_t n) { return (n + 3) / 4 * 4; }

// Four numbers of a row. Written out, since compilers make so much of short loops that what comes before and
// after them takes longer.
using Four [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(8)]] = double;
inline const Four& four(const double* p) { return *reinterpret_cast<const Four*>(p); }
inline Four& four(double* p) { return *reinterpret_cast<Four*>(p); }

inline double total(const Four& x) { return (x[0] + x[1]) + (x[2] + x[3]); }

// The totals of four of them, rounded alike.
[[gnu::always_inline]] inline void totals(const Four* x, Four& to) {
  const Four even[2] = {__builtin_shufflevector(x[0], x[1], 0, 4, 2, 6),
                        __builtin_shufflevector(x[2], x[3], 0, 4, 2, 6)};
  const Four odd[2] = {__builtin_shufflevector(x[0], x[1], 1, 5, 3, 7),
                       __builtin_shufflevector(x[2], x[3], 1, 5, 3, 7)};
  const Four first = even[0] + odd[0], second = even[1] + odd[1];
  to =
      __builtin_shufflevector(first, second, 0, 1, 4, 5) + __builtin_shufflevector(first, second, 2, 3, 6, 7);
}

// A number, or a vector, that was loaded by itself. What was stored in parts has to be loaded in the same
// parts for a while: a load of several of them would wait until all that came before has reached memory.
template <class Value>
[[gnu::always_inline]] inline void apart([[maybe_unused]] Value& x) {
#ifdef __x86_64__
  asm("" : "+x"(x));  // else compilers make one load of several
#endif
}

// Four numbers that have just been stored one by one, `step` apart. Not as arrays: they would be in memory.
[[gnu::always_inline]] inline void assemble(const double* p, Four& to, std::int64_t step = 1) {
  double a = p[0], b = p[step], c = p[2 * step], d = p[3 * step];
  apart(a);
  apart(b);
  apart(c);
  apart(d);
  to = Four{a, b, c, d};
}

// x > bound ? a : b, without a branch that could not be foreseen.
inline double if_above(double x, double bound, double a, double b) {
  using Pair [[gnu::vector_size(16)]] = double;
  const Pair its = {x, x}, yes = {a, a}, no = {b, b};
  return (its > bound ? yes : no)[0];
}

// Four numbers of type T as those of a row, and the other way round.
template <class T>
struct FourOf {
  using Vector [[gnu::vector_size(4 * sizeof(T)), gnu::may_alias, gnu::aligned(sizeof(T))]] = T;
};
template <class T>
void widen(const T* from, Four& to) {
  const typename FourOf<T>::Vector its = *reinterpret_cast<const typename FourOf<T>::Vector*>(from);
  to = __builtin_convertvector(its, Four);
}
template <class T>
void narrow(const Four& from, T* to) {
  *reinterpret_cast<typename FourOf<T>::Vector*>(to) =
      __builtin_convertvector(from, typename FourOf<T>::Vector);
}

inline double dot(const double* a, const double* b, std::int64_t ld) {  // ld is a multiple of four
  Four sum{};
  for (std::int64_t j = 0; j < ld; j += 4) sum += four(a + j) * four(b + j);
  return total(sum);
}

inline void axpy(double s, const double* __restrict a, double* __restrict y, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) four(y + j) += s * four(a + j);
  for (; j < n; ++j) y[j] += s * a[j];
}

// Calls f with ld as a constant, where it is one of the usual ones: the compiler then keeps a row in
// registers.
template <class Call>
void with_constant(std::int64_t ld, Call f) {
  switch (ld) {
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 8:
      return f(std::integral_constant<int, 8>{});
    case 12:
      return f(std::integral_constant<int, 12>{});
    case 16:
      return f(std::integral_constant<int, 16>{});
    case 20:
      return f(std::integral_constant<int, 20>{});
    default:
      return f(ld);
  }
}

// y = Σ x_k·(row k), k < n
inline void combine_rows(const double* x, const Small& A, std::int64_t n, double* y) {
  with_constant(A.ld, [&](auto ld) {
    if constexpr (std::is_integral_v<decltype(ld)>) {
      for (std::int64_t j = 0; j < ld; ++j) y[j] = 0.0;
      for (std::int64_t k = 0; k < n; ++k) axpy(x[k], A.row(k), y, ld);
    } else {
      Lanes<double, decltype(ld)::value> sum;
      sum.zero();
      for (std::int64_t k = 0; k < n; ++k) sum.add(x[k], A.data + k * ld);
      sum.store(y);
    }
  });
}

inline void add_rank_one(double scale, const double* v, const Small& A, std::int64_t n) {  // A += scale·vvᵀ
  with_constant(A.ld, [&](auto ld) {
    if constexpr (std::is_integral_v<decltype(ld)>) {
      for (std::int64_t i = 0; i < n; ++i) axpy(scale * v[i], v, A.row(i), ld);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        Lanes<double, decltype(ld)::value> row;
        row.load(A.data + i * ld);
        row.add(scale * v[i], v);
        row.store(A.data + i * ld);
      }
    }
  });
}

// K = L Lᵀ in place (lower triangle). A pivot that rounding has eaten marks a direction that depends on
// the earlier ones; solve_lower sets it to zero, unless `floor` is known to lie below all eigenvalues of K.
inline void cholesky(const Small& K, std::int64_t n, double floor = 0.0) {
  constexpr double kLost = 1e-12;
  for (std::int64_t j = 0; j < n; ++j) {
    const double whole = K.at(j, j);
    double pivot = whole;
    for (std::int64_t k = 0; k < j; ++k) pivot -= K.at(j, k) * K.at(j, k);
    const bool lost = !(pivot > kLost * whole);
    K.at(j, j) = std::sqrt(lost ? floor : std::fmax(pivot, floor));
    for (std::int64_t i = j + 1; i < n; ++i) {
      double s = K.at(i, j);
      for (std::int64_t k = 0; k < j; ++k) s -= K.at(i, k) * K.at(j, k);
      K.at(i, j) = lost ? 0.0 : s / K.at(j, j);
    }
  }
}

// x ← L⁻¹x with x in registers: every number waits for the one before it, and would for its way to memory
// and back.
template <int ld>
void solve_lower_known(const double* L, std::int64_t n, double* x) {
  double solved[ld];
#pragma GCC unroll 16
  for (int j = 0; j < ld; ++j) {
    if (j == n) return;
    const double* row = L + j * ld;
    const double per = row[j] > 0 ? 1.0 / row[j] : 0.0;  // waits for nothing, unlike the sum
    double sum = x[j];
#pragma GCC unroll 16
    for (int k = 0; k < j; ++k) sum -= row[k] * solved[k];
    x[j] = solved[j] = sum * per;
  }
}

inline void solve_lower(const Small& L, std::int64_t n, double* x) {  // x ← L⁻¹x
  if (L.ld == 12) return solve_lower_known<12>(L.data, n, x);
  for (std::int64_t j = 0; j < n; ++j) {
    const double* row = L.row(j);
    const double per = row[j] > 0 ? 1.0 / row[j] : 0.0;
    double sum = x[j];
    for (std::int64_t k = 0; k < j; ++k) sum -= row[k] * x[k];
    x[j] = sum * per;
  }
}

inline void solve_lower(const Small& L, std::int64_t n, const Small& X) {  // X ← L⁻¹X
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < j; ++k) axpy(-L.at(j, k), X.row(k), X.row(j), X.ld);
    const double scale = L.at(j, j) > 0 ? 1.0 / L.at(j, j) : 0.0;
    for (std::int64_t c = 0; c < X.ld; ++c) X.at(j, c) *= scale;
  }
}

inline void multiply_transposed_lower(const Small& L, std::int64_t n, double* x) {  // x ← Lᵀx
  for (std::int64_t j = 0; j < n; ++j) {
    x[j] *= L.at(j, j);
    for (std::int64_t i = j + 1; i < n; ++i) x[j] += L.at(i, j) * x[i];
  }
}

}  // namespace skn
