// An expert of a bank (bank.hpp) that follows classes whose meaning drifts: dynamic logistic regression
// (West, Harrison and Migon 1985), while the experts with whole matrices (bank_full.hpp) are there and
// features are fewer still.
//
// Weights are believed to wander: w ~ N(w, C), and with every row C ← (1 − ε)C + εI. So C never falls to 0,
// and the expert goes on learning at a speed that suits each direction: fast where rows tell little, slowly
// where they tell much. Least squares that forget (γ < 1) lose what they know of all directions alike.
//
// Features are counted from their means and divided by their spread, both over all rows so far
// (mean_ridge.hpp), so that a drift of 1 means the same for each of them. They are known as of the end of the
// last block of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"
#include "core/small_matrix.hpp"
#include "learners/bank_full.hpp"

namespace skn {

struct BankTrackingState {
  enum { kWeight, kCentre, kPer, kNumbers };  // of a place, in its unit: per is one over the spread

  std::int64_t* places;  // in use, those of the experts with whole matrices; −1: the expert has left
  double* weights;       // room × kNumbers
  double* covariance;    // packed(room)
  std::int64_t room;

  // Row i of C has C_i0 … C_ii and what else is in the four columns around the diagonal, so that rows come in
  // fours of one length and a place more leaves the others where they are. Columns not in use are 0.
  static std::int64_t packed(std::int64_t places) {
    const std::int64_t fours = places / 4, rest = places % 4;
    return 8 * fours * (fours + 1) + 4 * rest * (fours + 1);
  }
};

class BankTracking {
  using State = BankTrackingState;

 public:
  static constexpr std::int64_t kMost = 128;  // features

  explicit BankTracking(const BankTrackingState& state) : s_(state) {}

  bool alive() const { return places() >= 0; }
  void leave() { *s_.places = -1; }
  // Places for which there is memory.
  std::int64_t room() const { return s_.room; }

  // In [−1, 1]: how much likelier +1 is than −1 for the row that `full` looks at.
  double look(const BankFull& full) {
    u_.assign(static_cast<std::size_t>(padded4(places())), 0.0);
    const double* its = s_.weights;
    for (std::int64_t i = 0; i < places(); ++i, its += State::kNumbers)
      u_[i] = held(-its[State::kCentre] * its[State::kPer]);
    for (const auto& [place, value] : full.found()) {
      if (place >= places()) continue;
      its = s_.weights + place * State::kNumbers;
      u_[place] = held((value - its[State::kCentre]) * its[State::kPer]);
    }
    double odds = 0;
    for (std::int64_t i = 0; i < places(); ++i) odds += s_.weights[i * State::kNumbers] * u_[i];
    chances_ = Sigmoids(odds);
    return chances_.up - chances_.down;
  }

  // Learns the row that was looked at, which `full` has learned: y in [−1, 1], of weight h. Returns false if
  // there are too many features now: then it has learned nothing, and is to leave.
  bool learn(const BankFull& full, double y, double h) {
    if (full.places() > std::min(s_.room, 1 + kMost)) return false;
    if (full.places() > places()) {
      open(full);
      look(full);
    }
    step(h * (0.5 + 0.5 * y - chances_.up), h * chances_.up * chances_.down, h);
    if (full.block_ended()) measure(full);
    return true;
  }

 private:
  static constexpr double kDrift = 5e-5;        // ε
  static constexpr double kLeastDrift = 1e-12;  // of rows that hardly count: keeps C positive definite
  static constexpr double kWild = 16;           // spreads that a value is off at most, as in bank.hpp
  static constexpr double kLargest = 1e6;       // weight, far beyond what is learned

  std::int64_t places() const { return *s_.places; }
  double* row(std::int64_t i) const { return s_.covariance + State::packed(i); }
  static double held(double value) { return std::clamp(value, -kWild, kWild); }

  // Newton's step, with Böhning's bound of the curvature, ¼, along the way, so that it never overshoots.
  void step(double slope, double curvature, double h) {
    spread();
    const double q = std::max(0.0, dot(u_.data(), v_.data(), static_cast<std::int64_t>(v_.size())));
    const double by = slope / (1.0 + 0.25 * h * q);
    for (std::int64_t i = 0; i < places(); ++i) {
      double& w = s_.weights[i * State::kNumbers];
      w = std::clamp(w + by * v_[i], -kLargest, kLargest);
    }
    const double drift = std::max(kLeastDrift, h * kDrift / (1.0 + h * kDrift));
    shrink(1.0 - drift, (1.0 - drift) * curvature / (1.0 + curvature * q), drift);
  }

  // v = Cu
  void spread() {
    const std::int64_t n = places();
    v_.assign(u_.size(), 0.0);
    for (std::int64_t i = 0; i < n; i += 4) {
      const std::int64_t ld = i + 4;
      if (i + 4 > n) {
        for (std::int64_t k = i; k < n; ++k) spread(row(k), k, i);
        continue;
      }
      const double *r0 = row(i), *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
      const double u0 = u_[i], u1 = u_[i + 1], u2 = u_[i + 2], u3 = u_[i + 3];
      Four s[4] = {};
      for (std::int64_t j = 0; j < i; j += 4) {
        const Four u = four(&u_[j]), c0 = four(r0 + j), c1 = four(r1 + j), c2 = four(r2 + j),
                   c3 = four(r3 + j);
        s[0] += c0 * u;
        s[1] += c1 * u;
        s[2] += c2 * u;
        s[3] += c3 * u;
        four(&v_[j]) += (u0 * c0 + u1 * c1) + (u2 * c2 + u3 * c3);
      }
      Four sums;
      totals(s, sums);
      four(&v_[i]) +=
          sums + ((u0 * four(r0 + i) + u1 * four(r1 + i)) + (u2 * four(r2 + i) + u3 * four(r3 + i)));
    }
  }

  // The same for row k, of the four from `first` on.
  void spread(const double* its, std::int64_t k, std::int64_t first) {
    v_[k] += dot(its, u_.data(), first);
    axpy(u_[k], its, v_.data(), first + 4);
  }

  // C ← keep C − by vvᵀ + drift I, with a root of `by` on either side of vvᵀ, so that C stays symmetric to
  // the bit.
  void shrink(double keep, double by, double drift) {
    const double root = std::sqrt(by);
    for (double& v : v_) v *= root;
    for (std::int64_t k = 0; k < places(); ++k) {
      double* const its = row(k);
      const double times = v_[k];
      for (std::int64_t j = 0; j <= k; j += 4) four(its + j) = keep * four(its + j) - times * four(&v_[j]);
      its[k] += drift;
    }
  }

  // Places for features that were met for the first time.
  void open(const BankFull& full) {
    for (std::int64_t place = places(); place < full.places(); ++place) {
      double* const its = s_.weights + place * State::kNumbers;
      its[State::kWeight] = its[State::kCentre] = 0.0;
      its[State::kPer] = 1.0 / full.size(place);
      std::fill(row(place), row(place + 1), 0.0);
      row(place)[place] = 1.0;
    }
    *s_.places = full.places();
  }

  void measure(const BankFull& full) {
    for (std::int64_t place = 1; place < places(); ++place) {
      double* const its = s_.weights + place * State::kNumbers;
      its[State::kCentre] = full.mean(place);
      its[State::kPer] = 1.0 / full.spread(place);
    }
  }

  BankTrackingState s_;
  std::vector<double> u_, v_;  // the row, and C times it; padded
  Sigmoids chances_{0.0};
};

}  // namespace skn
