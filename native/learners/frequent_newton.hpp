// SON with Frequent Directions: with vectors written out in double while there are few features, or rows ask
// for it, else in sparse time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/row_loop.hpp"
#include "core/rows.hpp"
#include "core/table.hpp"
#include "curvature/few_features.hpp"
#include "curvature/frequent.hpp"
#include "learners/newton.hpp"

namespace skn {

template <class T>
class FrequentNewton {
 public:
  // `few`: the table of `room` features, in the order of `table.active`; see FewFeatures
  FrequentNewton(const Problem& problem, const NewtonState& state, const Table<T>& table,
                 const FrequentState<T>& sketch, double* few, std::int64_t room)
      : state_(state),
        table_(table),
        sketch_(sketch),
        ignored_(static_cast<std::size_t>(room)),
        few_table_{few, stride(sketch.features.m, sketch.features.every), ignored_.data(), room},
        few_(problem, state, few_table_,
             FewFeatures(few_view(sketch), few_table_, state.counts + kActive, state.alpha)),
        many_(problem, state, table, Frequent<T>(sketch, state.alpha, state.diagonal, room)) {}

  FrequentNewton(FrequentNewton&&) noexcept = default;

  static std::int64_t stride(std::int64_t m, std::int64_t every) {
    return Table<double>::padded(Table<double>::kSketch + FewFeatures::columns(m, every));
  }

  void learn(const Rows& rows, const double* labels, const double* weights, double* out) {
    learn_rows(rows, table_, labels, weights, out, 1,
               [this](const Row& row, double y, double h, double* p) { *p = learn_row(row, y, h); });
  }

  void predict(const Rows& rows, std::int64_t features, double* out) {
    if (!few()) return many_.predict(rows, features, out);
    predict_rows(rows, out, 1, [&](const Row& row, double* p) {
      find(row, features);
      *p = few_.predict_row(places_, few_table_.features);
    });
  }

  std::int64_t active() const { return many_.active(); }
  std::int64_t settled_width() const { return many_.settled_width(); }
  void settled(T* out) { many_.settled(out); }

 private:
  enum { kRounds, kActive, kDimension };

  static FewState few_view(const FrequentState<T>& s) {
    return {s.rule, s.features.m, s.features.every, s.features.counts,   s.shrunk,
            s.lost, s.doubt,      s.spread,         Frequent<T>::kSmall, s.M,
            s.H,    s.c};
  }

  bool few() const { return sketch_.features.counts[FrequentCounts::kFew] != 0; }

  double learn_row(const Row& row, double label, double weight) {
    if (!few()) {
      const double prediction = many_.learn_row(row, label, weight);
      if (!many_.declined()) return prediction;
      write_out();
    }
    if (!take(row, weight != 0)) return many_.learn_row(row, label, weight);
    const double prediction = few_.learn_row(places_, label, weight);
    if (few_.sketch().leaves()) leave();
    return prediction;
  }

  // Where a feature is in the other table, or −1: its first sketch column says so.
  std::int64_t place_of(std::int64_t feature) const {
    const T* const row = table_.row(feature);
    if (row[Table<T>::kScale] == T(0)) return -1;
    const T place = row[Table<T>::kSketch];
    if (!(place >= T(0) && place < static_cast<T>(std::min(active(), few_table_.features)))) return -1;
    const auto at = static_cast<std::int64_t>(place);
    return table_.active[at] == feature ? at : -1;
  }

  // The row in terms of places, without features that have none.
  void find(const Row& row, std::int64_t features) {
    index_.clear();
    value_.clear();
    for (std::int64_t k = 0; k < row.size() && row.index()[k] < features; ++k) {
      const std::int64_t place = place_of(row.index()[k]);
      if (place < 0) continue;
      index_.push_back(place);
      value_.push_back(row.value()[k]);
    }
    places_ = Row(index_.data(), value_.data(), static_cast<std::int64_t>(index_.size()));
  }

