// Experts of a bank (bank.hpp) that keep whole matrices, while there are few features: least squares.
//
// Each of them has the moments A = Σ γ^age h xxᵀ and b = Σ γ^age h y x of the rows, with 1/(1 − γ) rows of
// memory, and weights w = (A + ridge)⁻¹ b. Where the loss asks for something else than the mean, y and h are
// working responses and weights (working_response.hpp). The ridge is as much as one row that has the feature,
// by its mean size, and the mean row (mean_ridge.hpp).
//
// Rows wait in a block, of one row at first and up to a quarter of the features later. At its end all
// memories take in the sums of the block, A ← γ^rows A + Σ h xxᵀ, so that the products of features are formed
// once for all of them. Weights are recomputed when the block ends or a 128th of the memory is new, and a
// quarter as often while the expert has little weight. With more than 128 places that takes longer than the
// moments do, so it waits for as many rows as there are places beyond those.
//
// Where labels are classes, the score wᵀx is brought to log odds by a logistic regression of its own
// (score_odds.hpp), and so is that of the tracking expert (bank_tracking.hpp).
//
// Place 0 is the constant, other places have features. The columns of A are packed, those of all experts for
// one place together, so that a place more leaves the others where they are.
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
#include "learners/spread.hpp"

namespace skn {

struct BankFullState {
  static constexpr std::int64_t kMemories = 3;
  static constexpr std::int64_t kScores = kMemories + 1;  // and that of the tracking expert
  enum { kUnit, kSize, kScale };  // of a place: a power of two near its first value, its mean size
  static constexpr std::int64_t kLongest = 32;   // rows in a block
  enum { kStale = ScoreOdds::kNumbers, kOdds };  // rows since solving, after the numbers of log odds
  // Of a row in the block: its target and weight, for how many rows it stands, √|r|.
  enum { kTarget, kWeight, kAge, kRoot, kLabel };

  std::int64_t* places;     // in use; −1: there are too many features
  std::int64_t* non_zeros;  // of all rows so far
  std::int64_t* waiting;    // rows in the block
  std::int64_t* features;   // room
  double* units;            // room × kScale
  double* weights;          // room × kMemories
  double* moments;          // packed(room)
  double* odds;             // kScores × kOdds
  double* block;            // room × kLongest: the values of the rows that wait
  double* labels;           // kLongest × kLabel
  double* spread;           // room × Spread::kNumbers, of the expert that forgets nothing
  std::int64_t room;        // places that there is memory for
  bool intercept;

  // Place j has A_0j … A_jj and b_j of each expert.
  static std::int64_t packed(std::int64_t places) { return kMemories * (places * (places + 3) / 2); }
};

class BankFull {
  using State = BankFullState;

 public:
  static constexpr std::int64_t kMemories = State::kMemories;
  static constexpr std::array<double, kMemories> kForget = {1.0, 0.999, 0.99};  // γ
  static constexpr std::int64_t kMost = 384;                                    // features

  explicit BankFull(const BankFullState& state) : s_(state) {
    for (std::int64_t i = 1; i < places(); ++i) known_.push_back(known(i));
    std::sort(known_.begin(), known_.end());
  }

  std::int64_t places() const { return *s_.places; }
  bool alive() const { return places() >= 0; }
  double score(std::int64_t g) const { return score_[static_cast<std::size_t>(g)]; }
  double odds(std::int64_t g) const { return odds(g, score(g)); }
  // Log odds by a score of the tracking expert.
  double odds_tracked(double score) const { return odds(kMemories, score); }

  // How wide the distribution of the row's label is, as a share of the usual width.
  double stretch() const { return Spread::stretch(spread_); }

  // How far the label of the row that was looked at, and is learned next, is from what the bank predicted.
  void missed(double residual) { root_ = Spread::target(residual); }

  // The scores of a row.
  void look(const Row& row) {
    score_.fill(0.0);
    spread_ = 0;
    if (places() <= 0) return;
    find(row);
    std::array<double, kMemories> score{};
    double spread = 0;
    for (const auto& [place, value] : found_) {
      for (std::size_t g = 0; g < kMemories; ++g) score[g] += value * s_.weights[place * kMemories + g];
      spread += value * s_.spread[place * Spread::kNumbers + Spread::kWeight];
    }
    score_ = score;
    spread_ = spread;
  }

  // The places of the row's features that have one, and their values in the units of the places.
  const std::vector<std::pair<std::int64_t, double>>& found() const { return found_; }

