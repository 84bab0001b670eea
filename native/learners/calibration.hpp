// Probabilities of classes that come true as often as they say, by the scores of learners of ±1 labels.
//
// A score s says p = σ(s) of its class if the loss is logistic, else p = (1 + s)/2, by Laplace's rule away from 0
// and 1. How sure that may be is learned (class_temper.hpp): of two classes, which one learner tells apart,
// for either side of 0 on its own, as one class may be recognised more surely than the other; of K classes,
// each against the rest, for all at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/losses.hpp"
#include "learners/class_temper.hpp"

namespace skn {

// A side: the numbers of Temper, then how many rows it has learned and their weight.
struct CalibrationState {
  enum { kRows = Temper::kNumbers, kClock, kWidth };
  static constexpr std::int64_t kSides = 2;  // for two classes
};

class Chances {
 public:
  explicit Chances(bool logistic) : logistic_(logistic) {}

  // What a score says of its class, one of `classes`, after so many rows.
  double of(double score, double rows, double classes) const {
    if (logistic_) return sigmoid(std::clamp(score, -kLargestLogit, kLargestLogit));
    const double counted = std::min(rows, kMemory * classes), half = 0.5 * std::clamp(score, -1.0, 1.0);
    return (counted * (0.5 + half) + 1.0) / (counted + 2.0);
  }
  double log_odds(double score, double p) const {
    return logistic_ ? std::clamp(score, -kLargestLogit, kLargestLogit) : std::log(p / (1.0 - p));
  }

 private:
  static constexpr double kLargestLogit = 30, kMemory = 50;
  bool logistic_;
};

// Of two classes. Not more than two logarithms or exponentials a row: banks are fast.
class Calibration {
  using State = CalibrationState;

 public:
  Calibration(double* sides, bool logistic) : s_(sides), chances_(logistic) {}

  // Rows in the order in which they were learned; scores are those made before. Labels that are not ±1 are
  // no classes, and teach nothing.
  void learn(std::int64_t n, const double* labels, const double* weights, const double* scores) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double h = weights == nullptr ? 1.0 : weights[i];
      if (std::abs(labels[i]) == 1.0 && h > 0 && std::isfinite(h) && std::isfinite(scores[i]))
        learn(scores[i], labels[i], h);
    }
  }

  // The probability of +1.
  double of(double score) const {
    if (std::isnan(score)) return score;
    const Said said = say(score);
    const Temper temper(side(score));
    return temper[Temper::kRaw] * said.raw + temper[Temper::kTempered] * said.tempered;
  }

 private:
  static constexpr double kHeaviest = 100.0;  // row that teaches
  static constexpr double kLeast = 1e-300;

  struct Said {
    double raw, tempered;  // probabilities of +1
    double b, g;           // ln p − p and p of +1 less those of −1
  };

  double* side(double score) const { return s_ + (score > 0 ? State::kWidth : 0); }

  Said say(double score) const {
    const double p = chances_.of(score, s_[State::kRows] + s_[State::kWidth + State::kRows], 2.0);
    const double g = 2.0 * p - 1.0, b = chances_.log_odds(score, p) - g;
    const Temper temper(side(score));
    return {p, sigmoid(temper[Temper::kBeta] * b + temper[Temper::kGamma] * g), b, g};
  }

  void learn(double score, double y, double h) {
    const Said said = say(score);
    double* its = side(score);
    Temper temper(its);
    const double q = said.tempered, spread = q * (1.0 - q), above = (y > 0 ? 1.0 : 0.0) - q;
    its[State::kRows] += 1.0;
    its[State::kClock] += h;
    h = std::min(h, kHeaviest);
    temper.learn(spread * said.b * said.b, spread * said.b * said.g, spread * said.g * said.g, above * said.b,
                 above * said.g, h, its[State::kRows]);
    const double raw = y > 0 ? said.raw : 1.0 - said.raw, tempered = std::max(y > 0 ? q : 1.0 - q, kLeast);
    const double share = 1.0 / (its[State::kClock] + 1.0);
    double* v = temper.weights();
    if (h != 1.0) {
      double cost[2] = {-std::log(raw), -std::log(tempered)};
      return reweigh(cost, h, share, v, 2);
    }
    const double one = v[0] * raw, two = v[1] * tempered;  // without logarithms
    v[0] = (1.0 - share) * (one / (one + two)) + 0.5 * share;
    v[1] = (1.0 - share) * (two / (one + two)) + 0.5 * share;
  }

  double* s_;  // kSides × kWidth
  Chances chances_;
};

// Of K classes, each of which has a learner's score against the rest.
class ClassCalibration {
  using State = CalibrationState;

 public:
  ClassCalibration(double* side, bool logistic, std::int64_t classes)
      : s_(side), chances_(logistic), K_(classes), temper_(side, classes), p_(classes), raw_(classes) {}

  // Rows as in Calibration, K scores each; labels are 0 … K − 1.
  void learn(std::int64_t n, const double* labels, const double* weights, const double* scores) {
    played_.resize(static_cast<std::size_t>(K_));
    for (std::int64_t i = 0; i < n; ++i, scores += K_) {
      const double h = weights == nullptr ? 1.0 : weights[i], label = labels[i];  // which may change any time
      if (!(label >= 0 && label < static_cast<double>(K_) && h > 0 && std::isfinite(h))) continue;
      if (!std::all_of(scores, scores + K_, [](double s) { return std::isfinite(s); })) continue;
      play(scores, played_.data());
      s_[State::kClock] += h;
      const auto t = static_cast<std::int64_t>(s_[State::kRows] += 1.0);
      temper_.learn(p_.data(), raw_.data(), static_cast<std::int64_t>(label), std::min(h, kHeaviest), t,
                    s_[State::kClock]);
    }
  }

  // Probabilities, which sum to one.
  void play(const double* scores, double* out) {
    double sum = 0;
    for (std::int64_t k = 0; k < K_; ++k)
      sum += p_[k] = chances_.of(scores[k], s_[State::kRows], static_cast<double>(K_));
    for (std::int64_t k = 0; k < K_; ++k) raw_[k] = p_[k] / sum;
    temper_.play(p_.data(), raw_.data(), out);
  }

 private:
  static constexpr double kHeaviest = 100.0;

  double* s_;  // kWidth
  Chances chances_;
  std::int64_t K_;
  ClassTemper temper_;
  std::vector<double> p_, raw_, played_;
};

}  // namespace skn
