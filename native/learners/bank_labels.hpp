// The labels of a bank (bank.hpp): classes or numbers, and the range in which predictions lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/small_matrix.hpp"
#include "learners/bank_loss.hpp"
#include "learners/bank_state.hpp"
#include "learners/first_labels.hpp"

namespace skn {

// Experts' predictions p are
//   squared            in units where labels fill [−1, 1]: scores are middle + half · p
//   logistic           logits
//   counts             logarithms; kHigh is the largest count, kTotal the sum of all
//   straight, Huber    scores as they are
template <class T>
class BankLabels {
  using State = BankState<T>;

 public:
  BankLabels(const BankState<T>& state, const BankLoss& loss)
      : s_(state), loss_(loss), first_(state.first_labels) {}

  double middle() const { return loss_.squared() ? 0.5 * low() + 0.5 * high() : 0.0; }
  double half() const { return loss_.squared() ? 0.5 * high() - 0.5 * low() : 1.0; }

  // The unit in which the table and its maps keep weights, a power of two: float32 has no room for those of
  // labels that are much farther apart than this.
  double weight_unit() const {
    const double half = loss_.logistic() || loss_.poisson() ? 1.0 : 0.5 * high() - 0.5 * low();
    return half < 0x1p64 ? 1.0 : std::ldexp(1.0, std::ilogb(half) / 32 * 32);
  }

  // Sets the bounds of predictions as they are before the row.
  void look() {
    if (loss_.logistic()) {
      most_ = std::min(BankLoss::kLargestLogit, s_.clip);
      least_ = -most_;
    } else if (loss_.poisson()) {
      const double clock = s_.scalars[State::kClock];
      least_ = std::clamp(std::log(mean_count() / (clock + 1.0)), -s_.clip, s_.clip);
      most_ = high() > 0 ? std::clamp(std::log(high()), -s_.clip, s_.clip) : least_;
      least_ = std::min(least_, most_);
    } else {
      least_ = low();
      most_ = high();
    }
  }

  // An expert's score as a prediction within the bounds.
  double within(double score) const {
    return loss_.squared() ? unit(score) : std::clamp(score, least_, most_);
  }

  void within(Four& score) const {
    const bool squared = loss_.squared();
    const double least = squared ? low() : least_, most = squared ? high() : most_;
    score = score < least ? Four{} + least : score;
    score = score > most ? Four{} + most : score;
    if (squared) score = half() > 0 ? (score - middle()) / half() : Four{};
  }

  // Log odds as a prediction of the squared loss.
  static double of_odds(double odds) {  // tanh(odds/2)
    const Sigmoids chances(odds);
    return chances.up - chances.down;
  }
  static double within_odds(double odds) {
    return std::clamp(odds, -BankLoss::kLargestLogit, BankLoss::kLargestLogit);
  }
  static void within_odds(Four& odds) {
    odds = odds < -BankLoss::kLargestLogit ? Four{} - BankLoss::kLargestLogit : odds;
    odds = odds > BankLoss::kLargestLogit ? Four{} + BankLoss::kLargestLogit : odds;
  }

  // The label that is learned, on the scale of predictions; of counts and classes as it is.
  double learned(double label) const {
    if (loss_.squared()) return unit(label);
    if (loss_.logistic()) return label;
    return loss_.poisson() ? std::min(label, high()) : std::clamp(label, low(), high());
  }

  // A step that would leave the bounds ends there: else weights would grow without an effect.
  void stop(const Four& p, Four& step) const {
    if (!(s_.clip < INFINITY || loss_.poisson()) || loss_.squared()) return;
    const Four down = least_ - p, up = most_ - p;
    const Four least = down < 0.0 ? down : Four{}, most = up > 0.0 ? up : Four{};
    step = step < least ? least : step;
    step = step > most ? most : step;
  }

  // Is there anything to tell apart?
  bool open() const {
    return loss_.logistic() || (loss_.poisson() ? high() > 0 : 0.5 * high() - 0.5 * low() > 0);
  }

  // Is the distance of prediction and label no more than rounding?
  bool reached(double p, double y) const {
    if (loss_.mixable()) return false;
    const double from = loss_.poisson() ? std::exp(p) : p, range = high() - (loss_.poisson() ? 0.0 : low());
    return std::abs(from - y) < kReached * (0.5 * range);
  }

  bool none() const { return kind() == kNone; }
  bool classes() const { return kind() == kSigns; }
  bool rare_odds() const { return loss_.squared() && classes(); }  // are the scores of rare experts log odds?

  // The score of the constant expert, which knows nothing but labels: their mean, for classes with half a row
  // of each added; for losses whose best constant is no mean, where steps along their path have led.
  double usual() const {
    const double level = s_.scalars[State::kUsual];
    if (loss_.logistic()) return 2.0 * std::atanh(std::clamp(level, -1.0, 1.0));
    if (loss_.poisson()) return counted() ? std::log(mean_count()) : -INFINITY;
    return s_.scalars[State::kOffset] + level;
  }

  // p was its prediction, y the label on the same scale.
  void learn_usual(double p, double y, double h, double miss) {
    double &level = s_.scalars[State::kUsual], &rows = s_.scalars[State::kUsualRows];
    rows += h;
    if (loss_.mixable()) {
      const double target = loss_.squared() ? middle() + half() * y - s_.scalars[State::kOffset] : y;
      level += h * (target - level) / (rows + 1.0);
    } else if (!loss_.poisson()) {
      const double way = loss_.travel(p, y, h / std::sqrt(std::max(rows, 1.0)), miss);
      level += std::clamp(way, std::min(0.0, least_ - p), std::max(0.0, most_ - p));
    }
  }

