// Leading eigenvalues of a symmetric tridiagonal matrix by bisection, and their vectors by inverse iteration.
//
// Both are chains from the first row of T to the last, in which nothing can be done in parallel but another
// eigenvalue: so all of them go through the rows together, one lane each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace skn {

template <class S>
struct Tridiagonal {
  const S *diagonal, *beside;  // n, n − 1
  std::int64_t n;

  S before(std::int64_t i) const { return i > 0 ? beside[i - 1] : S(0); }
  S after(std::int64_t i) const { return i + 1 < n ? beside[i] : S(0); }

  S norm() const {
    S most = std::numeric_limits<S>::min();
    for (std::int64_t i = 0; i < n; ++i)
      most = std::max(most, std::abs(before(i)) + std::abs(diagonal[i]) + std::abs(after(i)));
    return most;
  }
};

// The k largest eigenvalues, largest first, each to a few eps·‖T‖. As many are below x as pivots of T − xI
// are negative.
template <class S>
void leading_values(const Tridiagonal<S>& T, std::int64_t k, S* values) {
  constexpr S eps = std::numeric_limits<S>::epsilon();
  const S norm = T.norm(), tiny = norm * eps * eps;
  const auto n = static_cast<S>(T.n);
  std::vector<S> work(4 * k);
  S* __restrict low = work.data(), * __restrict high = low + k, * __restrict pivot = high + k;
  S* __restrict below = pivot + k, * __restrict x = values;
  std::fill_n(low, k, -norm);
  std::fill_n(high, k, norm);
  for (int step = 0; step < std::numeric_limits<S>::digits + 2; ++step) {
    for (std::int64_t j = 0; j < k; ++j) {
      x[j] = (low[j] + high[j]) / 2;
      pivot[j] = S(1);
      below[j] = S(0);
    }
    for (std::int64_t i = 0; i < T.n; ++i) {
      const S d = T.diagonal[i], ee = T.before(i) * T.before(i);
      for (std::int64_t j = 0; j < k; ++j) {
        S p = (d - x[j]) - ee / pivot[j];
        p = std::abs(p) < tiny ? -tiny : p;
        below[j] += p < S(0) ? S(1) : S(0);
        pivot[j] = p;
      }
    }
    for (std::int64_t j = 0; j < k; ++j) {
      const bool above = n - below[j] > static_cast<S>(j);  // more than j eigenvalues are at least x
      low[j] = above ? x[j] : low[j];
      high[j] = above ? high[j] : x[j];
    }
  }
}

// Row i of every array holds what belongs to row i of T.
template <class S>
class InverseIteration {
 public:
  // Row-major n × k `vectors` of length 1, column j for values[j]; returns the largest entry of TV − V
  // diag(values). Vectors of very close eigenvalues are independent, not orthogonal. If T is unfit, some are
  // not finite.
  S compute(const Tridiagonal<S>& T, const S* values, std::int64_t k, S* vectors) {
    n_ = T.n;
    k_ = k;
    for (auto* part : {&pivot_, &next_, &third_, &factor_, &swapped_}) part->resize(n_ * k);
    work_.resize(2 * k);
    factorise(T, values);
    start(vectors);
    back(vectors);
    normalise(vectors);
    // The first solution may have missed its eigenvector by chance; a second does not, and sharpens it.
    forward(vectors);
    back(vectors);
    normalise(vectors);
    return residual(T, values, vectors);
  }

 private:
  // P(T − λI) = LU with partial pivoting; U has three diagonals, of which the first is kept inverted.
  void factorise(const Tridiagonal<S>& T, const S* values) {
    const S tiny = T.norm() * std::numeric_limits<S>::epsilon();
    S* __restrict a = work_.data(), * __restrict b = a + k_;
    for (std::int64_t j = 0; j < k_; ++j) {
      a[j] = T.diagonal[0] - values[j];
      b[j] = T.after(0);
    }
    for (std::int64_t i = 0; i + 1 < n_; ++i) {
      S* __restrict pivot = row(pivot_, i), * __restrict next = row(next_, i), * __restrict third = row(third_, i);
      S* __restrict factor = row(factor_, i), * __restrict swapped = row(swapped_, i);
      const S below = T.after(i), diagonal = T.diagonal[i + 1], beyond = T.after(i + 1),
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
      const S* __restrict pivot = row(pivot_, i), * __restrict next = row(next_, i);
      const S* __restrict third = row(third_, i);
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
        const S value = x[i * k_ + j] * largest[j];  // at most 1, so that squares do not overflow
        x[i * k_ + j] = value;
        sum[j] += value * value;
      }
    for (std::int64_t j = 0; j < k_; ++j) sum[j] = S(1) / std::sqrt(sum[j]);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < k_; ++j) x[i * k_ + j] *= sum[j];
  }

  S residual(const Tridiagonal<S>& T, const S* values, const S* x) {
    S* __restrict largest = work_.data();
    std::fill_n(largest, k_, S(0));
    for (std::int64_t i = 0; i < n_; ++i) {
      const S *own = x + i * k_, *up = i > 0 ? own - k_ : own, *down = i + 1 < n_ ? own + k_ : own;
      const S before = T.before(i), d = T.diagonal[i], after = T.after(i);
      for (std::int64_t j = 0; j < k_; ++j) {
        const S size = std::abs(before * up[j] + (d - values[j]) * own[j] + after * down[j]);
        largest[j] = size <= largest[j] ? largest[j] : size;  // NaN gets through
      }
    }
    S most = 0;
    for (std::int64_t j = 0; j < k_; ++j)
      if (!(largest[j] <= most)) most = largest[j];
    return most;
  }

  S* row(std::vector<S>& part, std::int64_t i) { return part.data() + i * k_; }
  const S* row(const std::vector<S>& part, std::int64_t i) const { return part.data() + i * k_; }

  std::int64_t n_ = 0, k_ = 0;
  std::vector<S> pivot_, next_, third_, factor_, swapped_, work_;
};

}  // namespace skn
