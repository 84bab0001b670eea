// How far labels lie from predictions: a distribution that follows the stream, and says any quantile of the
// next label (docs/intervals.md).
//
// Experts are histograms of residuals in units of their mean size, which differ in what they remember and in
// what that size depends on: on nothing, on the prediction, or on the row's features (spread.hpp). The last
// expert, which goes by features, leaves when they become many. They are mixed by the likelihood that they
// gave to residuals. Of a grid of levels τ each is calibrated by adaptive conformal inference: the quantile
// at level a is played, and a moves up or down with every label, by more if it was missed. So τ of all labels
// are below it, whatever the stream.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace skn {

struct ResidualState {
  static constexpr int kExperts = 5, kBins = 64, kBlock = 8, kBlocks = kBins / kBlock;
  // An expert: masses of bins, then of blocks of them, the mass of the latest row, sums over rows of |r|, r²
  // and 1, its share.
  enum {
    kMass,
    kBlockMass = kBins,
    kUnit = kBlockMass + kBlocks,
    kAbsolute,
    kSquares,
    kRows,
    kShare,
    kWidth
  };
  // Weight of all rows; mean and mean deviation of predictions; two coefficients of the logarithm of the
  // residuals' size, and their information; are labels numbers?
  enum { kClock, kMean, kDeviation, kSlope, kBend, kFirst, kBoth, kSecond, kNumbers, kScalars };

  static constexpr std::array<double, 25> kLevels = {.005, .01, .025, .05, .1,   .15, .2,  .25, .3,
                                                     .35,  .4,  .45,  .5,  .55,  .6,  .65, .7,  .75,
                                                     .8,   .85, .9,   .95, .975, .99, .995};

  double* experts;  // kExperts × kWidth; nullptr: nothing is tracked
  double* scalars;  // kScalars
  double* levels;   // one per kLevels
};

class Residuals {
  using State = ResidualState;
  static constexpr int kExperts = State::kExperts, kBins = State::kBins, kBlock = State::kBlock;

 public:
  Residuals(const ResidualState& state, bool counts) : s_(state), counts_(counts) {
    if (s_.experts != nullptr && s_.experts[State::kUnit] == 0) start();
    prior_ = prior();
    for (int b = 0; b < kBins; ++b) prior_below_[b + 1] = prior_below_[b] + prior_[b];
  }

  bool tracked() const { return s_.experts != nullptr; }

  // Forgets all rows.
  void restart() {
    if (s_.experts == nullptr) return;
    std::fill_n(s_.experts, kExperts * State::kWidth, 0.0);
    std::fill_n(s_.scalars, static_cast<int>(State::kScalars), 0.0);
    start();
  }

