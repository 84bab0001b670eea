// A row of a bank (bank.hpp, class_bank.hpp) and its features' rows of the table: found, scaled, summed up.
//
// Lengths of rows differ, and a processor that cannot guess where a loop ends starts anew what it has begun
// beyond it: loops take kWidth features at once, arrays are padded with features of value 0, whose row is
// nobody's.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "learners/bank_sketch.hpp"
#include "learners/bank_state.hpp"

namespace skn {

template <class T>
class BankRow {
  using State = BankState<T>;

 public:
  BankRow(const BankState<T>& state, const Table<T>& table)
      : s_(state), table_(table), nobody_(static_cast<std::size_t>(table.stride)) {}

  T* x() { return x_.data(); }                     // scaled
  const T* sizes() const { return mean_.data(); }  // mean|x| of its features
  std::int64_t met() const { return met_; }        // how many of its features were seen before
  double xx() const { return xx_; }                // ‖x‖² with the constant, scaled
  double seen_xx() const { return seen_xx_; }      // that of the features that were seen before
  double rare_xx() const { return rare_xx_; }      // Σ x²√(T/n)

  // The row after the next: where its features are, which are then on their way from memory.
  void expect(const Row& row) {
    std::swap(next_, later_);
    later_.index = row.index();
    later_.size = row.size();
    find(row.index(), row.size(), later_.rows);
  }
  void expect_nothing() { next_.index = later_.index = nullptr; }

  void fetch(const Row& row) {
    start(row.size());
    const bool known = next_.index != nullptr && next_.index == row.index() && next_.size == size_ && !moved_;
    moved_ = false;
    if (known) {
      std::swap(rows_, next_.rows);
      next_.index = nullptr;  // dense rows share their indices: the next one may look the same
    } else {
      find(row.index(), size_, rows_);
    }
  }

  // The same for a row that is only looked at: those features that `settle` would change are copies.
  void peek(const std::int64_t* index, std::int64_t size, BankSketch<T>& sketch) {
    start(size);
    std::size_t late = 0;
    const auto now = static_cast<T>(sketch.now());
    const auto behind = [&](std::int64_t i) {
      const T epoch = tail_of(rows_[i])[State::kEpoch];
      return epoch >= T(0) && epoch < now;
    };
    for (std::int64_t i = 0; i < size_; ++i) {
      rows_[i] = table_.packed_row(index[i]);
      late += behind(i);
    }
    std::fill_n(rows_.begin() + size_, kWidth, nobody_.data());
    copies_.resize(late * static_cast<std::size_t>(table_.stride));
    T* copy = copies_.data();
    for (std::int64_t i = 0; i < size_ && late > 0; ++i) {
      if (!behind(i)) continue;
      std::copy_n(rows_[i], table_.stride, copy);
      sketch.settle(copy);
      rows_[i] = copy;
      copy += table_.stride;
    }
  }

  // x_i divided by mean|x_i| (n/T)^¼: its mean size in the n rows that have it, less for rare features. The
  // present row is included. A few wild values hardly move a mean, while they would set a maximum or a root
  // mean square. A value counts as `most` mean sizes at most. Only relative quantities are formed, which stay
  // in range whatever the unit of x_i.
  //
  // Quotients and roots take longest, so features that are not up to date are listed meanwhile. There is no
  // branch for each: many rows of the table can be on their way from memory at once.
  void scale(const double* value, T most, std::int64_t epoch) {
    const Bits now = std::bit_cast<Bits>(static_cast<T>(epoch));
    const T rows = static_cast<T>(s_.bank_counts[State::kLearned] + 1);
    met_ = behind_ = 0;
    Four all[2]{}, rare[2]{}, seen[2]{};
    for (std::int64_t i = 0; i < padded_; i += kWidth) {
      Vector x, count, mean;
      read(value, i, x);
      tails(rows_.data() + i, count, mean);
      list_late(rows_.data() + i, now);
      const Whole known = count > T(0);
      const std::uint32_t met = bits(known);
      met_ += std::popcount(met);
      unmet_[i / kWidth] = static_cast<std::uint8_t>(~met);
      count += T(1);
      mean += ((x < T(0) ? -x : x) - mean) / count;  // ONNX models round alike
      mean = mean < kLeast ? Vector{} + kLeast : mean;
      x /= mean;
      x = x > most ? Vector{} + most : x;
      x = x < -most ? Vector{} - most : x;
      Vector rarity = rows / count;
      root(rarity);
      Vector often = rarity;
      root(often);
      x *= often;
      const Vector rarely = x * rarity;
      vector(&x_[i]) = x;
      vector(&count_[i]) = count;
      vector(&mean_[i]) = mean;
      vector(&rare_x_[i]) = rarely;
      Four its[2], others[2];
      widen_all(x, its);
      widen_all(rarely, others);
      for (int half : {0, 1}) {
        all[half] += its[half] * its[half];
        rare[half] += its[half] * others[half];
      }
      widen_all(known ? x : Vector{}, others);
      for (int half : {0, 1}) seen[half] += its[half] * others[half];
    }
    const double one = s_.intercept ? 1.0 : 0.0;
    xx_ = one + total(all[0] + all[1]);
    rare_xx_ = one + total(rare[0] + rare[1]);
    seen_xx_ = one + total(seen[0] + seen[1]);
  }

