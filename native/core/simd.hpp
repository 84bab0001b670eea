// A few numbers side by side, in the registers of the processor that the core is compiled for.
#pragma once

#include <cstdint>

namespace skn {

// W numbers of type T, W a multiple of what a register holds. Written out as vectors, since compilers unroll
// short loops over arrays into single numbers otherwise.
template <class T, int W>
class Lanes {
 public:
  void zero() {
    for (auto& part : parts_) part = Part{};
  }
  void load(const T* from) {
    for (int i = 0; i < kParts; ++i) parts_[i] = part(from, i);
  }
  void store(T* to) const {
    for (int i = 0; i < kParts; ++i) *reinterpret_cast<Part*>(to + i * kWidth) = parts_[i];
  }
  // Zeros from number `count` on.
  template <int count>
  void keep() {
    for (int i = 0; i < kParts; ++i) {
      Part places;
      for (int c = 0; c < kWidth; ++c) places[c] = static_cast<T>(i * kWidth + c);
      parts_[i] = places < T(count) ? parts_[i] : Part{};
    }
  }
  // The numbers [first, last) as they are there.
  template <int first, int last>
  void restore(const T* from) {
    for (int i = 0; i < kParts && i * kWidth < last; ++i) {
      Part places;
      for (int c = 0; c < kWidth; ++c) places[c] = static_cast<T>(i * kWidth + c);
      const auto inside = (places >= T(first)) & (places < T(last));
      parts_[i] = inside ? part(from, i) : parts_[i];
    }
  }
  void add(T scale, const T* v) {  // += scale·v
    for (int i = 0; i < kParts; ++i) parts_[i] += scale * part(v, i);
  }
  void add(const Lanes& scales, const T* v) {  // the same, number by number
    for (int i = 0; i < kParts; ++i) parts_[i] += scales.parts_[i] * part(v, i);
  }
  void add(const Lanes& scales, const Lanes& v) {
    for (int i = 0; i < kParts; ++i) parts_[i] += scales.parts_[i] * v.parts_[i];
  }
  // Its first numbers are added to those there, up to `replaced` they take their places, the rest is ignored.
  void join(T* to, std::int64_t added, std::int64_t replaced) const {
    for (int i = 0; i < kParts; ++i) {
      Part places;
      for (int c = 0; c < kWidth; ++c) places[c] = static_cast<T>(i * kWidth + c);
      Part& there = *reinterpret_cast<Part*>(to + i * kWidth);
      const Part sum = there + parts_[i], kept = places < static_cast<T>(replaced) ? parts_[i] : there;
      there = places < static_cast<T>(added) ? sum : kept;
    }
  }

 private:
#ifdef __AVX__
  static constexpr int kBytes = 32;
#else
  static constexpr int kBytes = 16;
#endif
  static constexpr int kWidth = kBytes / sizeof(T), kParts = W / kWidth;
  static_assert(W % kWidth == 0);
  using Part [[gnu::vector_size(kBytes), gnu::may_alias, gnu::aligned(sizeof(T))]] = T;

  static const Part& part(const T* v, int i) { return *reinterpret_cast<const Part*>(v + i * kWidth); }

  Part parts_[kParts];
};

}  // namespace skn
