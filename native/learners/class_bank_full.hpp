// The experts with whole matrices of a bank of classes (class_bank.hpp): least squares, each class against
// the rest, as bank_full.hpp has them for two.
//
// The moments A = Σ γ^age h xxᵀ are the same for all classes: one factorisation gives the weights of all. Of
// b_k = Σ γ^age h y x, y = ±1, only the rows of each class and those of all classes are summed up, so that a
// row costs no more for many classes than for two.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/rows.hpp"
#include "core/small_matrix.hpp"
#include "learners/mean_ridge.hpp"
#include "learners/score_odds.hpp"

namespace skn {

struct ClassFullState {
  static constexpr std::int64_t kMemories = 3;
  enum { kUnit, kSize, kScale };  // of a place: a power of two near its first value, its mean size
  static constexpr std::int64_t kOdds = ScoreOdds::kNumbers;

  std::int64_t* places;     // in use; −1: there are too many features
  std::int64_t* non_zeros;  // of all rows so far
  std::int64_t* waiting;    // rows since weights were computed
  std::int64_t* features;   // room
  double* units;            // room × kScale
  double* weights;          // room × kMemories × classes
  double* moments;          // packed(room)
  double* sums;             // room × kMemories × (classes + 1): Σ γ^age h x of each class, and of all
  double* odds;             // kMemories × classes × kOdds
  double* lift;             // kMemories: γ^−rows
  std::int64_t room;        // places that there is memory for
  std::int64_t classes;
  bool intercept;

  // Place j has A_0j … A_jj of each expert.
  static std::int64_t packed(std::int64_t places) { return kMemories * (places * (places + 1) / 2); }
};

class ClassFull {
  using State = ClassFullState;

 public:
  static constexpr std::int64_t kMemories = State::kMemories;
  static constexpr std::array<double, kMemories> kForget = {1.0, 0.999, 0.99};  // γ
  static constexpr std::int64_t kMost = 128;                                    // features

  explicit ClassFull(const ClassFullState& state)
      : s_(state), K_(state.classes), score_(static_cast<std::size_t>(kMemories * state.classes)) {
    for (std::int64_t i = 1; i < places(); ++i) known_.emplace_back(s_.features[i], i);
    std::sort(known_.begin(), known_.end());
  }

  bool alive() const { return places() >= 0; }
  // The log odds of class k.
  double odds(std::int64_t g, std::int64_t k) const {
    return ScoreOdds::of(s_.odds + (g * K_ + k) * State::kOdds, held(g, k));
  }

  // The scores of a row.
  void look(const Row& row) {
    std::fill(score_.begin(), score_.end(), 0.0);
    if (places() <= 0) return;
    find(row);
    const std::int64_t wide = kMemories * K_;
    for (const auto& [place, value] : found_) axpy(value, s_.weights + place * wide, score_.data(), wide);
  }

  // How many places rows may need: those in use, and new features up to as many as there may be.
  std::int64_t needs(const Rows& rows) const {
    std::vector<std::int64_t> fresh;
    RowReader reader(rows);
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      const Row row = reader[i];
      for (std::int64_t k = 0; k < row.size(); ++k) {
        const std::int64_t feature = row.index()[k];
        if (place_of(feature) > 0) continue;
        const auto at = std::lower_bound(fresh.begin(), fresh.end(), feature);
        if (at != fresh.end() && *at == feature) continue;
        fresh.insert(at, feature);
        if (static_cast<std::int64_t>(known_.size() + fresh.size()) > kMost) return kMost + 1;
      }
    }
    return 1 + static_cast<std::int64_t>(known_.size() + fresh.size());
  }

  // Learns the row that was looked at, as number `rows`; `sizes` are the mean sizes of its features so far.
  // Returns false if there are too many features now: then these experts are no more.
  template <class T>
  bool learn(const Row& row, const T* sizes, std::int64_t label, double h, std::int64_t rows) {
    *s_.non_zeros += row.size();
    if (!all_known(row)) {
      if (!enter(row, rows)) {
        *s_.places = -1;
        return false;
      }
      find(row);
    }
    const std::size_t first = s_.intercept ? 1 : 0;
    for (std::size_t i = 0; i + first < found_.size(); ++i)
      s_.units[found_[i + first].first * State::kScale + State::kSize] = static_cast<double>(sizes[i]);
    for (std::int64_t g = 0; g < kMemories; ++g)
      for (std::int64_t k = 0; k < K_; ++k)
        ScoreOdds::learn(s_.odds + (g * K_ + k) * State::kOdds, held(g, k), k == label ? 1.0 : -1.0, h,
                         static_cast<double>(rows));
    add(label, h);
    if (++*s_.waiting < std::min(1 + rows / kOften, std::max(kBlock, places() / 4))) return true;
    *s_.waiting = 0;
    for (std::int64_t g = 0; g < kMemories; ++g) solve(g);
    return true;
  }