  // Brings the features that are listed up to date.
  void settle(BankSketch<T>& sketch) {
    for (std::int64_t k = 0; k < behind_; ++k) sketch.settle(late_[k]);
  }

  // Features met for the first time get a place.
  void enter(const Row& row) {
    ++s_.bank_counts[State::kLearned];
    s_.bank_counts[State::kTouched] += size_;
    const std::int64_t* index = row.index();
    if (met_ < size_) enter_new(index);
    if (size_ > 0 && index[size_ - 1] >= s_.counts[State::kDimension])
      s_.counts[State::kDimension] = index[size_ - 1] + 1;
  }

  // Multiplies a row that is very short by a power of two, and returns it: steps are divided by it, which in
  // T would be too long otherwise, though what they add to weights need not be.
  double lift() {
    if (xx_ > 0x1p-64) return 1.0;
    const double by = std::ldexp(1.0, -std::ilogb(xx_) / 2);
    for (auto* array : {&x_, &rare_x_})
      for (T& x : *array) x = static_cast<T>(by * static_cast<double>(x));
    return by;
  }

  // Σ x_i row_i of so many columns, or a few more: short sums in T, long ones in double.
  void gather(double* sums, std::int64_t columns) const {
    const std::int64_t used = std::min((columns + 15) / 16 * 16, table_.stride);
    std::int64_t c = 0;
    for (; c + 32 <= used; c += 32) gather_columns<32>(c, sums + c);
    for (; c + 16 <= used; c += 16) gather_columns<16>(c, sums + c);
    for (; c + 8 <= used; c += 8) gather_columns<8>(c, sums + c);
  }

  // The first kWidth columns, which all rows have, take a step along x, where `rarely` has a bit set along
  // x√(T/n); features' scales become those of the row.
  using Steps [[gnu::vector_size(8 * sizeof(T)), gnu::may_alias, gnu::aligned(sizeof(T))]] = T;
  void scatter(const Steps& its, const T* rarely) const {
    const Whole rare = *reinterpret_cast<const Vector*>(rarely) != T(0);
    for (std::int64_t i = 0; i < padded_; i += kWidth) scatter_eight(i, its, rare);
  }
  // The same with all sums in double.
  void gather_exactly(double* sums) const {
    std::fill_n(sums, table_.stride, 0.0);
    for (std::int64_t i = 0; i < size_; ++i) {
      const auto x = static_cast<double>(x_[i]);
      for (std::int64_t c = 0; c < table_.stride; c += 4) {
        Four its;
        widen(rows_[i] + c, its);
        four(sums + c) += x * its;
      }
    }
  }

 protected:
  static constexpr std::int64_t kWidth = 8;
  static constexpr T kLeast = std::numeric_limits<T>::min();  // mean size
  using Vector [[gnu::vector_size(kWidth * sizeof(T)), gnu::may_alias, gnu::aligned(sizeof(T))]] = T;
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Whole [[gnu::vector_size(kWidth * sizeof(T))]] = Integer;
  using Values [[gnu::vector_size(8 * kWidth), gnu::may_alias, gnu::aligned(8)]] = double;

  // A row that is expected, and where its features' rows of the table are.
  struct Expected {
    const std::int64_t* index = nullptr;
    std::int64_t size = 0;
    std::vector<T*> rows;
  };

  static Vector& vector(T* p) { return *reinterpret_cast<Vector*>(p); }
  static const Vector& vector(const T* p) { return *reinterpret_cast<const Vector*>(p); }
  T* tail_of(T* row) const { return row + table_.stride - State::kTail; }

  // Writes down what features' scales are now.
  void note(std::int64_t i) const {
    T* const tail = tail_of(rows_[i]);
    tail[State::kCount] = count_[i];
    tail[State::kMean] = mean_[i];
  }