  // Of a place, in its unit: the mean size of the feature where it is, the mean of all rows and how far
  // values are from it, both as of the end of the last block.
  double size(std::int64_t place) const {
    const double* its = s_.units + place * State::kScale;
    return its[State::kSize] / its[State::kUnit];
  }
  double mean(std::int64_t place) const {
    const double rows = column(0, 0)[0];
    return rows > 0 ? column(0, place)[0] / rows : 0.0;
  }
  double spread(std::int64_t place) const {
    const double* const A = column(0, place);
    return size(place) * std::sqrt(spread_share(A[place], A[0], column(0, 0)[0]));
  }
  bool block_ended() const { return *s_.waiting == 0; }

  // Places for which there is memory.
  std::int64_t room() const { return s_.room; }

  // How many places rows may need: those in use, and new features up to as many as there may be.
  std::int64_t needs(const Rows& rows) const {
    std::vector<std::int64_t> all;
    for (const Known& its : known_) all.push_back(its.feature);
    const auto complete = [&, largest = static_cast<std::uint64_t>(rows.largest())] {
      return largest < all.size() && all[largest] == rows.largest();  // features from 0 on, then
    };
    RowReader reader(rows);
    std::int64_t known = 0;  // rows without a new feature
    while (known < rows.count() && !complete() && all_known(reader[known])) ++known;
    for (std::int64_t i = known; i < rows.count() && !complete(); ++i) {
      const Row row = reader[i];
      auto at = all.begin();
      for (std::int64_t k = 0; k < row.size(); ++k, ++at) {
        const std::int64_t feature = row.index()[k];
        if (at == all.end() || *at != feature) at = std::lower_bound(at, all.end(), feature);
        if (at != all.end() && *at == feature) continue;
        at = all.insert(at, feature);
        if (static_cast<std::int64_t>(all.size()) > kMost) return kMost + 1;
      }
    }
    return 1 + static_cast<std::int64_t>(all.size());
  }

  // Forgets all rows.
  void restart() {
    if (places() <= 0) return;
    std::fill_n(s_.weights, places() * kMemories, 0.0);
    std::fill_n(s_.moments, State::packed(places()), 0.0);
    std::fill_n(s_.spread, places() * Spread::kNumbers, 0.0);
    start();
  }

  // Learns the row that was looked at, as number `rows`; `sizes` are the mean sizes of its features so far,
  // `tracked` is the score of the tracking expert if there is one, `shares` are the experts' weights. Returns
  // false if there are too many features now: then these experts are no more.
  template <class T>
  bool learn(const Row& row, const T* sizes, double y, double weight, double h, std::int64_t rows,
             bool classes, double tracked, const double* shares) {
    *s_.non_zeros += row.size();
    if (!all_found(row)) {
      if (!enter(row, rows)) {
        *s_.places = -1;
        return false;
      }
      find(row);
    }
    const std::size_t first = s_.intercept ? 1 : 0;
    for (std::size_t i = 0; i + first < found_.size(); ++i)
      s_.units[found_[i + first].first * State::kScale + State::kSize] = static_cast<double>(sizes[i]);
    if (classes) {
      double scores[State::kScores];
      for (std::int64_t g = 0; g < kMemories; ++g) scores[g] = held(score(g));
      scores[kMemories] = tracked;
      ScoreOdds::learn<State::kScores>(s_.odds, State::kOdds, scores, y, h, static_cast<double>(rows));
    }
    wait(y, weight * h, h);
    if (*s_.waiting < std::min({1 + rows / kOften, std::max(kShort, places() / 4), State::kLongest}))
      return true;
    const std::int64_t passed = *s_.waiting;
    end_block();
    for (std::size_t g = 0; g < kMemories; ++g) {
      double& stale = s_.odds[g * State::kOdds + State::kStale];
      stale += static_cast<double>(passed);
      const double fresh =
          std::max({static_cast<double>(passed), std::min(static_cast<double>(rows), kRemembered[g]) / kNew,
                    static_cast<double>(std::min(rows / kEarly, places() - 1 - kNarrow))});
      if (stale < (shares[g] < kLittle ? kPatience * fresh : fresh)) continue;
      stale = 0;
      solve(static_cast<std::int64_t>(g));
    }
    return true;
  }

