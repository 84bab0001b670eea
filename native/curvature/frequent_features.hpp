// What Frequent Directions keep per feature: its column of V as of some epoch, and its gradients of this one.
//
// A feature that one gradient of an epoch has touched keeps its value in its row of the table until it moves
// on through the epoch's map. Those that several have touched get a slot for all their values, and move on at
// the epoch's end. A row's features are first sorted by what they wait for, without branches: it can hardly
// be foretold, and a wrong guess costs a processor as much as the arithmetic.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/small_matrix.hpp"
#include "core/table.hpp"
#include "curvature/epoch_maps.hpp"
#include "curvature/shrink_rule.hpp"

namespace skn {

template <class T>
struct FeatureState {
  std::int64_t m;
  std::int64_t every;    // rounds of an epoch: as many gradients G has at most
  std::int64_t* counts;  // see FrequentCounts
  std::int64_t* recent;  // the features that have slots
  T* slots;              // ldm each: their columns of G
  std::int64_t* group;   // the features that gradients of the open group of epochs have touched
  EpochState<T> epochs;
  std::int64_t slot_room, group_room;  // how many features `recent` and `slots`, and `group` have room for
};

template <class T>
class FrequentFeatures : private FrequentCounts {
 public:
  explicit FrequentFeatures(const FeatureState<T>& s)
      : s_(s),
        q_(std::max<std::int64_t>(s.m - 1, 1)),
        ldm_(padded4(s.every)),
        slots_end_(bits_of(std::max<std::int64_t>(s.slot_room, 1))),
        shape_{q_, s.every, Table<T>::padded(Table<T>::kSketch + columns(s.m))},
        epochs_(shape_, s.epochs) {
    gains_.push_back(0);
    for (std::int64_t epoch = 0; epoch < EpochState<T>::kGroup; ++epoch)
      for (std::int64_t k = 0; k <= s.every; ++k)
        gains_.push_back(epochs_.gain(epoch, std::min(k, s.every - 1)));
    look_up();
  }

  static std::int64_t columns(std::int64_t m) { return kV + std::max<std::int64_t>(m - 1, 1); }

  std::int64_t row_size() const { return place_[kClasses]; }  // of the row that was gathered
  const EpochShape& shape() const { return shape_; }
  bool full() const { return epochs_.full(); }

  // Σ x_i row_i, as if all features were up to date. Brings them to the start of the open group of epochs, or
  // up to now where gradients of earlier epochs wait, and notes which have gradients of this epoch. Says, as
  // the table does, whether all have been learned from.
  bool gather(const Table<T>& table, const std::int64_t* index, const T* x, std::int64_t n, double* out) {
    table_ = table;
    follow();
    sort(index, x, n);
    moves_.start(3 * n);
    for (std::int64_t i = first(kAsleep); i < last(kAsleep); ++i) wake(table.row(index_[i]));
    for (std::int64_t i = first(kBehind); i < last(kBehind); ++i) catch_up(table.row(index_[i]));
    epochs_.run(moves_);
    return combine<false>(sum_, out);
  }

  // The same once more, with sums in wider numbers.
  template <class Sum>
  void gather_exactly(std::vector<Sum>& early, Sum* out) const {
    combine<true>(early, out);
  }

  template <class Sum>
  Sum square() const {  // ‖x‖²
    Sum sum = 0;
    for (std::int64_t i = 0; i < last(kBehind); ++i) sum += static_cast<Sum>(x_[i]) * static_cast<Sum>(x_[i]);
    return sum;
  }

  void products(std::vector<double>& g) const {  // g = Gx, g of ldm numbers
    std::fill(g.begin(), g.end(), 0.0);
    for (const int single : {kSingleEarly, kSingleLate}) single_products(single, g);
    std::int64_t b = 0;
    for (; b + 12 <= ldm_; b += 12) slot_products<12>(b, &g[b]);
    for (; b < ldm_; b += 4) slot_products<4>(b, &g[b]);
    double sum = 0;
    for (double product : g) sum += product - product;  // 0, or NaN if one is not finite
    if (sum != 0) products_exactly(g);
  }

  template <class Sum>
  void products_exactly(std::vector<Sum>& g) const {
    std::fill(g.begin(), g.end(), Sum(0));
    for (const int single : {kSingleEarly, kSingleLate}) single_products(single, g);
    for (std::int64_t i = first(kSlotEarly); i < last(kSlotLate); ++i) {
      const T* G = slot(sketch(i));
      for (std::int64_t b = 0; b < s_.every; ++b) g[b] += static_cast<Sum>(x_[i]) * static_cast<Sum>(G[b]);
    }
  }