  // The same, with places for new features if the row is to be learned. False if there are too many, from
  // where on vectors are no longer written out.
  bool take(const Row& row, bool learned) {
    if (!learned) {
      find(row, table_.features);
      return true;
    }
    const std::int64_t n = row.size();
    std::int64_t unknown = 0;
    index_.resize(static_cast<std::size_t>(n));
    for (std::int64_t k = 0; k < n; ++k) {
      index_[k] = place_of(row.index()[k]);
      unknown += index_[k] < 0;
    }
    if (unknown > 0 && !enter(row, unknown)) {
      leave();
      return false;
    }
    places_ = Row(index_.data(), row.value(), n);
    return true;
  }

  // Places for the features of a row that have none, if there is room.
  bool enter(const Row& row, std::int64_t unknown) {
    std::int64_t place = state_.counts[kActive];  // which counts them when the row is learned
    const FeatureState<T>& s = sketch_.features;
    if (place + unknown > std::min(few_table_.features, FewFeatures::most(s.m, s.every, row.size())))
      return false;
    for (std::int64_t k = 0; k < row.size(); ++k) {
      if (index_[k] >= 0) continue;
      const std::int64_t feature = row.index()[k];
      T* const own = table_.row(feature);
      own[Table<T>::kScale] = T(1);
      own[Table<T>::kSketch] = static_cast<T>(place);
      table_.active[place] = feature;
      index_[k] = place++;
    }
    std::int64_t& dimension = state_.counts[kDimension];
    dimension = std::max(dimension, row.index()[row.size() - 1] + 1);
    return true;
  }

  // The other way round, features in the order in which they came.
  void write_out() {
    const std::int64_t d = active(), width = settled_width();
    std::vector<T> rows(static_cast<std::size_t>(d * width));
    std::vector<double> S;
    many_.settled(rows.data());
    const double largest = many_.sketch().write_out(rows.data(), width, table_.stride, d, S);
    for (std::int64_t i = 0; i < d; ++i) {
      const T* const from = rows.data() + i * width;
      double* const few = few_table_.row(i);
      std::fill_n(few, few_table_.stride, 0.0);
      few[Table<double>::kWeight] = static_cast<double>(from[Table<T>::kWeight]);
      few[Table<double>::kScale] = static_cast<double>(from[Table<T>::kScale]);
      T* const row = table_.row(table_.active[i]);
      std::fill_n(row, table_.stride, T(0));
      row[Table<T>::kScale] = T(1);
      row[Table<T>::kSketch] = static_cast<T>(i);
    }
    many_.sketch().stop();
    FewFeatures few(few_view(sketch_), few_table_, state_.counts + kActive, state_.alpha);
    few.start_from(S, d > 0 ? static_cast<std::int64_t>(S.size()) / d : 0, largest);
  }

  // Directions are turned to the axes of SᵀS, which are orthonormal as they are: the longest become V, the
  // others stand for gradients of the epoch. There are no more of these than there were gradients.
  void leave() {
    FewFeatures few(few_view(sketch_), few_table_, state_.counts + kActive, state_.alpha);
    const std::vector<double> values = few.diagonalise();
    for (std::int64_t i = 0; i < active(); ++i) {
      const double* const from = few_table_.row(i);
      T* const row = table_.row(table_.active[i]);
      std::fill_n(row, table_.stride, T(0));
      row[Table<T>::kWeight] = static_cast<T>(from[Table<double>::kWeight]);
      row[Table<T>::kScale] = static_cast<T>(from[Table<double>::kScale]);
    }
    many_.sketch().start_from(values, few_table_, table_, active());
    std::fill_n(few_table_.rows, few_table_.features * few_table_.stride, 0.0);
  }

  NewtonState state_;
  Table<T> table_;
  FrequentState<T> sketch_;
  std::vector<std::int64_t> ignored_;  // the list of active features of the small table: all, in order
  Table<double> few_table_;
  Newton<double, FewFeatures> few_;
  Newton<T, Frequent<T>> many_;
  Row places_;
  std::vector<std::int64_t> index_;
  std::vector<double> value_;
};

}  // namespace skn
