// Probabilities of classes that come true as often as they say, by the scores of learners of ±1 labels.
//
// A score s says p = σ(s) of its class if the loss is logistic, else p = (1 + s)/2, by Laplace's rule away
// from 0 and 1. How sure that may be is learned (class_temper.hpp): of two classes, which one learner tells
// apart, for either side of 0 on its own, as one class may be recognised more surely than the other; of K
// classes, each against the rest, for all at once. Of two classes, what is still off is then corrected by
// what came of rows with about the same probability.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/losses.hpp"
#include "learners/class_temper.hpp"

namespace skn {

// A side: the numbers of Temper, then how many rows it has learned and their weight.
struct CalibrationState {
  enum { kRows = Temper::kNumbers, kClock, kWidth };
  static constexpr std::int64_t kSides = 2;  // for two classes
  // For as many probabilities from 0 to 1: weight of the rows near it, and sum of label (0 or 1) less
  // probability over them. Then the weights of probabilities as they are and corrected.
  static constexpr std::int64_t kNodes = 17, kCorrections = kNodes + 1;
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

// Of two classes. A row takes two logarithms or exponentials: banks are fast.
class Calibration {
  using State = CalibrationState;

 public:
  Calibration(double* sides, double* corrections, bool logistic)
      : s_(sides), nodes_(corrections), mixed_(corrections + 2 * State::kNodes), chances_(logistic) {}

  // Rows in the order in which they were learned; scores are those made before. Labels that are not ±1 are
  // no classes, and teach nothing.
  void learn(std::int64_t n, const double* labels, const double* weights, const double* scores) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double h = weights == nullptr ? 1.0 : weights[i];
      if (std::abs(labels[i]) == 1.0 && h > 0 && std::isfinite(h) && std::isfinite(scores[i]))
        learn(scores[i], labels[i] > 0, h);
    }
  }

  // The probability of +1.
  double of(double score) const {
    if (std::isnan(score)) return score;
    const double p = mixed(side(score), say(score));
    return mixed_[0] * p + mixed_[1] * corrected(p, clock());
  }

 private:
  static constexpr double kHeaviest = 100.0;  // row that teaches
  static constexpr double kLeast = 1e-300;
  static constexpr double kSurest = 0x1p-50;  // a quarter of it can still be taken from 1
  static constexpr double kDoubt = 30.0;      // rows at a node before its correction counts half
  static constexpr double kFarthest = 4.0;    // a correction divides no probability by more
  static constexpr double kSteps = State::kNodes - 1;

  struct Said {
    double raw, tempered;  // probabilities of +1
    double b, g;           // ln p − p and p of +1 less those of −1
  };

  struct Place {
    std::int64_t node;
    double share;  // of the next one
  };

  double* side(double score) const { return s_ + (score > 0 ? State::kWidth : 0); }
  double clock() const { return s_[State::kClock] + s_[State::kWidth + State::kClock]; }

  Said say(double score) const {
    const double p = chances_.of(score, s_[State::kRows] + s_[State::kWidth + State::kRows], 2.0);
    const double g = 2.0 * p - 1.0, b = chances_.log_odds(score, p) - g;
    const Temper temper(side(score));
    return {p, sigmoid(temper[Temper::kBeta] * b + temper[Temper::kGamma] * g), b, g};
  }

  // Never 0 or 1, whatever the weights: what came has had some probability.
  static double mixed(const double* its, const Said& said) {
    const double p = its[Temper::kRaw] * said.raw + its[Temper::kTempered] * said.tempered;
    return std::clamp(p, kSurest, 1.0 - kSurest);
  }

  static Place place(double p) {
    const double at = p * kSteps;
    const auto node = std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, State::kNodes - 2);
    return {node, at - static_cast<double>(node)};
  }

  // Rows count by their place in the stream, so that half of the weight is that of the last 30%: the unit is
  // `clock`. ½ is not passed, as the sign of the score is the answer; nor does a larger probability become
  // the smaller one: a node moves to half way between the highest up to it and the lowest from it on.
  double corrected(double p, double clock) const {
    std::array<double, State::kNodes> to;
    for (std::int64_t i = 0; i < State::kNodes; ++i) {
      const double weight = nodes_[2 * i] + kDoubt * clock;
      to[i] = static_cast<double>(i) / kSteps + (weight > 0 ? nodes_[2 * i + 1] / weight : 0.0);
    }
    const auto [node, share] = place(p);
    double highest = to[0], lowest = to[State::kNodes - 1];
    for (std::int64_t i = 1; i < State::kNodes - 1; ++i) {  // as far for every node: no branch to guess
      highest = std::max(highest, i <= node ? to[i] : highest);
      lowest = std::min(lowest, i > node ? to[i] : lowest);
    }
    const double here = 0.5 * (highest + std::min(to[node], lowest)),
                 next = 0.5 * (std::max(highest, to[node + 1]) + lowest);
    const double moved = (1.0 - share) * here + share * next;
    const double least = std::min(p, 1.0 - p) / kFarthest;
    return p > 0.5 ? std::clamp(moved, 0.5, 1.0 - least) : std::clamp(moved, least, 0.5);
  }

  void learn(double score, bool positive, double h) {
    const Said said = say(score);
    double* its = side(score);
    const double p = mixed(its, said), q = said.tempered;
    const double raw = positive ? said.raw : 1.0 - said.raw,
                 tempered = std::max(positive ? q : 1.0 - q, kLeast);
    const double better = corrected(p, clock());
    its[State::kRows] += 1.0;
    its[State::kClock] += h;
    const double now = clock(), share = 1.0 / (its[State::kClock] + 1.0), y = positive ? 1.0 : 0.0;
    h = std::min(h, kHeaviest);
    weigh(positive ? p : 1.0 - p, positive ? better : 1.0 - better, h, 1.0 / (now + 1.0), mixed_);
    const auto [node, part] = place(p);
    for (const auto& [i, near] : {std::pair{node, 1.0 - part}, std::pair{node + 1, part}}) {
      nodes_[2 * i] += now * h * near;
      nodes_[2 * i + 1] += now * h * near * (y - p);
    }
    Temper temper(its);
    const double spread = q * (1.0 - q), above = y - q;
    temper.learn(spread * said.b * said.b, spread * said.b * said.g, spread * said.g * said.g, above * said.b,
                 above * said.g, h, its[State::kRows]);
    weigh(raw, tempered, h, share, temper.weights());
  }

  // Bayes' rule for two experts, by the probabilities that they gave to what came.
  static void weigh(double one, double two, double h, double share, double* v) {
    if (h != 1.0) {
      double cost[2] = {-std::log(one), -std::log(two)};
      return reweigh(cost, h, share, v, 2);
    }
    const double a = v[0] * one, b = v[1] * two;
    v[0] = (1.0 - share) * (a / (a + b)) + 0.5 * share;
    v[1] = (1.0 - share) * (b / (a + b)) + 0.5 * share;
  }

  double* s_;      // kSides × kWidth
  double* nodes_;  // kNodes × 2
  double* mixed_;  // 2
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
