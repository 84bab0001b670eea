// Eigenvectors of a symmetric tridiagonal matrix whose eigenvalues are known: inverse iteration, all at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace skn {

// Row i of every array holds what belongs to row i of T, one lane per eigenvalue: the elimination of a
// tridiagonal matrix is one long chain, so the only thing to do in parallel is another eigenvalue.
template <class S>
class InverseIteration {
 public:
  // T has `diagonal` (n) and `beside` (n − 1). Row-major n × k `vectors`, of length 1, column j for
  // values[j]. Vectors of eigenvalues that are very close are independent, not orthogonal. If T is unfit,
  // some are not finite.
  void compute(const S* diagonal, const S* beside, std::int64_t n, const S* values, std::int64_t k,
               S* vectors) {
    n_ = n;
    k_ = k;
    for (auto* part : {&pivot_, &next_, &third_, &factor_, &swapped_}) part->resize(n * k);
    work_.resize(2 * k);
    factorise(diagonal, beside, values);
    start(vectors);
    back(vectors);
    normalise(vectors);
    // The first solution may have missed its eigenvector by chance; a second does not, and sharpens it.
    forward(vectors);
    back(vectors);
    normalise(vectors);
  }

 private:
  // P(T − λI) = LU with partial pivoting; U has three diagonals, of which the first is kept inverted.
  void factorise(const S* d, const S* e, const S* values) {
    S norm = std::numeric_limits<S>::min();
    for (std::int64_t i = 0; i < n_; ++i)
      norm = std::max(norm,
                      std::abs(d[i]) + (i > 0 ? std::abs(e[i - 1]) : 0) + (i + 1 < n_ ? std::abs(e[i]) : 0));
    const S tiny = norm * std::numeric_limits<S>::epsilon();
    S* __restrict a = work_.data(), * __restrict b = a + k_;
    for (std::int64_t j = 0; j < k_; ++j) {
      a[j] = d[0] - values[j];
      b[j] = n_ > 1 ? e[0] : S(0);
    }
    for (std::int64_t i = 0; i + 1 < n_; ++i) {
      S* __restrict pivot = row(pivot_, i), * __restrict next = row(next_, i), * __restrict third = row(third_, i);
      S* __restrict factor = row(factor_, i), * __restrict swapped = row(swapped_, i);
      const S below = e[i], diagonal = d[i + 1], beyond = i + 2 < n_ ? e[i + 1] : S(0),
              size = std::abs(below);
      for (std::int64_t j = 0; j < k_; ++j) {
        const bool swap = std::abs(a[j]) < size;
        const S shifted = diagonal - values[j];
        S p = swap ? below : a[j];
        p = std::abs(p) < tiny ? tiny : p;
        const S inverse = S(1) / p;
        const S q = (swap ? a[j] : below) * inverse;
        const S u = swap ? shifted : b[j], v = swap ? beyond : S(0);
        pivot[j] = inverse;
        next[j] = u;
        third[j] = v;
        factor[j] = q;
        swapped[j] = swap ? S(1) : S(0);
        a[j] = (swap ? b[j] : shifted) - q * u;
        b[j] = (swap ? S(0) : beyond) - q * v;
      }
    }
    S* __restrict pivot = row(pivot_, n_ - 1), * __restrict next = row(next_, n_ - 1);
    S* __restrict third = row(third_, n_ - 1);
    for (std::int64_t j = 0; j < k_; ++j) {
      pivot[j] = S(1) / (std::abs(a[j]) < tiny ? tiny : a[j]);
      next[j] = third[j] = S(0);
    }
  }

  // Other numbers in every lane, so that eigenvectors of one eigenvalue come out different; the same in every
  // run.
  void start(S* x) const {
    std::uint32_t bits = 1;
    for (std::int64_t i = 0; i < n_ * k_; ++i) {
      bits = bits * 1664525u + 1013904223u;
      x[i] = static_cast<S>(static_cast<std::int32_t>(bits)) / S(2147483648.0);
    }
  }

  void forward(S* x) const {
    for (std::int64_t i = 0; i + 1 < n_; ++i) {
      const S* __restrict factor = row(factor_, i), * __restrict swapped = row(swapped_, i);
      S* __restrict upper = x + i * k_, * __restrict lower = upper + k_;
      for (std::int64_t j = 0; j < k_; ++j) {
        const bool swap = swapped[j] != S(0);
        const S first = swap ? lower[j] : upper[j], second = swap ? upper[j] : lower[j];
        upper[j] = first;
        lower[j] = second - factor[j] * first;
      }
    }
  }

  void back(S* x) const {
    for (std::int64_t i = n_ - 1; i >= 0; --i) {
      const S* __restrict pivot = row(pivot_, i), * __restrict next = row(next_, i), * __restrict third = row(third_, i);
      // Beyond the end, what is multiplied by 0 is row n − 1 itself.
      const S *one = x + std::min(i + 1, n_ - 1) * k_, *two = x + std::min(i + 2, n_ - 1) * k_;
      S* own = x + i * k_;
      for (std::int64_t j = 0; j < k_; ++j)
        own[j] = (own[j] - next[j] * one[j] - third[j] * two[j]) * pivot[j];
    }
  }

  void normalise(S* x) {
    S* __restrict largest = work_.data(), * __restrict sum = largest + k_;
    std::fill_n(largest, 2 * k_, S(0));
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < k_; ++j) {
        const S size = std::abs(x[i * k_ + j]);
        largest[j] = largest[j] < size ? size : largest[j];
      }
    for (std::int64_t j = 0; j < k_; ++j) largest[j] = S(1) / largest[j];
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < k_; ++j) {
        const S value = x[i * k_ + j] * largest[j];  // below 1, so that squares do not overflow
        x[i * k_ + j] = value;
        sum[j] += value * value;
      }
    for (std::int64_t j = 0; j < k_; ++j) sum[j] = S(1) / std::sqrt(sum[j]);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < k_; ++j) x[i * k_ + j] *= sum[j];
  }

  S* row(std::vector<S>& part, std::int64_t i) { return part.data() + i * k_; }
  const S* row(const std::vector<S>& part, std::int64_t i) const { return part.data() + i * k_; }

  std::int64_t n_ = 0, k_ = 0;
  std::vector<S> pivot_, next_, third_, factor_, swapped_, work_;
};

}  // namespace skn
