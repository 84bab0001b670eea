// The first labels of a bank (bank_labels.hpp), by which wild ones among them are told from the others.
//
// Nobody knows the range of labels yet, so the first ones set it, and scores are counted from the very first.
// If that turns out to be wild, far from all others, what was learned in its range is worth nothing: the bank
// starts again, from the first label that is not.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace skn {

class FirstLabels {
 public:
  static constexpr std::int64_t kMost = 8;
  static constexpr std::int64_t kNumbers = 2 + kMost;  // labels met, how often all started again, the labels

  // The first of those that are not wild, and their range.
  struct Usual {
    double first, low, high;
  };

  explicit FirstLabels(double* numbers) : met_(numbers), starts_(numbers + 1), labels_(numbers + 2) {}

  bool none_met() const { return *met_ == 0; }
  bool all_met() const { return *met_ >= kMost; }

  void start_again() { ++*starts_; }  // merging has to know of it

  void meet(double label) { labels_[count(kMost - 1)] = label, ++*met_; }

  // Wild is a label that is farther from the median than kFar times as far as every other label or so is. If
  // that is no distance at all, as of counts that are mostly 0, nothing is known of distances.
  Usual usual() const {
    const std::int64_t n = count(kMost);
    if (n < kFew) return all(n, 0.0, INFINITY);
    std::array<double, kMost> sorted;
    std::copy_n(labels_, n, sorted.begin());
    std::sort(sorted.begin(), sorted.begin() + n);
    const double median = sorted[(n - 1) / 2],
                 largest = std::max(std::abs(sorted[0]), std::abs(sorted[n - 1]));
    std::array<double, kMost> away;
    for (std::int64_t i = 0; i < n; ++i) away[i] = std::abs(labels_[i] - median);
    std::nth_element(away.begin(), away.begin() + n / 2, away.begin() + n);
    const double near = away[n / 2];
    return all(n, median, near > kRounding * largest ? kFar * near : INFINITY);
  }

 private:
  static constexpr std::int64_t kFew = 4;  // labels, of which none can be told to be wild
  static constexpr double kFar = 100;
  static constexpr double kRounding = 1e-9;  // share of a label that is no distance

  std::int64_t count(std::int64_t most) const {  // whatever a file says
    return static_cast<std::int64_t>(std::clamp(*met_, 0.0, static_cast<double>(most)));
  }

  Usual all(std::int64_t n, double median, double most) const {
    Usual its{NAN, INFINITY, -INFINITY};
    for (std::int64_t i = 0; i < n; ++i) {
      const double label = labels_[i];
      if (std::abs(label - median) > most) continue;
      if (std::isnan(its.first)) its.first = label;
      its.low = std::min(its.low, label);
      its.high = std::max(its.high, label);
    }
    return its;
  }

  double *met_, *starts_, *labels_;
};

}  // namespace skn
