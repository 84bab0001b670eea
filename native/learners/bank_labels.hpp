// The labels of a bank (bank.hpp): classes or numbers, and the range in which predictions lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "learners/bank_state.hpp"

namespace skn {

template <class T>
class BankLabels {
  using State = BankState<T>;

 public:
  BankLabels(const BankState<T>& state, bool logistic) : s_(state), logistic_(logistic) {}

  // Scores are middle + half · p, p in units where labels fill [−1, 1]; logits are what they are.
  double middle() const { return logistic_ ? 0.0 : 0.5 * low() + 0.5 * high(); }
  double half() const { return logistic_ ? 1.0 : 0.5 * high() - 0.5 * low(); }
  double unit(double score) const {
    return half() > 0 ? (std::clamp(score, low(), high()) - middle()) / half() : 0.0;
  }

  bool none() const { return kind() == kNone; }
  bool classes() const { return kind() == kSigns; }

  void meet(double label) {  // the first
    const bool sign = logistic_ || std::abs(label) == 1.0;
    s_.bank_counts[State::kLabels] = sign ? kSigns : kRange;
    if (!sign) s_.scalars[State::kOffset] = s_.scalars[State::kLow] = s_.scalars[State::kHigh] = label;
    s_.scalars[State::kSeenLow] = s_.scalars[State::kSeenHigh] = label;
  }

  // Farther from the range than it is wide: taken into the range, up to a point, but not learned.
  bool wild(double label) const {
    return kind() == kRange && s_.counts[State::kRounds] > kFree &&
           (label > high() + (high() - low()) || label < low() - (high() - low()));
  }

  // The range of labels grows after the row that showed it has been learned, as the nearest label within;
  // past the first rows at most twofold, so that one wild label does not take the measure from all others.
  // Returns the old width as a share of the new.
  double widen(double label) {
    if (logistic_) return 1.0;
    s_.scalars[State::kSeenLow] = std::min(s_.scalars[State::kSeenLow], label);
    s_.scalars[State::kSeenHigh] = std::max(s_.scalars[State::kSeenHigh], label);
    const bool signs = classes();
    if (signs && std::abs(label) == 1.0) return 1.0;
    const double old = half(), room = s_.counts[State::kRounds] > kFree && old > 0 ? 2 * old : INFINITY;
    const double least = signs ? s_.scalars[State::kSeenLow] : std::min(low(), label);
    const double most = signs ? s_.scalars[State::kSeenHigh] : std::max(high(), label);
    s_.bank_counts[State::kLabels] = kRange;
    s_.scalars[State::kLow] = std::max(low() - room, least);
    s_.scalars[State::kHigh] = std::min(high() + room, most);
    return old > 0 ? old / half() : 1.0;
  }

 private:
  enum { kNone, kSigns, kRange };           // none so far, only −1 and +1, anything
  static constexpr std::int64_t kFree = 8;  // rows in which the range of labels grows at will

  double low() const { return s_.scalars[State::kLow]; }
  double high() const { return s_.scalars[State::kHigh]; }
  std::int64_t kind() const { return s_.bank_counts[State::kLabels]; }

  BankState<T> s_;
  bool logistic_;
};

}  // namespace skn