 private:
  static constexpr std::int64_t kFew = 64, kDense = 8;  // features that are few; features for each non-zero
  // A row costs the square of the features here, its non-zeros elsewhere: so many times as much, at most.
  static constexpr double kCost = 1024;
  // A block has one row at first, two from here on, … but no more than this or a quarter of the features.
  static constexpr std::int64_t kOften = 32, kShort = 8;
  // Weights are computed when a 128th of the memory is new; a quarter as often for experts of little weight.
  static constexpr double kNew = 128, kLittle = 0.01, kPatience = 4;
  // Of more features than these, so many rows; at first a third of all rows.
  static constexpr std::int64_t kNarrow = 128, kEarly = 3;
  static constexpr std::array<double, kMemories> kRemembered = {INFINITY, 1000, 100};  // rows
  static constexpr double kLeast = 1e-100;                                             // size of values
  static constexpr double kHuge = 1e150;                                               // of weights
  static constexpr double kLost = 1e-13;  // share of a pivot that is rounding

  static double held(double score) { return std::clamp(score, -1.0, 1.0); }
  double odds(std::int64_t g, double score) const {
    return ScoreOdds::of(s_.odds + g * State::kOdds, held(score));
  }

  double* column(std::int64_t g, std::int64_t j) const {  // A_0j … A_jj, b_j
    return s_.moments + State::packed(j) + g * (j + 2);
  }

  // A feature, its place, and one over the place's unit: that is a power of two, so that a product with it is
  // the quotient.
  struct Known {
    std::int64_t feature, place;
    double per;
    bool operator<(const Known& other) const { return feature < other.feature; }
  };

  Known known(std::int64_t place) const {
    return {s_.features[place], place, 1.0 / s_.units[place * State::kScale + State::kUnit]};
  }

  std::int64_t place_of(std::int64_t feature) const {
    const auto at = std::lower_bound(known_.begin(), known_.end(), Known{feature, 0, 0});
    return at != known_.end() && at->feature == feature ? at->place : -1;
  }

  void find(const Row& row) {
    found_.clear();
    if (s_.intercept) found_.emplace_back(0, 1.0);
    auto at = known_.begin();
    for (std::int64_t k = 0; k < row.size(); ++k) {
      const std::int64_t feature = row.index()[k];
      if (at == known_.end() || at->feature != feature)
        at = std::lower_bound(at, known_.end(), Known{feature, 0, 0});
      if (at == known_.end()) break;
      if (at->feature != feature) continue;
      found_.emplace_back(at->place, row.value()[k] * at->per);
      ++at;
    }
  }

  bool all_known(const Row& row) const {
    auto at = known_.begin();
    for (std::int64_t k = 0; k < row.size(); ++k, ++at) {
      while (at != known_.end() && at->feature < row.index()[k]) ++at;
      if (at == known_.end() || at->feature != row.index()[k]) return false;
    }
    return true;
  }

  // Had all features of the row that was looked at a place?
  bool all_found(const Row& row) const {
    return places() > 0 && static_cast<std::int64_t>(found_.size()) == row.size() + (s_.intercept ? 1 : 0);
  }

  // Places for features that are met for the first time, as long as they are few, or few for rows this dense.
  bool enter(const Row& row, std::int64_t rows) {
    if (places() == 0 && !open(0, 1.0)) return false;
    const std::size_t before = known_.size();
    for (std::int64_t k = 0; k < row.size(); ++k)
      if (place_of(row.index()[k]) < 0 && !open(row.index()[k], row.value()[k])) return false;
    const auto now = static_cast<std::int64_t>(known_.size());
    return known_.size() == before || now <= kFew ||
           (now * rows <= kDense * *s_.non_zeros &&
            static_cast<double>(now * now) * static_cast<double>(rows) <=
                kCost * static_cast<double>(*s_.non_zeros));
  }

  bool open(std::int64_t feature, double value) {
    const std::int64_t place = places();
    if (place >= s_.room || place > kMost) return false;
    const double size = std::max(std::abs(value), kLeast);
    s_.features[place] = feature;
    s_.units[place * State::kScale + State::kUnit] = std::exp2(std::round(std::log2(size)));
    s_.units[place * State::kScale + State::kSize] = size;
    std::fill_n(s_.weights + place * kMemories, kMemories, 0.0);
    std::fill_n(column(0, place), kMemories * (place + 2), 0.0);
    std::fill_n(s_.spread + place * Spread::kNumbers, static_cast<int>(Spread::kNumbers), 0.0);
    std::fill_n(s_.block + place * State::kLongest, State::kLongest, 0.0);
    if (place == 0) {
      start();
    } else {
      const Known entry = known(place);
      known_.insert(std::lower_bound(known_.begin(), known_.end(), entry), entry);
    }
    ++*s_.places;
    return true;
  }