  // The row that was gathered, times `scale`, becomes gradient number `k`.
  void record(std::int64_t k, double scale) {
    const auto value = [scale, x = x_.data()](std::int64_t i) {
      return static_cast<T>(scale * static_cast<double>(x[i]));
    };
    const T kind = static_cast<T>(first_kind_ + k), all = static_cast<T>(first_kind_ + s_.every);
    join(first(kAsleep), last(kFreeEarly));
    if (epochs_.now() == epochs_.group_start()) join(first(kFreeLate), last(kFreeLate));
    const auto touch = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* columns = sketch(i);
        columns[kKind] = kind;
        columns[kValue] = value(i);
      }
    };
    touch(first(kAsleep), last(kFreeEarly));
    touch(first(kFreeLate), last(kBehind));
    for (std::int64_t i = first(kSlotEarly); i < last(kSlotLate); ++i) slot(sketch(i))[k] = value(i);
    for (const int single : {kSingleEarly, kSingleLate})
      for (std::int64_t i = first(single); i < last(single); ++i) {
        if (s_.counts[kRecent] >= s_.slot_room) break;  // no state that was learned
        T* columns = sketch(i);
        const std::int64_t number = s_.counts[kRecent]++, earlier = gradient(columns);
        const T one = columns[kValue];
        s_.recent[number] = index_[i];
        columns[kKind] = all;
        columns[kValue] = static_cast<T>(number);
        T* G = slot(columns);
        std::fill(G, G + ldm_, T(0));
        G[earlier] = one;
        G[k] = value(i);
      }
  }

  // All that was put off, for one feature. A gradient of this epoch keeps waiting.
  void settle(T* row) {
    follow();
    T* columns = row + Table<T>::kSketch;
    const T kind = columns[kKind], value = columns[kValue];
    const bool waits = kind >= static_cast<T>(first_kind_);
    if (waits) columns[kKind] = columns[kValue] = T(0);
    moves_.start(4);
    if (columns[kEpoch] < static_cast<T>(epochs_.group_start())) wake(row);
    catch_up(row);
    epochs_.run(moves_);
    if (waits) columns[kKind] = kind, columns[kValue] = value;
  }

  // What the table does not show of a feature: its column of G.
  void extra(const T* row, T* out) {
    follow();
    std::fill(out, out + s_.every, T(0));
    const T* columns = row + Table<T>::kSketch;
    const std::int64_t k = gradient(columns);
    if (k == s_.every)
      std::copy_n(slot(columns), s_.every, out);
    else if (k >= 0)
      out[k] = columns[kValue];
  }

  // Features with slots move on at once, all of the group when it is full.
  void end_epoch(const Table<T>& table, const T* map) {
    epochs_.push(map);
    bound();
    const std::int64_t gain = epochs_.gain(epochs_.now() - 1 - epochs_.group_start(), 0);
    for (std::int64_t i = 0; i < s_.counts[kRecent]; ++i) {
      T* row = table.row(s_.recent[i]);
      T* columns = row + Table<T>::kSketch;
      const T* G = slot(columns);
      const std::int64_t from = since(columns);
      columns[kEpoch] = static_cast<T>(epochs_.now());
      columns[kKind] = columns[kValue] = T(0);
      epochs_.catch_up(from, gain, G, row);
    }
    s_.counts[kFilled] = s_.counts[kRecent] = 0;
    if (epochs_.group_is_full()) end_group(table);
    look_up();
  }

  // All features are brought up to date, and the count of maps starts again. Adds VVᵀ to the lower triangle
  // of K.
  void sweep(const Table<T>& table, std::int64_t active, const Small& K) {
    const std::int64_t k = s_.counts[kRank];
    std::vector<double> z(kAtOnce * K.ld, 0.0);
    for (std::int64_t start = 0; start < active; start += kAtOnce) {
      const std::int64_t stop = std::min(start + kAtOnce, active);
      table.prefetch(table.active + stop, std::min(kAtOnce, active - stop));
      moves_.start(4 * kAtOnce);
      for (std::int64_t i = start; i < stop; ++i) {
        T* row = table.row(table.active[i]);
        if (row[Table<T>::kSketch + kEpoch] < static_cast<T>(epochs_.group_start())) wake(row);
        catch_up(row);
        row[Table<T>::kSketch + kEpoch] = T(0);
      }
      epochs_.run(moves_);
      for (std::int64_t i = start; i < stop; ++i) {
        const T* v = table.row(table.active[i]) + EpochShape::kHead;
        for (std::int64_t j = 0; j < k; ++j) z[(i - start) * K.ld + j] = static_cast<double>(v[j]);
      }
      for (std::int64_t j = 0; j < k; ++j)
        for (std::int64_t c = 0; c <= j; c += 4)
          add_products(z.data() + j, z.data() + c, stop - start, K, j, c);
    }
    restart();
    s_.counts[kMet] = 0;
  }

  // No feature waits for anything.
  void restart() {
    epochs_.restart();
    s_.counts[kMembers] = s_.counts[kRecent] = 0;
    look_up();
  }

  void push(const T* map) {
    epochs_.push(map);
    look_up();
  }

  // A feature that has gone through no map yet, with its column of G, of which only the first `count` are
  // not zero.
  void start(const Table<T>& table, std::int64_t feature, const double* G, std::int64_t count) {
    if (s_.counts[kRecent] >= s_.slot_room || s_.counts[kMembers] >= s_.group_room) return;
    const std::int64_t number = s_.counts[kRecent]++;
    T* const columns = table.row(feature) + Table<T>::kSketch;
    s_.group[s_.counts[kMembers]++] = s_.recent[number] = feature;
    columns[kKind] = static_cast<T>(first_kind_ + s_.every);
    columns[kValue] = static_cast<T>(number);
    std::fill_n(slot(columns), ldm_, T(0));
    for (std::int64_t b = 0; b < count; ++b) slot(columns)[b] = static_cast<T>(G[b]);
  }

 private:
  // Columns of the table. Kind 0: nothing waits. 1 + (every + 1)e + k: the value in gradient k of epoch e
  // of the open group; k = every stands for all gradients of the epoch, and the value is the number of a
  // slot.
  enum { kEpoch, kKind, kValue, kV };
  static_assert(Table<T>::kSketch + kV == EpochShape::kHead);
  static constexpr std::int64_t kAtOnce = 32, kByte = 255;
  static constexpr std::int64_t kRun = 32;  // short sums in T, long ones in double, as in the table

  // What a feature of a row waits for, in the order in which they are sorted: until kSlotEarly they stand at
  // the start of the group once they have moved, from kSlotLate on at now. Free ones have no gradient of this
  // epoch yet, single ones one, those with slots more.
  enum {
    kAsleep,
    kFreeEarly,
    kSingleEarly,
    kSlotEarly,
    kSlotLate,
    kSingleLate,
    kFreeLate,
    kBehind,
    kClasses
  };

  T* sketch(std::int64_t i) const { return table_.row(index_[i]) + Table<T>::kSketch; }
  // Numbers of a table become places in memory here alone, and none that there is not. Those from 0 on are in
  // the order of their bits, with all others behind them, NaN too: comparing those takes no branch, and none
  // of the units that conversions wait for.
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static Bits bits(T number) { return std::bit_cast<Bits>(number); }
  static Bits bits_of(std::int64_t number) { return bits(static_cast<T>(number)); }
  static std::int64_t place(Bits number, Bits least, Bits end) {
    return static_cast<std::int64_t>(std::bit_cast<T>(number - least < end - least ? number : least));
  }
  T* slot(const T* columns) const { return s_.slots + place(bits(columns[kValue]), 0, slots_end_) * ldm_; }
  std::int64_t kind(const T* columns) const { return place(bits(columns[kKind]), 0, kinds_end_); }
  std::int64_t gradient(const T* columns) const { return kind(columns) - first_kind_; }
  // Of a feature that is awake, and of one that is not.
  std::int64_t since(const T* columns) const { return place(bits(columns[kEpoch]), start_bits_, now_end_); }
  std::int64_t asleep_since(const T* columns) const { return place(bits(columns[kEpoch]), 0, start_bits_); }

  std::int64_t first(int of) const { return place_[of]; }
  std::int64_t last(int of) const { return place_[of + 1]; }

  // The state is an array that others may have learned with or restored: what was looked up may be of old.
  void follow() {
    if (epochs_.now() != now_ || epochs_.group_start() != start_) look_up();
  }

  void bound() {  // the epochs that features may stand at
    start_bits_ = bits_of(epochs_.group_start());
    now_end_ = bits_of(epochs_.now() + 1);
  }

  // Tables for sort(): what waits by kind, and the class by what waits and by how the feature's epoch
  // compares with the group's start and with now.
  void look_up() {
    now_ = epochs_.now();
    start_ = epochs_.group_start();
    const bool opening = epochs_.now() == epochs_.group_start();
    first_kind_ = 1 + (s_.every + 1) * (epochs_.now() - epochs_.group_start());
    waits_.assign(static_cast<std::size_t>(first_kind_ + s_.every + 1), 1);
    waits_[0] = 0;
    std::fill(waits_.begin() + first_kind_, waits_.end(), 2);
    waits_.back() = s_.slot_room > 0 ? 3 : 0;
    kinds_end_ = bits_of(static_cast<std::int64_t>(waits_.size()));
    bound();
    const std::uint8_t standing[4][4] = {{kAsleep, kFreeEarly, kBehind, kFreeLate},
                                         {kAsleep, kBehind, kBehind, kBehind},
                                         {kAsleep, kSingleEarly, kSingleLate, kSingleLate},
                                         {kAsleep, kSlotEarly, kSlotLate, kSlotLate}};
    for (int w = 0; w < 4; ++w)
      for (int e = 0; e < 4; ++e) class_[4 * w + e] = 8 * standing[w][opening && e == 2 ? 3 : e];
  }

  // A counting sort. Eight counters of a byte each share a register, since adding to one in memory takes
  // longer than all else that is done for a feature.
  void sort(const std::int64_t* index, const T* x, std::int64_t n) {
    if (static_cast<std::int64_t>(index_.size()) < n) {
      index_.resize(static_cast<std::size_t>(n));
      x_.resize(static_cast<std::size_t>(n));
      classes_.resize(static_cast<std::size_t>(n));
    }
    std::uint8_t* const classes = classes_.data();
    const std::uint8_t* const waits = waits_.data();
    // Read once: the loop writes bytes, and those might be anything.
    const Bits now = bits_of(epochs_.now()), start = start_bits_, kinds_end = kinds_end_;
    const T* const columns = table_.rows + Table<T>::kSketch;
    const std::int64_t stride = table_.stride;
    std::int64_t next[kClasses] = {}, sum = 0;
    for (std::int64_t begin = 0; begin < n; begin += kByte) {
      std::uint64_t counts = 0;
      for (std::int64_t i = begin; i < std::min(begin + kByte, n); ++i) {
        const T* const row = columns + index[i] * stride;
        const Bits epoch = bits(row[kEpoch]);
        const int stands = (epoch >= start) + (epoch > start) + (epoch == now);
        classes[i] = class_[4 * waits[place(bits(row[kKind]), 0, kinds_end)] + stands];
        counts += std::uint64_t(1) << classes[i];
      }
      for (int c = 0; c < kClasses; ++c) next[c] += static_cast<std::int64_t>(counts >> 8 * c & kByte);
    }
    for (int c = 0; c < kClasses; ++c) {
      place_[c] = sum;
      sum += next[c];
      next[c] = place_[c];
    }
    place_[kClasses] = n;
    std::int64_t* const sorted = index_.data();
    T* const sorted_x = x_.data();
    for (std::int64_t begin = 0; begin < n; begin += kByte) {
      std::uint64_t counts = 0;
      for (std::int64_t i = begin; i < std::min(begin + kByte, n); ++i) {
        const int c = classes[i];
        const std::int64_t at = next[c >> 3] + static_cast<std::int64_t>(counts >> c & kByte);
        counts += std::uint64_t(1) << c;
        sorted[at] = index[i];
        sorted_x[at] = x[i];
      }
      for (int c = 0; c < kClasses; ++c) next[c] += static_cast<std::int64_t>(counts >> 8 * c & kByte);
    }
  }

  // Four entries of row j of K, in a register for as many features as there are at once.
  static void add_products(const double* z, const double* others, std::int64_t count, const Small& K,
                           std::int64_t j, std::int64_t c) {
    Four sum = four(K.row(j) + c);
    for (std::int64_t i = 0; i < count; ++i) sum += z[i * K.ld] * four(others + i * K.ld);
    four(K.row(j) + c) = sum;
  }

  void join(std::int64_t begin, std::int64_t end) {  // the group
    const std::int64_t count = std::min(end - begin, s_.group_room - s_.counts[kMembers]);
    std::copy_n(index_.data() + begin, count, s_.group + s_.counts[kMembers]);
    s_.counts[kMembers] += count;
  }

  void end_group(const Table<T>& table) {
    const std::int64_t members = s_.counts[kMembers];
    for (std::int64_t start = 0; start < members; start += kAtOnce) {
      const std::int64_t stop = std::min(start + kAtOnce, members);
      table.prefetch(s_.group + stop, std::min(kAtOnce, members - stop));
      moves_.start(kAtOnce);
      for (std::int64_t i = start; i < stop; ++i) catch_up(table.row(s_.group[i]));
      epochs_.run(moves_);
    }
    s_.counts[kMembers] = 0;
    epochs_.close_group();
  }

  // From a closed group of epochs to the start of the open one.
  void wake(T* row) {
    T* columns = row + Table<T>::kSketch;
    if (row[Table<T>::kScale] != T(0)) epochs_.wake(asleep_since(columns), row, moves_);
    columns[kEpoch] = static_cast<T>(epochs_.group_start());
  }

  // From an epoch of the open group up to now. A gradient that waits joins.
  void catch_up(T* row) {
    T* columns = row + Table<T>::kSketch;
    epochs_.catch_up(since(columns), gains_[kind(columns)], columns[kValue], row, moves_);
    columns[kEpoch] = static_cast<T>(epochs_.now());
    columns[kKind] = columns[kValue] = T(0);
  }

  // Features that stand at the start of the group move on together.
  template <bool kExactly, class Sum>
  bool combine(std::vector<Sum>& early, Sum* out) const {
    const std::int64_t middle = epochs_.now() == epochs_.group_start() ? 0 : last(kSlotEarly);
    bool known = gather_part<kExactly>(middle, last(kBehind), out);
    if (middle == 0) return known;
    early.resize(static_cast<std::size_t>(table_.stride));
    known &= gather_part<kExactly>(0, middle, early.data());
    out[Table<T>::kWeight] += early[Table<T>::kWeight];
    const T* map = epochs_.since_group_start();
    for (std::int64_t k = 0; k < q_; ++k, map += shape_.width) {
      const Sum zk = early[EpochShape::kHead + k];
      for (std::int64_t c = 0; c < shape_.width; ++c) out[c] += zk * static_cast<Sum>(map[c]);
    }
    return known;
  }

  template <bool kExactly, class Sum>
  bool gather_part(std::int64_t begin, std::int64_t end, Sum* out) const {
    if constexpr (!kExactly) return table_.gather(index_.data() + begin, x_.data() + begin, end - begin, out);
    table_.gather_exactly(index_.data() + begin, x_.data() + begin, end - begin, out);
    return true;  // nobody asks
  }

  template <class Sum>
  void single_products(int single, std::vector<Sum>& g) const {
    for (std::int64_t i = first(single); i < last(single); ++i) {
      const T* columns = sketch(i);
      g[gradient(columns)] += static_cast<Sum>(x_[i]) * static_cast<Sum>(columns[kValue]);
    }
  }

  template <int W>
  void slot_products(std::int64_t column, double* g) const {
    for (std::int64_t start = first(kSlotEarly); start < last(kSlotLate); start += kRun) {
      const std::int64_t stop = std::min(start + kRun, last(kSlotLate));
      T sum[W] = {};
      for (std::int64_t i = start; i < stop; ++i) {
        const T *G = slot(sketch(i)) + column, x = x_[i];
        for (int b = 0; b < W; ++b) sum[b] += x * G[b];
      }
      for (int b = 0; b < W; ++b) g[b] += static_cast<double>(sum[b]);
    }
  }

  FeatureState<T> s_;
  std::int64_t q_, ldm_;
  Bits slots_end_;
  EpochShape shape_;
  EpochMaps<T> epochs_;
  std::vector<std::int64_t> gains_;   // by kind
  std::int64_t now_ = 0, start_ = 0;  // when the following were looked up
  std::int64_t first_kind_ = 1;       // of gradient 0 of this epoch
  Bits kinds_end_ = bits_of(1);       // of those that there are now
  Bits start_bits_ = 0, now_end_ = bits_of(1);
  std::vector<std::uint8_t> waits_;
  std::uint8_t class_[16];  // times eight
  // Of the row that was gathered, sorted by class:
  Table<T> table_{};
  std::vector<std::int64_t> index_;
  std::vector<T> x_;
  std::vector<std::uint8_t> classes_;  // in the row's own order
  std::int64_t place_[kClasses + 1] = {};
  Moves<T> moves_;
  std::vector<double> sum_;
};

}  // namespace skn
