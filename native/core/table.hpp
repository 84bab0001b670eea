// The feature table: one contiguous row per feature, so that a feature costs one cache miss.
//
//   column 0      weight w̄
//   column 1      scale: 0 while the feature has never been learned from, else the root of its Σg² (or 1)
//   columns 2…    sketch coordinates, then whatever else the learner keeps per feature; zero padding
//
// All columns of a row are combined linearly in every pass, so both passes are plain vector loops:
//   gather   out  = Σ_i x_i row_i          scatter   row_i += x_i step
//
// Feature i has row i, or in a packed table row `places[i]`: rows then follow one another in the order in
// which features were first met, so that names scattered by hashing over a large range do not take a page of
// memory each. Row 0 of a packed table is that of all features without a place, and stays zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/index_sort.hpp"

namespace skn {

template <class T>
struct Table {
  T* rows;
  std::int64_t stride;
  std::int64_t* active;   // features learned from, in the order of their indices or of first appearance
  std::int64_t features;  // there is room for
  std::int32_t* places = nullptr;  // one for each feature, 0 if it has none; none if the table is not packed

  static constexpr std::int64_t kWeight = 0, kScale = 1, kSketch = 2;

  T* row(std::int64_t place) const { return rows + place * stride; }
  std::int64_t bytes() const { return features * stride * static_cast<std::int64_t>(sizeof(T)); }
  T* packed_row(std::int64_t feature) const { return row(places[feature]); }
  T* row_of(std::int64_t feature) const { return places == nullptr ? row(feature) : packed_row(feature); }

  void prefetch_places(const std::int64_t* feature, std::int64_t n) const {
    for (std::int64_t k = 0; k < n; ++k) touch(places + feature[k]);
  }
  void prefetch_packed(const std::int64_t* feature, std::int64_t n) const {
    switch (stride / kLine) {
      case 1:
        return prefetch_lines<1>(feature, n);  // as a rule
      case 2:
        return prefetch_lines<2>(feature, n);
      case 4:
        return prefetch_lines<4>(feature, n);
      case 6:
        return prefetch_lines<6>(feature, n);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      const T* const its = packed_row(feature[k]);
      for (std::int64_t c = 0; c < stride; c += kLine) touch(its + c);
    }
  }
  void prefetch(const std::int64_t* index, std::int64_t n) const {
    const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(T));
    if (stride == kLine) {  // as a rule
      for (std::int64_t k = 0; k < n; ++k) touch(rows + index[k] * kLine);
      return;
    }
    for (std::int64_t line = 0; line < bytes; line += 64) {
      const char* const start = reinterpret_cast<const char*>(rows) + line;
      for (std::int64_t k = 0; k < n; ++k) {
        touch(start + index[k] * bytes);
      }
    }
  }

  // A feature joins the active ones. A table has room for each once; what a damaged state would list twice is
  // left out.
  void activate(std::int64_t feature, std::int64_t& count) const {
    if (count < features) active[count++] = feature;
  }

  // The same in a packed table: returns the feature's place, which is its number in the list, from 1 on.
  std::int64_t activate_packed(std::int64_t feature, std::int64_t& count) const {
    if (count < std::min<std::int64_t>(features, std::numeric_limits<std::int32_t>::max())) {
      active[count++] = feature;
      places[feature] = static_cast<std::int32_t>(count);
    }
    return places[feature];
  }

  // Called before the i-th active feature is visited: its successors are asked for.
  void prefetch_active(std::int64_t i, std::int64_t count) const {
    if (places != nullptr && i + 32 < count) prefetch_places(active + i + 32, 1);
    if (i + 8 >= count) return;
    if (places == nullptr) return prefetch(active + i + 8, 1);
    prefetch_packed(active + i + 8, 1);
  }

  // Passes over all features are fastest in the order of memory. Most of the list is sorted already.
  void sort_active(std::int64_t count) const {
    std::int64_t* middle = std::is_sorted_until(active, active + count);
    sort_indices(middle, active + count);
    std::inplace_merge(active, middle, active + count);
  }

  // Returns whether all of these features have been learned from, that is, have a scale.
  bool gather(const std::int64_t* index, const T* x, std::int64_t n, double* out) const {
    const Gathered done = gather_quickly(index, x, n, out);
    if (!done.finite) gather_exactly(index, x, n, out);
    return done.known;
  }

  // Sums in double or wider. Products that are too large for T are not for it.
  template <class Sum>
  void gather_exactly(const std::int64_t* index, const T* x, std::int64_t n, Sum* out) const {
    std::int64_t c = 0;
    for (; c + 16 <= stride; c += 16) gather_block<16>(c, index, x, n, out + c);
    for (; c + 8 <= stride; c += 8) gather_block<8>(c, index, x, n, out + c);
    for (; c < stride; ++c) gather_block<1>(c, index, x, n, out + c);
  }