  void start() {
    *s_.waiting = 0;
    for (std::int64_t g = 0; g < State::kScores; ++g) {
      double* its = s_.odds + g * State::kOdds;
      ScoreOdds::start(its, s_.intercept);
      its[State::kStale] = 0.0;
    }
  }

  // What was there is not needed, and not cleared.
  static void make_room(std::vector<double>& numbers, std::int64_t size) {
    if (static_cast<std::int64_t>(numbers.size()) < size) numbers.resize(static_cast<std::size_t>(size));
  }

  // The row that was found joins the block.
  void wait(double y, double weight, double h) {
    const std::int64_t at = (*s_.waiting)++;
    s_.labels[at * State::kLabel + State::kTarget] = y;
    s_.labels[at * State::kLabel + State::kWeight] = weight;
    s_.labels[at * State::kLabel + State::kAge] = h;
    s_.labels[at * State::kLabel + State::kRoot] = root_;
    if (static_cast<std::int64_t>(found_.size()) < places())
      for (std::int64_t i = 0; i < places(); ++i) s_.block[i * State::kLongest + at] = 0.0;
    for (const auto& [place, value] : found_) s_.block[place * State::kLongest + at] = value;
  }

  // The moments forget, and take in the block. Its sums are formed for four columns of A at a time, whole
  // fours of numbers: what is right of the diagonal is never read.
  void end_block() {
    const std::int64_t n = places(), ld = padded4(n), rows = *s_.waiting;
    make_room(x_, rows * ld);
    make_room(R_, 4 * ld);
    double passed = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t r = 0; r < rows; ++r) x_[r * ld + i] = s_.block[i * State::kLongest + r];
    for (std::int64_t i = n; i < ld; ++i)
      for (std::int64_t r = 0; r < rows; ++r) x_[r * ld + i] = 0.0;
    for (std::int64_t r = 0; r < rows; ++r) passed += s_.labels[r * State::kLabel + State::kAge];
    std::array<double, kMemories> kept;
    for (std::size_t g = 0; g < kMemories; ++g) kept[g] = std::pow(kForget[g], passed);
    for (std::int64_t j = 0; j < n; j += 4) {
      multiply_block(j, ld, rows);
      Four targets{}, roots{};
      for (std::int64_t r = 0; r < rows; ++r) {
        const double* its = s_.labels + r * State::kLabel;
        targets += its[State::kTarget] * four(&weighed_[4 * r]);
        roots += its[State::kRoot] * four(&weighed_[4 * r]);
      }
      for (std::int64_t c = j; c < std::min(j + 4, n); ++c) {
        double* const sums = &R_[(c - j) * ld];
        if (c > 0) s_.spread[c * Spread::kNumbers + Spread::kSum] += roots[c - j];
        for (std::int64_t g = 0; g < kMemories; ++g) {
          double* const A = column(g, c);
          const double keep = kept[static_cast<std::size_t>(g)];
          std::int64_t i = 0;
          for (; i + 4 <= c + 1; i += 4) four(A + i) = keep * four(A + i) + four(sums + i);
          for (; i <= c; ++i) A[i] = keep * A[i] + sums[i];
          A[c + 1] = keep * A[c + 1] + targets[c - j];
        }
      }
    }
    for (std::int64_t r = 0; r < rows; ++r)  // there without a constant, too
      s_.spread[Spread::kSum] +=
          s_.labels[r * State::kLabel + State::kWeight] * s_.labels[r * State::kLabel + State::kRoot];
    *s_.waiting = 0;
  }