  void meet(double label) {  // the first
    const bool sign = loss_.logistic() || (!loss_.poisson() && std::abs(label) == 1.0);
    const double held = bounded(label);
    s_.bank_counts[State::kLabels] = sign ? kSigns : kRange;
    if (!sign && !loss_.poisson())
      s_.scalars[State::kOffset] = s_.scalars[State::kLow] = s_.scalars[State::kHigh] = held;
    if (loss_.poisson()) s_.scalars[State::kLow] = s_.scalars[State::kHigh] = 0;
    s_.scalars[State::kSeenLow] = s_.scalars[State::kSeenHigh] = held;
  }

  // Farther from the range than it is wide: taken into the range, up to a point, but not learned.
  bool wild(double label) const {
    const double held = bounded(label);
    return kind() == kRange && !free() &&
           (held > high() + (high() - low()) || held < low() - (high() - low()));
  }

  // Has it turned out that labels learned so far are wild? Then scores are counted from another label, and
  // the range is that of the others.
  bool starts_again() {
    if (!std::exchange(news_, false) || kind() != kRange) return false;
    const auto [first, least, most] = first_.usual();
    if (!(least < most) || (least <= low() && high() <= most)) return false;
    s_.scalars[State::kOffset] = first;
    s_.scalars[State::kLow] = std::max(least, low());
    s_.scalars[State::kHigh] = std::min(most, high());
    first_.start_again();
    return true;
  }

  // The range of labels grows after the row that showed it has been learned, as the nearest label within;
  // past the first rows at most twofold, so that one wild label does not take the measure from all others.
  // Returns the old width as a share of the new.
  double widen(double label, double h) {
    if (loss_.logistic()) return 1.0;
    if (loss_.poisson()) return widen_counts(label, h);
    const double held = bounded(label);
    s_.scalars[State::kSeenLow] = std::min(s_.scalars[State::kSeenLow], held);
    s_.scalars[State::kSeenHigh] = std::max(s_.scalars[State::kSeenHigh], held);
    const bool signs = classes();
    if (signs && std::abs(label) == 1.0) {
      meet_first(held);
      return 1.0;
    }
    const double old = 0.5 * high() - 0.5 * low();
    const double room = !free() && old > 0 ? 2 * old : INFINITY;
    const double least = signs ? s_.scalars[State::kSeenLow] : std::min(low(), held);
    const double most = signs ? s_.scalars[State::kSeenHigh] : std::max(high(), held);
    s_.bank_counts[State::kLabels] = kRange;
    s_.scalars[State::kLow] = std::max(low() - room, least);
    s_.scalars[State::kHigh] = std::min(high() + room, most);
    const double now = 0.5 * high() - 0.5 * low();       // 0 if `clip` makes all labels the same
    if (now > 0 || first_.none_met()) meet_first(held);  // a run of equal ones is one label
    return old > 0 && now > 0 ? old / now : 1.0;
  }

 private:
  enum { kNone, kSigns, kRange };           // none so far, only −1 and +1, anything
  static constexpr std::int64_t kFree = 8;  // rows in which the largest count grows at will
  static constexpr double kReached = 1e-9;

  void meet_first(double label) {
    if (first_.all_met()) return;
    first_.meet(label);
    news_ = true;
  }

  // Is the range to grow at will? As long as there are few labels.
  bool free() const { return loss_.poisson() ? s_.counts[State::kRounds] <= kFree : !first_.all_met(); }

  double low() const { return s_.scalars[State::kLow]; }
  double high() const { return s_.scalars[State::kHigh]; }
  std::int64_t kind() const { return s_.bank_counts[State::kLabels]; }

  bool counted() const { return high() > 0 && s_.scalars[State::kClock] > 0; }  // any count but 0?
  double mean_count() const {
    if (!counted()) return 1.0;
    return std::max(s_.scalars[State::kTotal] / s_.scalars[State::kClock],
                    std::numeric_limits<double>::min());
  }

  double unit(double score) const {
    return half() > 0 ? (std::clamp(score, low(), high()) - middle()) / half() : 0.0;
  }

  // A label beyond `clip` is one at it. Counts are not predictions: clip bounds their logarithm.
  double bounded(double label) const {
    return loss_.poisson() ? label : std::clamp(label, -s_.clip, s_.clip);
  }

  double widen_counts(double label, double h) {
    const double old = high();
    if (old == 0 && label > 0) s_.scalars[State::kOffset] = std::log(label);
    const double room = s_.counts[State::kRounds] > kFree && old > 0 ? 2 * old : INFINITY;
    s_.scalars[State::kTotal] += h * (old > 0 ? std::min(label, old) : label);
    s_.scalars[State::kHigh] = std::min(std::max(old, label), room);
    s_.scalars[State::kSeenLow] = std::min(s_.scalars[State::kSeenLow], label);
    s_.scalars[State::kSeenHigh] = std::max(s_.scalars[State::kSeenHigh], label);
    return 1.0;
  }

  BankState<T> s_;
  BankLoss loss_;
  FirstLabels first_;
  bool news_ = false;  // there is one more of them
  double least_ = -1, most_ = 1;
};

}  // namespace skn