  BankState<T> s_;
  Table<T> table_;
  std::int64_t size_ = 0, padded_ = 0;
  std::vector<T*> rows_, late_;  // of the table
  std::int64_t behind_ = 0;      // how many are late
  Expected next_, later_;
  bool moved_ = false;               // since the next row was found, features have got places
  std::vector<std::uint8_t> unmet_;  // a bit for each feature that was not seen before
  std::vector<T> x_, rare_x_;        // scaled, and that times √(T/n)
  std::vector<T> count_, mean_, copies_, nobody_;
  std::int64_t met_ = 0;
  double xx_ = 0, seen_xx_ = 0, rare_xx_ = 0;

 private:
  // Where the rows of features are, and nobody's for as many more as a vector may have.
  void find(const std::int64_t* index, std::int64_t n, std::vector<T*>& to) const {
    if (to.size() < static_cast<std::size_t>(n + 2 * kWidth))
      to.resize(static_cast<std::size_t>(n + 2 * kWidth));
    const std::int64_t stride = table_.stride;
    T **const rows = to.data(), *const first = table_.rows;
    const std::int32_t* const places = table_.places;
    const auto look = [&](std::int64_t i, std::int64_t feature) {
      rows[i] = first + places[feature] * stride;
      table_.touch(rows[i]);
    };
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth)
      for (std::int64_t j = i; j < i + kWidth; ++j) look(j, index[j]);
    if (i < n)  // the last one several times, rather than a branch for each
      for (std::int64_t j = i; j < i + kWidth; ++j) look(j, index[std::min(j, n - 1)]);
    for (std::int64_t j = 0; j < kWidth; ++j) rows[n + j] = const_cast<T*>(nobody_.data());
  }

  void start(std::int64_t n) {
    size_ = n;
    padded_ = (n + kWidth - 1) / kWidth * kWidth;
    T* const tail = tail_of(nobody_.data());
    tail[State::kCount] = T(0);
    tail[State::kEpoch] = T(-1);
    const auto room = static_cast<std::size_t>(padded_);
    if (rows_.size() < room + kWidth) rows_.resize(room + kWidth);
    if (x_.size() < room) {
      late_.resize(room + 1);
      unmet_.resize(room / kWidth + 8);
      for (auto* array : {&x_, &rare_x_, &count_, &mean_}) array->resize(room);
    }
  }

  // Which ones are new cannot be foreseen: there is no branch for each.
  void enter_new(const std::int64_t* index) {
    moved_ = true;
    for (std::int64_t from = 0; from < size_; from += 64) {
      std::uint64_t unmet = 0;
      for (std::int64_t g = 0; g < 8; ++g)
        unmet |= static_cast<std::uint64_t>(unmet_[from / kWidth + g]) << (kWidth * g);
      if (size_ - from < 64) unmet &= ~(~std::uint64_t{0} << (size_ - from));
      for (; unmet != 0; unmet &= unmet - 1) {
        const std::int64_t i = from + std::countr_zero(unmet);
        rows_[i] = table_.row(table_.activate_packed(index[i], s_.counts[State::kActive]));
        T* tail = tail_of(rows_[i]);
        tail[State::kCount] = T(1);
        tail[State::kEpoch] = T(-1);
      }
    }
  }

  // Bit j is lane j of a mask.
  [[gnu::always_inline]] static std::uint32_t bits(const Whole& mask) {
#ifdef __AVX2__
    if constexpr (sizeof(T) == 4)
      return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#endif
    std::uint32_t all = 0;
    for (std::int64_t j = 0; j < kWidth; ++j) all |= static_cast<std::uint32_t>(mask[j] & 1) << j;
    return all;
  }

  // The values from i on, 0 beyond the last.
  void read(const double* value, std::int64_t i, Vector& x) const {
    if (i + kWidth <= size_) {
      x = __builtin_convertvector(*reinterpret_cast<const Values*>(value + i), Vector);
      return;
    }
    static constexpr T kOnes[2 * kWidth] = {1, 1, 1, 1, 1, 1, 1, 1};  // then zeros: no branch for each number
    for (std::int64_t j = 0; j < kWidth; ++j) x[j] = static_cast<T>(value[std::min(i + j, size_ - 1)]);
    x *= *reinterpret_cast<const Vector*>(kOnes + kWidth - (size_ - i));
  }

  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  [[gnu::always_inline]] void list_late(T* const* rows, Bits now) {
    T** const late = late_.data();
    std::int64_t behind = behind_;
    for (std::int64_t j = 0; j < kWidth; ++j) {
      late[behind] = rows[j];
      behind += std::bit_cast<Bits>(rows[j][table_.stride - 1]) < now;  // negative numbers are large as bits
    }
    behind_ = behind;
  }

  // Without a way through memory, where halves of what was just stored would be waited for.
  [[gnu::always_inline]] static void widen_all(const Vector& x, Four* to) {
    const Values all = __builtin_convertvector(x, Values);
    to[0] = __builtin_shufflevector(all, all, 0, 1, 2, 3);
    to[1] = __builtin_shufflevector(all, all, 4, 5, 6, 7);
  }

