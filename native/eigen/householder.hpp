// A symmetric matrix as QTQᵀ with T tridiagonal, by Householder's reflections.
//
// LAPACK does the same; for matrices that fit into a processor's second cache this is twice as fast, because
// every reflection goes over what is left of the matrix once: the update by the last one and the product with
// the next are found on the way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace skn {

template <class S>
class Householder {
  // Wider than the registers of some processors: sums have the same order on all.
  static constexpr std::int64_t kBytes = 32, kWidth = kBytes / sizeof(S);
  using Part [[gnu::vector_size(kBytes), gnu::may_alias, gnu::aligned(sizeof(S))]] = S;

 public:
  std::vector<S> diagonal, beside;  // of T: n, n − 1

  // Of a row-major n × n matrix.
  void compute(const S* matrix, std::int64_t n) {
    n_ = n;
    ld_ = padded(n);
    A_.assign(n * ld_, S(0));
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(matrix + i * n, n, row(i));
    diagonal.resize(n);
    beside.resize(n - 1);
    scales_.assign(n, S(0));
    w_.assign(ld_, S(0));
    p_.assign(ld_, S(0));
    const std::vector<S> none(ld_, S(0));
    const S* last = none.data();
    S* const w = w_.data();
    // The reflection I − βvvᵀ clears row i but for its last two entries; v stays in its place. All entries
    // before the diagonal get −(vwᵀ + wvᵀ), which is due when the next one is found.
    for (std::int64_t i = n - 1; i > 0; --i) {
      S* const v = row(i);
      const S x = last[i], y = w[i];
      for (std::int64_t j = 0; j <= i; j += kWidth) at(v + j) -= x * at(w + j) + y * at(last + j);
      diagonal[i] = v[i];
      const std::int64_t columns = padded(i);
      const S end = v[i - 1];
      std::fill(v + i - 1, v + ld_, S(0));
      // Not as ‖row‖² less its last square: that loses all that is shorter than √ε of it.
      const S others = dot(v, v, columns), norm = others + end * end;
      S beta = 0;
      beside[i - 1] = v[i - 1] = end;
      if (others > kNothing * norm) {
        const S length = std::copysign(std::sqrt(norm), end);
        beside[i - 1] = -length;
        v[i - 1] = end + length;
        beta = 1 / (norm + end * length);
      }
      scales_[i] = beta;
      update_and_multiply(i, last, v);
      const S half = beta * beta * dot(p_.data(), v, columns) / 2;
      for (std::int64_t j = 0; j < columns; j += kWidth) at(w + j) = beta * at(&p_[j]) - half * at(v + j);
      last = v;
    }
    diagonal[0] = A_[0] - 2 * last[0] * w[0];
  }

  // X ← QX for a row-major n × k matrix.
  void apply(S* X, std::int64_t k) const {
    for (std::int64_t c = 0; c < k; c += 4 * kWidth) {
      const std::int64_t columns = std::min(k - c, 4 * kWidth);
      if (columns > 3 * kWidth) {
        apply_to<4>(X + c, k, columns);
      } else if (columns > 2 * kWidth) {
        apply_to<3>(X + c, k, columns);
      } else if (columns > kWidth) {
        apply_to<2>(X + c, k, columns);
      } else {
        apply_to<1>(X + c, k, columns);
      }
    }
  }

 private:
  // Share of a row's squares beside the diagonal that counts as zero already.
  static constexpr S kNothing = std::numeric_limits<S>::epsilon() * std::numeric_limits<S>::epsilon();