 private:
  static constexpr std::int64_t kFew = 64, kDense = 8;  // features that are few; features for each non-zero
  // Weights are computed for every row at first, for every second from here on, … at most so many apart.
  static constexpr std::int64_t kOften = 32, kBlock = 8;
  static constexpr double kLeast = 1e-90;   // size of values: squares times 10³⁰ and γ^−rows are in range
  static constexpr double kLargest = 1e10;  // of γ^−rows, before it starts again
  static constexpr double kHuge = 1e150;    // of weights
  static constexpr double kLongest = 1e4;   // weight of a row, for what is forgotten
  static constexpr double kLost = 1e-13;    // share of a pivot that is rounding

  std::int64_t places() const { return *s_.places; }
  double held(std::int64_t g, std::int64_t k) const {
    return std::clamp(score_[static_cast<std::size_t>(g * K_ + k)], -1.0, 1.0);
  }
  double* column(std::int64_t g, std::int64_t j) const {  // A_0j … A_jj
    return s_.moments + State::packed(j) + g * (j + 1);
  }
  double* sums(std::int64_t g, std::int64_t j) const { return s_.sums + (j * kMemories + g) * (K_ + 1); }

  std::int64_t place_of(std::int64_t feature) const {
    const auto at = std::lower_bound(known_.begin(), known_.end(), std::pair(feature, std::int64_t{0}));
    return at != known_.end() && at->first == feature ? at->second : -1;
  }

  // The places of the row's features that have one, and their values in the units of the places.
  void find(const Row& row) {
    found_.clear();
    if (s_.intercept) found_.emplace_back(0, 1.0);
    auto at = known_.begin();
    for (std::int64_t k = 0; k < row.size(); ++k) {
      const std::int64_t feature = row.index()[k];
      if (at == known_.end() || at->first != feature)
        at = std::lower_bound(at, known_.end(), std::pair(feature, std::int64_t{0}));
      if (at == known_.end()) break;
      if (at->first != feature) continue;
      found_.emplace_back(at->second, row.value()[k] / s_.units[at->second * State::kScale + State::kUnit]);
      ++at;
    }
  }

  // Had all features of the row that was looked at a place?
  bool all_known(const Row& row) const {
    return places() > 0 && static_cast<std::int64_t>(found_.size()) == row.size() + (s_.intercept ? 1 : 0);
  }

  // Places for features that are met for the first time, as long as they are few, or few for rows this dense.
  bool enter(const Row& row, std::int64_t rows) {
    if (places() == 0 && !open(0, 1.0)) return false;
    const std::size_t before = known_.size();
    for (std::int64_t k = 0; k < row.size(); ++k)
      if (place_of(row.index()[k]) < 0 && !open(row.index()[k], row.value()[k])) return false;
    const auto now = static_cast<std::int64_t>(known_.size());
    return known_.size() == before || now <= kFew || now * rows <= kDense * *s_.non_zeros;
  }

  bool open(std::int64_t feature, double value) {
    const std::int64_t place = places();
    if (place >= s_.room || place > kMost) return false;
    const double size = std::max(std::abs(value), kLeast);
    s_.features[place] = feature;
    s_.units[place * State::kScale + State::kUnit] = std::exp2(std::round(std::log2(size)));
    s_.units[place * State::kScale + State::kSize] = size;
    std::fill_n(s_.weights + place * kMemories * K_, kMemories * K_, 0.0);
    std::fill_n(sums(0, place), kMemories * (K_ + 1), 0.0);
    std::fill_n(column(0, place), kMemories * (place + 1), 0.0);
    if (place == 0) {
      start();
    } else {
      const std::pair entry(feature, place);
      known_.insert(std::lower_bound(known_.begin(), known_.end(), entry), entry);
    }
    ++*s_.places;
    return true;
  }

  void start() {
    *s_.waiting = 0;
    std::fill_n(s_.lift, kMemories, 1.0);
    for (std::int64_t i = 0; i < kMemories * K_; ++i)
      ScoreOdds::start(s_.odds + i * State::kOdds, s_.intercept);
  }

  // The moments take in the row that was found.
  void add(std::int64_t label, double h) {
    const std::int64_t n = places();
    const bool dense = 2 * static_cast<std::int64_t>(found_.size()) > n;
    if (dense) {
      x_.assign(static_cast<std::size_t>(n), 0.0);
      for (const auto& [place, value] : found_) x_[static_cast<std::size_t>(place)] = value;
    }
    for (std::int64_t g = 0; g < kMemories; ++g) {
      double& lift = s_.lift[g];
      lift *= std::pow(kForget[static_cast<std::size_t>(g)], -std::min(h, kLongest));
      if (lift > kLargest) lower(g, lift);
      for (const auto& [j, xj] : found_) {
        double* const A = column(g, j);
        const double scaled = h * lift * xj;
        if (dense) {
          axpy(scaled, x_.data(), A, j + 1);
        } else {
          for (const auto& [i, xi] : found_)
            if (i <= j) A[i] += scaled * xi;
        }
        sums(g, j)[label] += scaled;
        sums(g, j)[K_] += scaled;
      }
    }
  }