  // Rows in the order in which they were learned; scores are those made before, and so are widths by
  // features, which are known of the first `few` rows: until features became many.
  // `unknown`: the first row was predicted before any label, and tells nothing about predictions.
  void learn(std::int64_t n, const double* labels, const double* weights, const double* scores,
             const double* widths, std::int64_t few, bool unknown) {
    if (s_.experts == nullptr) return;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i >= few) leave();
      const double h = weights == nullptr ? 1.0 : weights[i], p = counts_ ? std::exp(scores[i]) : scores[i];
      if (h > 0 && std::isfinite(h) && std::isfinite(p) && std::isfinite(labels[i])) {
        if (!unknown) learn(p, labels[i], h, i < few ? widths[i] : 1.0);
        unknown = false;
      }
    }
  }

  // Quantiles of the labels of rows with these predictions, n × count numbers. Levels rise, and so do
  // quantiles. Without widths by features (nullptr), they are those of all rows with these predictions.
  void quantiles(std::int64_t n, const double* predictions, const double* widths, std::int64_t count,
                 const double* levels, double* out) const {
    std::array<double, State::kLevels.size()> played;
    std::copy_n(s_.levels, played.size(), played.begin());
    std::sort(played.begin(), played.end());
    for (std::int64_t i = 0; i < n; ++i) {
      const Sizes sizes = sizes_of(stretches(predictions[i], widths == nullptr ? 1.0 : widths[i]));
      for (std::int64_t j = 0; j < count; ++j)
        *out++ = !std::isfinite(predictions[i])
                     ? NAN
                     : predictions[i] + quantile(sizes, heard(widths), between(levels[j], played));
    }
  }

  // Root mean squares of the residuals of rows with these predictions, and widths as above.
  void deviations(std::int64_t n, const double* predictions, const double* widths, double* out) const {
    const int all = heard(widths);
    for (std::int64_t i = 0; i < n; ++i) {
      const Stretches stretch = stretches(predictions[i], widths == nullptr ? 1.0 : widths[i]);
      double square = 0;
      for (int g = 0; g < all; ++g) {
        const double *e = expert(g), by = stretch[kForms[g].by];
        if (e[State::kRows] > 0)
          square += e[State::kShare] * by * by * (e[State::kSquares] / e[State::kRows]);
      }
      out[i] = s_.scalars[State::kClock] > 0 ? std::sqrt(square / shares(all)) : INFINITY;
    }
  }

 private:
  enum { kNothing, kPrediction, kFeatures, kWays };
  struct Form {
    int by;                  // what the size of residuals depends on
    double keep, keep_size;  // how much of a row remains after the next, in the histogram and in the size
  };
  static constexpr Form kForms[kExperts] = {{kNothing, 1.0, 1.0},
                                            {kPrediction, 1.0, 1.0},
                                            {kPrediction, 0.999, 0.999},
                                            {kPrediction, 0.999, 0.99},
                                            {kFeatures, 1.0, 1.0}};
  static constexpr int kLast = kExperts - 1;  // the only one by features
  static constexpr int kGuide = 2;            // the expert whose sizes teach how they depend on predictions

  static constexpr double kPrior = 3.0;                     // rows that the prior counts as
  static constexpr double kMixed = 1e-3;                    // of all shares are redistributed with every row
  static constexpr double kFastest = 0.1, kSlowest = 3e-4;  // steps of levels
  static constexpr double kForget = 1e-4;      // of predictions, and of what is known of coefficients
  static constexpr double kRidge = 10.0;       // of those
  static constexpr double kHeaviest = 100.0;   // row that teaches them: else their matrix would be singular
  static constexpr double kWildest = 5.0;      // mean sizes: a larger residual teaches coefficients as this
  static constexpr double kFarthest = 4.0;     // mean deviations: a prediction farther off counts as this
  static constexpr double kMostStretch = 3.0;  // bound on logarithms
  static constexpr double kLeastSize = 1e-100;
  static constexpr double kLargestUnit = 1e100;
  static constexpr double kNoMass =
      1e-250;  // beside that of the latest row; below it, bins and blocks round apart

  using Sizes = std::array<double, kExperts>;
  using Stretches = std::array<double, kWays>;
  using Bins = std::array<double, kBins>;

  // Where a residual is: r/(size + |r|) from −1 to 1, in equal bins.
  struct Place {
    int bin;
    double share;  // of the bin that is below it
  };

  static Place place(double r, double size) { return place(r / (size + std::abs(r))); }
  static Place place(double t) {
    const double at = 0.5 * kBins * (1.0 + t);
    if (!(at > 0 && at < kBins)) return at >= kBins ? Place{kBins - 1, 1.0} : Place{0, 0.0};
    const int bin = static_cast<int>(at);
    return {bin, at - bin};
  }

  // Laplace's distribution, with some mass everywhere.
  static Bins prior() {
    const auto below = [](int b) {
      const double t = 2.0 * b / kBins - 1.0;
      if (b == 0 || b == kBins) return b == 0 ? 0.0 : 1.0;
      const double tail = 0.5 * std::exp(-std::abs(t) / (1.0 - std::abs(t)));
      return t < 0 ? tail : 1.0 - tail;
    };
    Bins bins;
    for (int b = 0; b < kBins; ++b) bins[b] = 0.9 * (below(b + 1) - below(b)) + 0.1 / kBins;
    return bins;
  }

  void start() {
    for (int g = 0; g < kExperts; ++g) {
      expert(g)[State::kUnit] = 1.0;
      expert(g)[State::kShare] = 1.0 / kExperts;
    }
    std::copy(State::kLevels.begin(), State::kLevels.end(), s_.levels);
  }

  double* expert(int g) const { return s_.experts + g * State::kWidth; }

  // How many experts there are: the last has a share until it leaves.
  int experts() const { return expert(kLast)[State::kShare] > 0 ? kExperts : kLast; }
  // How many have something to say of rows, whose widths by features are known or not, and their shares.
  int heard(const double* widths) const { return widths == nullptr ? kLast : experts(); }
  double shares(int all) const {
    double sum = 0;
    for (int g = 0; g < all; ++g) sum += expert(g)[State::kShare];
    return sum;
  }

  // The expert by features; its share is that of the others.
  void leave() {
    if (experts() < kExperts) return;
    std::fill_n(expert(kLast), static_cast<int>(State::kWidth), 0.0);
    expert(kLast)[State::kUnit] = 1.0;
    const double one = 1.0 / shares(kLast);
    for (int g = 0; g < kLast; ++g) expert(g)[State::kShare] *= one;
  }

  // The mass below a place, and that of its bin, as shares of all.
  struct Below {
    double all, bin;
  };

  Below below(int g, Place at) const {
    const double* e = expert(g);
    const int block = at.bin / kBlock;
    double total = 0, sum = 0;
    for (int k = 0; k < State::kBlocks; ++k) {
      sum = k == block ? total : sum;
      total += e[State::kBlockMass + k];
    }
    for (int b = block * kBlock; b < at.bin; ++b) sum += e[b];
    const double prior = kPrior * e[State::kUnit], one = 1.0 / (total + prior);
    const double bin = e[at.bin] + prior * prior_[at.bin];
    return {(sum + prior * prior_below_[at.bin] + at.share * bin) * one, bin * one};
  }

  double mixed(const Sizes& sizes, int all, double r) const {
    double sum = 0;
    for (int g = 0; g < all; ++g) sum += expert(g)[State::kShare] * below(g, place(r, sizes[g])).all;
    return sum;
  }

  // The residual below which the mixture of the first experts has mass a.
  double quantile(const Sizes& sizes, int all, double a) const {
    if (s_.scalars[State::kClock] == 0) return a < 0.5 ? -INFINITY : INFINITY;
    if (a <= 0 || a >= 1) return a <= 0 ? -INFINITY : INFINITY;
    const double unit = *std::max_element(sizes.begin(), sizes.begin() + all), wanted = a * shares(all);
    const auto residual = [unit](double t) { return unit * (t / (1.0 - std::abs(t))); };
    double low = -1, high = 1;
    for (int i = 0; i < 50; ++i) {
      const double t = 0.5 * (low + high);
      (mixed(sizes, all, residual(t)) < wanted ? low : high) = t;
    }
    // In the outermost bins nobody knows how far: they reach to infinity.
    const double t = 0.5 * (low + high);
    return std::abs(t) < 1.0 - 2.0 / kBins ? residual(t) : std::copysign(INFINITY, t);
  }

  // The level to play for one between those of the grid.
  template <class Played>
  static double between(double level, const Played& played) {
    const auto& grid = State::kLevels;
    if (level <= grid.front()) return level / grid.front() * played.front();
    if (level >= grid.back()) return 1.0 - (1.0 - level) / (1.0 - grid.back()) * (1.0 - played.back());
    const auto j = std::upper_bound(grid.begin(), grid.end(), level) - grid.begin();
    const double part = (level - grid[j - 1]) / (grid[j] - grid[j - 1]);
    return played[j - 1] + part * (played[j] - played[j - 1]);
  }

  // What is known of the size of a residual by the prediction: log size = slope·z₁ + bend·z₂.
  std::array<double, 2> covariates(double prediction) const {
    const double deviation = s_.scalars[State::kDeviation];
    if (!(deviation > 0)) return {0.0, 0.0};
    const double z = std::clamp((prediction - s_.scalars[State::kMean]) / deviation, -kFarthest, kFarthest);
    return {z, std::abs(z) - 1.0};
  }

  double stretch_of(double prediction) const {
    const auto z = covariates(prediction);
    const double log = s_.scalars[State::kSlope] * z[0] + s_.scalars[State::kBend] * z[1];
    return std::exp(std::clamp(log, -kMostStretch, kMostStretch));
  }

  Stretches stretches(double prediction, double width) const { return {1.0, stretch_of(prediction), width}; }

  double size(int g, const Stretches& stretch) const {
    const double* e = expert(g);
    const double mean = e[State::kRows] > 0 ? e[State::kAbsolute] / e[State::kRows] : 0.0;
    return std::max(mean, kLeastSize) * stretch[kForms[g].by];
  }

  // 0 of an expert that has left.
  Sizes sizes_of(const Stretches& stretch) const {
    Sizes sizes{};
    for (int g = 0, all = experts(); g < all; ++g) sizes[g] = size(g, stretch);
    return sizes;
  }

  void learn(double prediction, double label, double h, double width) {
    double* its = s_.scalars;
    if (its[State::kNumbers] == 0) {
      if (!counts_ && std::abs(label) == 1.0) return;  // as long as labels are classes
      its[State::kNumbers] = 1;
    }
    const double r = label - prediction;
    const Stretches stretch = stretches(prediction, width);
    if (its[State::kClock] > 0) {
      const Sizes sizes = sizes_of(stretch);
      observe(r, sizes, h);
      bend(prediction, std::abs(r) / sizes[kGuide], h);
    }
    Stretches stretched;
    for (int way = 0; way < kWays; ++way) stretched[way] = std::abs(r) / stretch[way];
    for (int g = 0, all = experts(); g < all; ++g) grow(g, stretched[kForms[g].by], h);
    follow(prediction, h);
    its[State::kClock] += h;
  }

  // The distribution and the levels, once there are sizes to measure by.
  void observe(double r, const Sizes& sizes, double h) {
    std::array<double, kExperts> likely;
    std::array<Place, kExperts> places;
    const double largest = *std::max_element(sizes.begin(), sizes.end());
    const int all = experts();
    double u = 0, sum = 0;
    for (int g = 0; g < all; ++g) {
      const double near = 1.0 / (sizes[g] + std::abs(r)), share = expert(g)[State::kShare];
      places[g] = place(r * near);
      const Below at = below(g, places[g]);
      u += share * at.all;
      likely[g] = share * at.bin * (sizes[g] * near) * (largest * near);
      sum += likely[g];
    }
    const double one = 1.0 / sum;
    for (int g = 0; g < all; ++g) {
      if (one > 0 && std::isfinite(one))
        expert(g)[State::kShare] = (1.0 - kMixed) * (likely[g] * one) + kMixed / all;
      add(g, places[g].bin, h);
    }
    calibrate(u, h);
  }

  // A row of weight h is like h rows: a level does not pass where it would turn.
  void calibrate(double u, double h) {
    const double root = std::sqrt(s_.scalars[State::kClock]);
    const double step = std::clamp(1.0 / (root * std::sqrt(root)), kSlowest, kFastest);
    if (h == 1.0) {
      for (std::size_t j = 0; j < State::kLevels.size(); ++j)
        s_.levels[j] += step * (State::kLevels[j] - (u <= s_.levels[j] ? 1.0 : 0.0));
      return;
    }
    const double once = step * std::min(h, 1.0), often = step * h;
    for (std::size_t j = 0; j < State::kLevels.size(); ++j) {
      double& a = s_.levels[j];
      const double up = State::kLevels[j], down = 1.0 - up;
      a = u <= a ? std::min(a - once * down, std::max(a - often * down, u))
                 : std::max(a + once * up, std::min(a + often * up, u));
    }
  }

  // What remains of earlier rows after one of weight h, and what that one counts, as h rows would.
  static double faded(double keep, double h) { return h == 1.0 ? keep : std::pow(keep, h); }
  static double amount(double keep, double h) {
    if (keep == 1.0 || h == 1.0) return h;
    return -std::expm1(h * std::log(keep)) / (1.0 - keep);
  }

  // Masses do not fade: that of the latest row grows.
  void add(int g, int bin, double h) {
    double* e = expert(g);
    const double keep = kForms[g].keep, fade = faded(keep, h);
    if (!(e[State::kUnit] < kLargestUnit * fade)) {
      const double by = fade / e[State::kUnit];
      for (int b = 0; b < State::kUnit; ++b) e[b] = e[b] * by < kNoMass ? 0.0 : e[b] * by;
      e[State::kUnit] = 1.0;
    } else {
      e[State::kUnit] /= fade;
    }
    const double mass = amount(keep, h) * e[State::kUnit];
    e[bin] += mass;
    e[State::kBlockMass + bin / kBlock] += mass;
  }

  void grow(int g, double absolute, double h) {
    double* e = expert(g);
    const double keep = kForms[g].keep_size, fade = faded(keep, h), mass = amount(keep, h);
    e[State::kAbsolute] = e[State::kAbsolute] * fade + mass * absolute;
    e[State::kSquares] = e[State::kSquares] * fade + mass * absolute * absolute;
    e[State::kRows] = e[State::kRows] * fade + mass;
  }

  // A Newton step on log size + |r|/size.
  void bend(double prediction, double ratio, double h) {
    double* its = s_.scalars;
    const auto z = covariates(prediction);
    h = std::min(h, kHeaviest);
    its[State::kFirst] = (1.0 - kForget) * its[State::kFirst] + h * z[0] * z[0];
    its[State::kBoth] = (1.0 - kForget) * its[State::kBoth] + h * z[0] * z[1];
    its[State::kSecond] = (1.0 - kForget) * its[State::kSecond] + h * z[1] * z[1];
    const double a = kRidge + its[State::kFirst], b = its[State::kBoth], c = kRidge + its[State::kSecond];
    const double g = h * (std::min(ratio, kWildest) - 1.0) / (a * c - b * b);
    const double slope = its[State::kSlope] + g * (c * z[0] - b * z[1]);
    const double bend = its[State::kBend] + g * (a * z[1] - b * z[0]);
    its[State::kSlope] = std::clamp(slope, -kMostStretch, kMostStretch);
    its[State::kBend] = std::clamp(bend, -kMostStretch, kMostStretch);
  }

  void follow(double prediction, double h) {
    double* its = s_.scalars;
    const double part = std::max(h / (its[State::kClock] + h), kForget * std::min(h, 1.0));
    its[State::kMean] += part * (prediction - its[State::kMean]);
    its[State::kDeviation] += part * (std::abs(prediction - its[State::kMean]) - its[State::kDeviation]);
  }

  ResidualState s_;
  bool counts_;
  Bins prior_{};
  std::array<double, kBins + 1> prior_below_{};
};

}  // namespace skn