  static Part& at(S* p) { return *reinterpret_cast<Part*>(p); }
  static const Part& at(const S* p) { return *reinterpret_cast<const Part*>(p); }
  static std::int64_t padded(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

  static S sum(const Part& part) {  // in pairs, which do not wait for each other
    S totals[kWidth];
    for (std::int64_t c = 0; c < kWidth; ++c) totals[c] = part[c];
    for (std::int64_t left = kWidth / 2; left > 0; left /= 2)
      for (std::int64_t c = 0; c < left; ++c) totals[c] += totals[c + left];
    return totals[0];
  }
  static S dot(const S* a, const S* b, std::int64_t n) {  // n is padded
    Part total{};
    for (std::int64_t j = 0; j < n; j += kWidth) total += at(a + j) * at(b + j);
    return sum(total);
  }

  // In the rows before i, up to the diagonal: A −= vwᵀ + wvᵀ for the last v; and p = Av for the next.
  void update_and_multiply(std::int64_t i, const S* last, const S* next) {
    std::fill_n(p_.data(), padded(i), S(0));
    for (std::int64_t tile = 0; tile < i; tile += kWidth) {
      const std::int64_t end = std::min(tile + kWidth, i);
      std::int64_t r = tile;
      for (; r + 2 <= end; r += 2) update_rows<2>(r, tile, last, next);
      if (r < end) update_rows<1>(r, tile, last, next);
    }
  }

  // Of R rows. Columns before `tile` stand for what mirrors them, too; those of the tile, about the diagonal,
  // are there twice.
  template <int R>
  void update_rows(std::int64_t r, std::int64_t tile, const S* __restrict last, const S* __restrict next) {
    const S* __restrict w = w_.data();
    S* __restrict p = p_.data();
    S *a[R], x[R], y[R], z[R];
    Part along[R];
    for (int k = 0; k < R; ++k) {
      a[k] = row(r + k);
      x[k] = last[r + k], y[k] = w[r + k], z[k] = next[r + k];
      along[k] = Part{};
    }
    for (std::int64_t j = 0; j < tile; j += kWidth) {
      const Part across_w = at(w + j), across_last = at(last + j), across_next = at(next + j);
      Part mirrored = at(p + j);
      for (int k = 0; k < R; ++k) {
        const Part now = at(a[k] + j) - (x[k] * across_w + y[k] * across_last);
        at(a[k] + j) = now;
        along[k] += now * across_next;
        mirrored += now * z[k];
      }
      at(p + j) = mirrored;
    }
    for (int k = 0; k < R; ++k) {
      const Part now = at(a[k] + tile) - (x[k] * at(w + tile) + y[k] * at(last + tile));
      at(a[k] + tile) = now;
      p[r + k] += sum(along[k] + now * at(next + tile));
    }
  }

  // Reflections act on P registers' worth of columns two at a time: H'H = I − β'v'(v' − β(v'ᵀv)v)ᵀ − βvvᵀ.
  template <int P>
  void apply_to(S* X, std::int64_t k, std::int64_t columns) const {
    std::vector<S> own(n_ * P * kWidth, S(0));
    for (std::int64_t r = 0; r < n_; ++r) std::copy_n(X + r * k, columns, &own[r * P * kWidth]);
    for (std::int64_t i = 1; i < n_; i += 2) {
      const bool two = i + 1 < n_;
      const S *u = row(i), *v = two ? row(i + 1) : u;
      const S a = scales_[i], b = two ? scales_[i + 1] : S(0);
      const std::int64_t end = two ? i + 1 : i;
      Part along_u[P] = {}, along_v[P] = {};
      for (std::int64_t r = 0; r < end; ++r)
        for (int c = 0; c < P; ++c) {
          const Part x = at(&own[(r * P + c) * kWidth]);
          along_u[c] += u[r] * x;
          along_v[c] += v[r] * x;
        }
      const S angle = a * dot(u, v, padded(end));
      for (int c = 0; c < P; ++c) {
        along_v[c] = b * (along_v[c] - angle * along_u[c]);
        along_u[c] = a * along_u[c];
      }
      for (std::int64_t r = 0; r < end; ++r)
        for (int c = 0; c < P; ++c) at(&own[(r * P + c) * kWidth]) -= u[r] * along_u[c] + v[r] * along_v[c];
    }
    for (std::int64_t r = 0; r < n_; ++r) std::copy_n(&own[r * P * kWidth], columns, X + r * k);
  }

  S* row(std::int64_t i) { return A_.data() + i * ld_; }
  const S* row(std::int64_t i) const { return A_.data() + i * ld_; }

  std::int64_t n_ = 0, ld_ = 0;
  std::vector<S> A_, scales_, w_, p_;
};

}  // namespace skn