  // The moments in a smaller unit.
  void lower(std::int64_t g, double& lift) {
    for (std::int64_t j = 0; j < places(); ++j) {
      for (std::int64_t i = 0; i <= j; ++i) column(g, j)[i] /= lift;
      for (std::int64_t k = 0; k <= K_; ++k) sums(g, j)[k] /= lift;
    }
    lift = 1.0;
  }

  // Rows k … k + 3 of R, and what they leave of the rows below. Whole fours are worked on: what is left of
  // the diagonal is never read.
  void eliminate(const Small& R, std::int64_t k, std::int64_t n, double per, std::int64_t g) {
    const std::int64_t end = std::min(k + 4, n);
    for (std::int64_t i = k; i < end; ++i) {
      double* const row = R.row(i);
      for (std::int64_t p = k; p < i; ++p)
        if (R.at(p, i) != 0) axpy(-R.at(p, i), R.row(p) + k, row + k, R.ld - k);
      const bool lost = !(row[i] > kLost * per * column(g, i)[i]);
      const double root = lost ? 0.0 : 1.0 / std::sqrt(row[i]);
      for (std::int64_t c = i; c < R.ld; ++c) row[c] *= root;
    }
    static constexpr double kNone[4] = {};
    const double* const p[4] = {R.row(k), k + 1 < n ? R.row(k + 1) : kNone, k + 2 < n ? R.row(k + 2) : kNone,
                                k + 3 < n ? R.row(k + 3) : kNone};
    for (std::int64_t i = end; i < n; ++i) {  // only if all four are there
      double* const row = R.row(i);
      const double s0 = p[0][i], s1 = p[1][i], s2 = p[2][i], s3 = p[3][i];
      for (std::int64_t c = i / 4 * 4; c < R.ld; c += 4)
        four(row + c) -=
            s0 * four(p[0] + c) + s1 * four(p[1] + c) + (s2 * four(p[2] + c) + s3 * four(p[3] + c));
    }
  }

  // w_k = (A + ridge)⁻¹b_k by RᵀR = A + ridge, for all classes at once. A pivot that rounding has eaten
  // belongs to a feature that depends on those before it: its weight is 0.
  void solve(std::int64_t g) {
    const std::int64_t n = places(), ld = padded4(n);
    R_.resize(static_cast<std::size_t>(n * ld));
    B_.resize(static_cast<std::size_t>(n * K_));
    const double per = 1.0 / s_.lift[g];
    const Small R{R_.data(), ld}, B{B_.data(), K_};
    const double rows = per * column(g, 0)[0];  // none without an intercept
    const double row = rows > 0 ? of_a_row(rows, static_cast<double>(n)) : 0.0;
    mean_.resize(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) mean_[j] = rows > 0 ? per * column(g, j)[0] / rows : 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double* const A = column(g, j);
      for (std::int64_t i = 0; i <= j; ++i) R.at(i, j) = per * A[i] + row * mean_[i] * mean_[j];
      for (std::int64_t i = n; i < ld; ++i) R.at(j, i) = 0.0;
      for (std::int64_t i = j / 4 * 4; i < j; ++i) R.at(j, i) = 0.0;
      const double* const sum = sums(g, j);
      for (std::int64_t k = 0; k < K_; ++k) B.at(j, k) = per * (2.0 * sum[k] - sum[K_]);
      const double* its = s_.units + j * State::kScale;
      const double size = its[State::kSize] / its[State::kUnit];
      if (j > 0 || rows == 0)
        R.at(j, j) += mean_ridge(size * size, per * A[j], per * A[0], rows, static_cast<double>(n));
    }
    for (std::int64_t k = 0; k < n; k += 4) eliminate(R, k, n, per, g);
    for (std::int64_t k = 0; k < n; ++k) {
      divide(B.row(k), R.at(k, k));
      for (std::int64_t i = k + 1; i < n; ++i) axpy(-R.at(k, i), B.row(k), B.row(i), K_);
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      for (std::int64_t i = k + 1; i < n; ++i) axpy(-R.at(k, i), B.row(i), B.row(k), K_);
      divide(B.row(k), R.at(k, k));
    }
    if (!std::all_of(B_.begin(), B_.end(), [](double w) { return std::abs(w) < kHuge; })) return;
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(B.row(i), K_, s_.weights + (i * kMemories + g) * K_);
  }

  void divide(double* row, double pivot) const {
    for (std::int64_t k = 0; k < K_; ++k) row[k] = pivot > 0 ? row[k] / pivot : 0.0;
  }

  ClassFullState s_;
  std::int64_t K_;
  std::vector<std::pair<std::int64_t, std::int64_t>> known_;  // features and their places, sorted
  std::vector<std::pair<std::int64_t, double>> found_;
  std::vector<double> score_, x_, R_, B_, mean_;
};

}  // namespace skn