  void scatter(const std::int64_t* index, const T* x, std::int64_t n, const double* step) const {
    std::int64_t odd = 0;  // counted, not noted: compilers make vectors of sums
    for (std::int64_t c = 0; c < stride; ++c) odd += !fits(step[c]);
    if (odd > 0) return scatter_exactly(index, x, n, step);
    if (stride == 2) return scatter_columns<2, 2>(0, index, x, n, step);
    if (stride == 4) return scatter_columns<4, 4>(0, index, x, n, step);
    if (stride == 8) return scatter_columns<8, 8>(0, index, x, n, step);
    if (stride == 16) return scatter_columns<16, 16>(0, index, x, n, step);
    for (std::int64_t c = 0; c < stride; c += 16) scatter_columns<16>(c, index, x, n, step + c);
  }

  void add_weights(const std::int64_t* index, const T* x, std::int64_t n, double step) const {
    if (step == 0) return;
    if (!fits(step)) {
      for (std::int64_t k = 0; k < n; ++k) {
        T& w = row(index[k])[kWeight];
        w = static_cast<T>(static_cast<double>(w) + static_cast<double>(x[k]) * step);
      }
      return;
    }
    const T s = static_cast<T>(step);
    for (std::int64_t k = 0; k < n; ++k) row(index[k])[kWeight] += x[k] * s;
  }

  // 2, 4, 8 or a multiple of 16 numbers: 14 sketch coordinates in float32 fill one 64-byte line.
  static constexpr std::int64_t padded(std::int64_t columns) {
    for (std::int64_t width : {2, 4, 8})
      if (columns <= width) return width;
    return (columns + 15) / 16 * 16;
  }

  static void touch(const void* place) {
    __builtin_prefetch(place);
    asm volatile("" : : "r"(place));  // else GCC sees a function without effects, and leaves out calls of it
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);

  // Rows of so many lines, their last one first: it has what is looked at first.
  template <int lines>
  void prefetch_lines(const std::int64_t* feature, std::int64_t n) const {
    for (std::int64_t k = 0; k < n; ++k) {
      const T* const its = rows + places[feature[k]] * (lines * kLine);
      touch(its);
      for (int line = lines - 1; line > 0; --line) __builtin_prefetch(its + line * kLine);
    }
  }

  // Short sums in T, long ones in double: the speed of float32 without its error on wide rows.
  static constexpr std::int64_t kRun = 32;

  // Written out as vectors, since the compiler unrolls the loop over columns into single numbers otherwise.
  // As wide as those that the next row reads: a load that has to wait for two stores is slow.
#ifdef __AVX2__
  static constexpr int kVector = 32;
#else
  static constexpr int kVector = 16;
#endif
  static constexpr int kLanes = kVector / sizeof(T);
  // To be named where it is used: `auto` would forget that rows need not be aligned.
  using Lanes [[gnu::vector_size(kVector), gnu::may_alias, gnu::aligned(sizeof(T))]] = T;

  // Within this range a number is as exact in T as others. Rows of values around 10²⁵ have steps of 10⁻⁵⁰ per
  // unit of x, which in float32 would be 0.
  static constexpr double kLeast = sizeof(T) == 4 ? 1e-30 : 1e-300, kLargest = 1 / kLeast;
  static bool fits(double step) {
    const double size = std::abs(step);
    return (size <= kLargest) & ((size >= kLeast) | (size == 0));
  }

  struct Gathered {
    bool known, finite;  // are all scales above zero, all sums numbers?
  };

  Gathered gather_quickly(const std::int64_t* index, const T* x, std::int64_t n, double* out) const {
    if (stride == 2) return gather_columns<2, 2>(0, index, x, n, out);
    if (stride == 4) return gather_columns<4, 4>(0, index, x, n, out);
    if (stride == 8) return gather_columns<8, 8>(0, index, x, n, out);
    if (stride == 16) return gather_columns<16, 16>(0, index, x, n, out);
    Gathered all = gather_columns<16>(0, index, x, n, out);
    for (std::int64_t c = 16; c < stride; c += 16)
      all.finite &= gather_columns<16>(c, index, x, n, out + c).finite;
    return all;
  }

  // Steps that are too large or small for T may still be fine once they are multiplied by x.
  void scatter_exactly(const std::int64_t* index, const T* x, std::int64_t n, const double* step) const {
    for (std::int64_t k = 0; k < n; ++k) {
      T* r = row(index[k]);
      for (std::int64_t c = 0; c < stride; ++c)
        r[c] = static_cast<T>(static_cast<double>(r[c]) + static_cast<double>(x[k]) * step[c]);
    }
  }