  // Counts and means of eight features. Both numbers of a feature are next to one another, and were stored at
  // once.
  [[gnu::always_inline]] void tails(T* const* rows, Vector& count, Vector& mean) const {
    const std::int64_t at = table_.stride - State::kTail;
    static_assert(State::kCount == 0 && State::kMean == 1);
    if constexpr (sizeof(T) == 4) {
      double pair[kWidth];
      for (std::int64_t j = 0; j < kWidth; ++j) std::memcpy(&pair[j], rows[j] + at, sizeof(double));
      const Four low = {pair[0], pair[1], pair[4], pair[5]}, high = {pair[2], pair[3], pair[6], pair[7]};
      const Vector a = reinterpret_cast<Vector>(low), b = reinterpret_cast<Vector>(high);
      count = __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
      mean = __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
    } else {
      for (std::int64_t j = 0; j < kWidth; ++j) {
        count[j] = rows[j][at + State::kCount];
        mean[j] = rows[j][at + State::kMean];
      }
    }
  }

  // Eight features. Each of their two numbers goes where the lanes of experts want it, the scales in one
  // piece.
  [[gnu::always_inline]] void scatter_eight(std::int64_t i, const Steps& its, const Whole& rare) const {
    T* const* const rows = rows_.data() + i;
    const std::int64_t at = table_.stride - State::kTail;
#ifdef __AVX2__
    if constexpr (sizeof(T) == 4) {
      const Vector x = vector(&x_[i]), rare_x = vector(&rare_x_[i]);
      const Vector count = vector(&count_[i]), mean = vector(&mean_[i]);
      Vector both[2], tail[2];  // of the features 0, 1, 4, 5, then 2, 3, 6, 7
      both[0] = __builtin_shufflevector(x, rare_x, 0, 8, 1, 9, 4, 12, 5, 13);
      both[1] = __builtin_shufflevector(x, rare_x, 2, 10, 3, 11, 6, 14, 7, 15);
      tail[0] = __builtin_shufflevector(count, mean, 0, 8, 1, 9, 4, 12, 5, 13);
      tail[1] = __builtin_shufflevector(count, mean, 2, 10, 3, 11, 6, 14, 7, 15);
      const Whole first = rare ? Whole{} + 1 : Whole{};
      for (int half : {0, 1})
        for (int k = 0; k < 4; ++k) {
          T* const row = rows[2 * half + k + (k & 2)];
          const __m256i lanes = reinterpret_cast<__m256i>(first + 2 * k);
          const Vector seen = _mm256_permutevar8x32_ps(both[half], lanes);
          vector(row) += seen * its;
          const double pair = reinterpret_cast<Four>(tail[half])[k];
          std::memcpy(row + at, &pair, sizeof pair);
        }
      return;
    }
#endif
    for (std::int64_t j = 0; j < kWidth; ++j) {
      const Vector plain = Vector{} + x_[i + j], often = Vector{} + rare_x_[i + j];
      vector(rows[j]) += (rare ? often : plain) * its;
      rows[j][at + State::kCount] = count_[i + j];
      rows[j][at + State::kMean] = mean_[i + j];
    }
  }

  static void root(Vector& x) {
    for (std::int64_t j = 0; j < kWidth; ++j) x[j] = std::sqrt(x[j]);
  }

  template <int width>
  void gather_columns(std::int64_t first, double* sums) const {
    constexpr std::int64_t kRun = 32;
    const T* const x = x_.data();
    T* const* const rows = rows_.data();
    constexpr int kParts = width / kWidth;
    Four all[2 * kParts] = {};
    for (std::int64_t start = 0; start < padded_; start += kRun) {
      const std::int64_t stop = std::min(start + kRun, padded_);
      Vector even[kParts] = {}, odd[kParts] = {};  // a sum has to wait for the one before it
      for (std::int64_t i = start; i < stop; i += kWidth)
        for (std::int64_t j = i; j < i + kWidth; j += 2)
          for (int c = 0; c < kParts; ++c) {
            even[c] += x[j] * vector(rows[j] + first + c * kWidth);
            odd[c] += x[j + 1] * vector(rows[j + 1] + first + c * kWidth);
          }
      for (int c = 0; c < kParts; ++c) {
        Four one[2], two[2];
        widen_all(even[c], one);
        widen_all(odd[c], two);
        for (int half : {0, 1}) all[2 * c + half] += one[half] + two[half];
      }
    }
    for (int c = 0; c < 2 * kParts; ++c) four(sums + 4 * c) = all[c];
  }
};

}  // namespace skn