  // Σ h x_c x of the block's rows, for c = j … j + 3.
  void multiply_block(std::int64_t j, std::int64_t ld, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < 4; ++c)
        weighed_[4 * r + c] = s_.labels[r * State::kLabel + State::kWeight] * x_[r * ld + j + c];
    double* const sums = R_.data();
    for (std::int64_t i = 0; i < j + 4; i += 4) {
      Four s0{}, s1{}, s2{}, s3{};
      const double* x = x_.data() + i;
      for (const double *w = weighed_.data(), *end = w + 4 * rows; w < end; w += 4, x += ld) {
        const Four its = four(x);
        s0 += w[0] * its;
        s1 += w[1] * its;
        s2 += w[2] * its;
        s3 += w[3] * its;
      }
      four(sums + i) = s0;
      four(sums + ld + i) = s1;
      four(sums + 2 * ld + i) = s2;
      four(sums + 3 * ld + i) = s3;
    }
  }

  // Rows k … k + 3 of R, and what they leave of the rows below. Whole fours are worked on: what is left of
  // the diagonal is never read.
  void eliminate(const Small& R, std::int64_t k, std::int64_t n, std::int64_t g) {
    const std::int64_t end = std::min(k + 4, n);
    for (std::int64_t i = k; i < end; ++i) {
      double* const row = R.row(i);
      for (std::int64_t p = k; p < i; ++p)
        if (R.at(p, i) != 0) axpy(-R.at(p, i), R.row(p) + k, row + k, R.ld - k);
      const bool lost = !(row[i] > kLost * column(g, i)[i]);
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

  // w = (A + ridge)⁻¹b by RᵀR = A + ridge. A pivot that rounding has eaten belongs to a feature that depends
  // on those before it: its weight is 0.
  void solve(std::int64_t g) {
    const std::int64_t n = places(), ld = padded4(n);
    make_room(R_, n * ld);
    make_room(x_, ld);
    const Small R{R_.data(), ld};
    double* const b = x_.data();
    std::fill_n(b, ld, 0.0);
    const double rows = column(g, 0)[0];  // none without an intercept
    const double row = rows > 0 ? of_a_row(rows, static_cast<double>(n)) : 0.0;
    make_room(mean_, n);
    for (std::int64_t j = 0; j < n; ++j) mean_[j] = rows > 0 ? column(g, j)[0] / rows : 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double* const A = column(g, j);
      for (std::int64_t i = 0; i <= j; ++i) R.at(i, j) = A[i] + row * mean_[i] * mean_[j];
      for (std::int64_t i = n; i < ld; ++i) R.at(j, i) = 0.0;
      for (std::int64_t i = j / 4 * 4; i < j; ++i) R.at(j, i) = 0.0;
      b[j] = A[j + 1];
      const double* its = s_.units + j * State::kScale;
      const double size = its[State::kSize] / its[State::kUnit];
      if (j > 0 || rows == 0) R.at(j, j) += mean_ridge(size * size, A[j], A[0], rows, static_cast<double>(n));
    }
    for (std::int64_t k = 0; k < n; k += 4) eliminate(R, k, n, g);
    substitute(R, n, b);
    if (std::all_of(b, b + n, [](double w) { return std::abs(w) < kHuge; }))  // else nothing was learned
      for (std::int64_t i = 0; i < n; ++i) s_.weights[i * kMemories + g] = b[i];
    if (g > 0 || s_.spread[Spread::kSum] == 0) return;
    std::fill_n(b, ld, 0.0);
    for (std::int64_t i = s_.intercept ? 0 : 1; i < n; ++i)
      b[i] = s_.spread[i * Spread::kNumbers + Spread::kSum];
    substitute(R, n, b);
    Spread::keep(s_.spread, n, b);
  }

  // b ← (RᵀR)⁻¹ b.
  static void substitute(const Small& R, std::int64_t n, double* b) {
    const std::int64_t ld = R.ld;
    for (std::int64_t k = 0; k < n; ++k) {
      b[k] = R.at(k, k) > 0 ? b[k] / R.at(k, k) : 0.0;
      axpy(-b[k], R.row(k) + k + 1, b + k + 1, n - k - 1);
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      const double* const row = R.row(k);
      const std::int64_t whole = padded4(k + 1);
      double rest = dot(row + whole, b + whole, ld - whole);
      for (std::int64_t i = k + 1; i < std::min(whole, n); ++i) rest += row[i] * b[i];
      b[k] = row[k] > 0 ? (b[k] - rest) / row[k] : 0.0;
    }
  }

  BankFullState s_;
  std::vector<Known> known_;  // sorted
  std::vector<std::pair<std::int64_t, double>> found_;
  std::array<double, kMemories> score_{};
  double spread_ = 0, root_ = 0;
  std::vector<double> x_, R_, mean_;
  std::array<double, 4 * State::kLongest> weighed_;  // values of the block's rows times their weights
};

}  // namespace skn