  // W columns, whose sums stay in registers.
  template <int W, class Sum>
  void gather_block(std::int64_t c, const std::int64_t* index, const T* x, std::int64_t n, Sum* out) const {
    Sum sum[W] = {};
    for (std::int64_t k = 0; k < n; ++k) {
      const Sum scale = static_cast<Sum>(x[k]);
      const T* const from = row(index[k]) + c;
      for (int j = 0; j < W; ++j) sum[j] += scale * static_cast<Sum>(from[j]);
    }
    std::copy_n(sum, W, out);
  }

  // The columns from c on; from the first on if rows are of a length that compilers may know.
  template <int Stride>
  T* columns(std::int64_t feature, std::int64_t c) const {
    return Stride > 0 ? rows + feature * Stride : row(feature) + c;
  }

  // Scales are those of the table if c is 0.
  template <int W, int Stride = 0>
  Gathered gather_columns(std::int64_t c, const std::int64_t* index, const T* x, std::int64_t n,
                          double* out) const {
    double total[W] = {};
    bool known = true;
    if constexpr (W % kLanes == 0) {
      constexpr int kParts = W / kLanes;
      Lanes least = Lanes{} + T(1);
      const auto add = [&](std::int64_t k, Lanes* sum, Lanes& smallest) __attribute__((always_inline)) {
        const Lanes* r = reinterpret_cast<const Lanes*>(columns<Stride>(index[k], c));
        for (int j = 0; j < kParts; ++j) sum[j] += x[k] * r[j];
        smallest = smallest < r[0] ? smallest : r[0];
      };
      const auto close = [&](const Lanes* sum) __attribute__((always_inline)) {
        for (int j = 0; j < kParts; ++j)
          for (int l = 0; l < kLanes; ++l) total[j * kLanes + l] += static_cast<double>(sum[j][l]);
      };
      std::int64_t start = 0;
      // Two runs side by side: one alone would wait for each addition.
      for (; start + kRun < n; start += 2 * kRun) {
        const std::int64_t both = std::min(n - start - kRun, kRun);
        Lanes first[kParts] = {}, second[kParts] = {}, other = least;
        std::int64_t k = start;
        for (; k < start + both; ++k) {
          add(k, first, least);
          add(k + kRun, second, other);
        }
        for (; k < start + kRun; ++k) add(k, first, least);
        least = least < other ? least : other;
        close(first);
        close(second);
      }
      if (start < n) {
        Lanes sum[kParts] = {};
        for (std::int64_t k = start; k < n; ++k) add(k, sum, least);
        close(sum);
      }
      known = least[kScale] > T(0);
    } else {
      for (std::int64_t start = 0; start < n; start += kRun) {
        const std::int64_t stop = start + kRun < n ? start + kRun : n;
        T sum[W] = {};
        for (std::int64_t k = start; k < stop; ++k) {
          const T* r = columns<Stride>(index[k], c);
          for (int j = 0; j < W; ++j) sum[j] += x[k] * r[j];
          known &= r[kScale] > T(0);
        }
        for (int j = 0; j < W; ++j) total[j] += static_cast<double>(sum[j]);
      }
    }
    std::int64_t odd = 0;  // counted, not noted: compilers make vectors of sums
    for (int j = 0; j < W; ++j) odd += !(std::abs(total[j]) <= std::numeric_limits<double>::max());
    for (int j = 0; j < W; ++j) out[j] = total[j];
    return {known, odd == 0};
  }

  template <int W, int Stride = 0>
  void scatter_columns(std::int64_t c, const std::int64_t* index, const T* x, std::int64_t n,
                       const double* step) const {
    T s[W];
    for (int j = 0; j < W; ++j) s[j] = static_cast<T>(step[j]);
    if constexpr (W % kLanes == 0) {
      Lanes steps[W / kLanes];
      std::memcpy(steps, s, sizeof s);
      for (std::int64_t k = 0; k < n; ++k) {
        Lanes* r = reinterpret_cast<Lanes*>(columns<Stride>(index[k], c));
        const T xk = x[k];
        for (int j = 0; j < W / kLanes; ++j) r[j] += xk * steps[j];
      }
    } else {
      for (std::int64_t k = 0; k < n; ++k) {
        T* r = columns<Stride>(index[k], c);
        const T xk = x[k];
        for (int j = 0; j < W; ++j) r[j] += xk * s[j];
      }
    }
  }
};

}  // namespace skn
