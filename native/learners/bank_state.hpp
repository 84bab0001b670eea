// The arrays of a bank (bank.hpp): Python owns them, kernels see them through this.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "curvature/delayed_maps.hpp"
#include "learners/bank_full.hpp"
#include "learners/bank_tracking.hpp"

namespace skn {

// How an expert sees a row.
//   as it is;
//   even: if labels are classes, brought to the typical length (the constant stays 1);
//   restless: like that, with a larger constant, which follows classes whose frequencies drift;
//   rare: as it is, but features are divided by mean|x| n^¼ whatever the number of all rows: what was learned
//   of a rare one does not grow while it stays away. Steps are AdaGrad's, 1/√n for each feature, without the
//   sketch. For the squared loss of classes the scores are log odds;
//   averaged: as the next expert, whose weights it has the mean of (`averaging`).
enum View { kPlain, kEven, kRestless, kRare, kViews, kAveraged = kViews };

// Step sizes and how rows are seen: an expert's metric is a + f(U λ Uᵀ), its step `multiplier` long.
struct Expert {
  double steady, root;  // f = steady + root/√t
  double multiplier;
  double view;  // one of View, as all numbers of a model file are

  bool sees(View as) const { return view == static_cast<double>(as); }
};

// Small matrices have rows of ldm (m padded to four) or ldn (n padded to four) doubles.
template <class T>
struct BankState {
  enum { kRounds, kActive, kDimension };
  enum {
    kClock,
    kSquares,
    kRidge,
    kOffset,
    kLow,
    kHigh,
    kSeenLow,
    kSeenHigh,
    kRate,  // of AdaHedge, and the total of its gaps
    kGaps,
    kMissed,  // by how much predictions missed labels in all, and what that is measured against
    kExpected,
    kTotal,  // of counts
    kUsual,  // what the constant expert has learned, above kOffset, and from how many rows
    kUsualRows,
    kNear,  // residuals around 0, and how wide the windows were that they are in (working_response.hpp)
    kWindows,
    kScalars
  };

  // Rows learned from, rank of U, rows in the buffer, its entries, kind of labels, the row that is taken into
  // the sketch next, non-zeros since the last sweep; places of the experts with whole matrices, non-zeros of
  // all rows that they have met, and rows since their weights were computed.
  enum {
    kLearned,
    kRank,
    kFilled,
    kEntries,
    kLabels,
    kNext,
    kTouched,
    kPlaces,
    kNonZeros,
    kWaiting,
    kBankCounts
  };

  enum { kCount, kMean, kEpoch, kTail };  // the last columns of a table row

  // Weights of the table and of maps are held within these bounds, which leaves room for sums of them; labels
  // and importance weights of 10³⁰ and rows 10⁻³⁰ times as long as usual would lead beyond float32's range.
  static constexpr double kHeaviest = sizeof(T) == 4 ? 0x1p100 : 0x1p1000;
  static T held(double weight) { return static_cast<T>(std::clamp(weight, -kHeaviest, kHeaviest)); }
  static constexpr double kNoLength = 1e-200;  // ‖x‖² of rows that are as good as empty

  // What an averaged expert has added to the next one's weights w_t after t rounds, as a share of its own
  // numbers s_t. The mean has weights proportional to t, μ_t = μ_{t−1} + 2/(t + 1) (w_t − μ_{t−1}), so that
  // μ_t − w_t = (t − 1)/(t + 1) (μ_{t−1} − w_{t−1} − Δ_t) for a step Δ_t: it shrinks in every round, whether
  // a row has the feature or not. With s_t = (μ_t − w_t)/averaging(t), which only steps change, s_t = s_{t−1}
  // − ½t(t − 1) Δ_t.
  static double averaging(double t) { return 2.0 / (std::max(t, 1.0) * (t + 1.0)); }

  std::int64_t m, n, experts;  // size of the sketch, of its buffer
  const Expert* expert;
  std::int64_t* counts;       // rounds, active features, dimension
  std::int64_t* bank_counts;  // kLearned …
  double* scalars;            // kClock …
  double* shares;    // v: one per expert, then the constant one, those with whole matrices, the tracking one
  double* lambda;    // ldm
  double* b;         // experts × ldm, see `coordinate`
  double* constant;  // of the feature that is always 1: experts + m numbers; not used without it
  std::int64_t* buffer_index;
  T* buffer_value;
  std::int64_t* buffer_start;  // n + 1
  double* buffer_length;       // n: what the values are to be multiplied with
  double* buffer_c;            // n × ldm: U times the buffer's values
  double* buffer_gram;         // n × ldn: products of the buffer's values
  MapState<T> epochs;
  BankFullState full;
  BankTrackingState tracking;
  double* stack;         // BankStack::kRows × kInputs
  double* first_labels;  // FirstLabels::kNumbers
  bool has_full;         // are there experts with whole matrices for this loss?
  bool has_tracking;     // and one whose weights wander?
  bool intercept;
  double clip;        // bound on predictions
  std::int64_t room;  // entries that the buffer has room for
  std::int64_t lanes = 1;

  // b_kj: those of `lanes` experts stand side by side.
  double& coordinate(std::int64_t k, std::int64_t j, std::int64_t ldm) const {
    return b[(k / lanes * ldm + j) * lanes + k % lanes];
  }
};

}  // namespace skn
