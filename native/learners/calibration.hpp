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

#include "core/elementary.hpp"
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
    if (logistic_) return Sigmoids(std::clamp(score, -kLargestLogit, kLargestLogit)).up;
    const double counted = std::min(rows, kMemory * classes), half = 0.5 * std::clamp(score, -1.0, 1.0);
    return (counted * (0.5 + half) + 1.0) / (counted + 2.0);
  }
  double log_odds(double score, double p) const {
    return logistic_ ? odds(score, p) : log_one(odds(score, p));
  }
  // Of the logistic loss the logarithm.
  double odds(double score, double p) const {
    return logistic_ ? std::clamp(score, -kLargestLogit, kLargestLogit) : p / (1.0 - p);
  }
  bool logistic() const { return logistic_; }

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
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double h = weights == nullptr ? 1.0 : weights[i], label = labels[i];
      if (std::abs(label) == 1.0 && h > 0 && std::isfinite(h) && std::isfinite(scores[i]))
        block_[count++] = {scores[i], h, 0.5 - 0.5 * label};
      if (count == kBlock || (i + 1 == n && count > 0)) {
        learn_block(count);
        count = 0;
      }
    }
  }

  // The probability of +1.
  double of(double score) const {
    if (std::isnan(score)) return score;
    const double p = mixed(side(score), say(score));
    return mixed_[0] * p + mixed_[1] * corrected(p, clock());
  }

 private:
  static constexpr std::int64_t kBlock = 64;  // rows
  static constexpr double kHeaviest = 100.0;  // row that teaches
  static constexpr double kLeast = 1e-300;
  static constexpr double kSurest = 0x1p-50;  // a quarter of it can still be taken from 1
  static constexpr double kDoubt = 30.0;      // rows at a node before its correction counts half
  static constexpr double kFarthest = 4.0;    // a correction divides no probability by more
  static constexpr double kSteps = State::kNodes - 1;

  // A row to be learned: then its probability, and the weight of all rows before it.
  struct Learned {
    double score, h;
    double other;  // 0 for the label 1, 1 for −1: labels cannot be foreseen, so there is no branch
    double p = 0, clock = 0;
  };

  struct Said {
    double raw, tempered;  // probabilities of +1
    double b, g;           // ln p − p and p of +1 less those of −1
  };

  struct Place {
    std::int64_t node;
    double share;  // of the next one
  };

  double* side(double score) const { return s_ + State::kWidth * static_cast<std::int64_t>(score > 0); }
  double clock() const { return s_[State::kClock] + s_[State::kWidth + State::kClock]; }

  // Of the score of the row that is `ahead` rows after the next.
  double raw(double score, double ahead) const {
    return chances_.of(score, s_[State::kRows] + s_[State::kWidth + State::kRows] + ahead, 2.0);
  }

  Said say(double score) const {
    const double p = raw(score, 0.0), g = 2.0 * p - 1.0;
    return say(score, p, g, chances_.log_odds(score, p) - g);
  }
  Said say(double score, double p, double g, double b) const {
    const Temper temper(side(score));
    return {p, Sigmoids(temper[Temper::kBeta] * b + temper[Temper::kGamma] * g).up, b, g};
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
    const auto [node, share] = place(p);
    const double doubt = kDoubt * clock + kLeast;  // before the first row there is nothing to divide by
    const auto to = [&](std::int64_t i) {
      return static_cast<double>(i) / kSteps + nodes_[2 * i + 1] / (nodes_[2 * i] + doubt);
    };
    // The highest up to the node and the lowest beyond it, of all four at a time but the first and the last.
    Four highest = Four{} + to(0), lowest = Four{} + to(State::kNodes - 1), at = {1.0, 2.0, 3.0, 4.0};
    const Four here_at = Four{} + static_cast<double>(node);
    for (std::int64_t i = 1; i < State::kNodes - 1; i += 4, at += 4.0) {
      Four weight, sum;  // the last of them all is among the lowest anyway
      assemble(nodes_ + 2 * i, weight, 2);
      assemble(nodes_ + 2 * i + 1, sum, 2);
      const Four moved = at * (1.0 / kSteps) + sum / (weight + doubt);
      const Four low = at > here_at ? moved : lowest, high = at > here_at ? highest : moved;
      highest = high > highest ? high : highest;
      lowest = low < lowest ? low : lowest;
    }
    const double top = std::max(std::max(highest[0], highest[1]), std::max(highest[2], highest[3])),
                 bottom = std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3]));
    const double here = 0.5 * (top + std::min(to(node), bottom)),
                 next = 0.5 * (std::max(top, to(node + 1)) + bottom);
    const double moved = (1.0 - share) * here + share * next;
    const double least = std::min(p, 1.0 - p) / kFarthest;
    return std::clamp(moved, if_above(p, 0.5, 0.5, least), if_above(p, 0.5, 1.0 - least, 0.5));
  }

  // In parts, of which each has its own numbers that the next row waits for: rows can overlap in each. What
  // scores say does not depend on the rows before, but for their number.
  void learn_block(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 4) {
      for (std::int64_t j = i; j < i + 4; ++j) {
        const double score = block_[std::min(j, count - 1)].score;
        raw_[j] = raw(score, static_cast<double>(j));
        odds_[j] = chances_.odds(score, raw_[j]);
      }
      Four odds;
      assemble(&odds_[i], odds);
      if (!chances_.logistic()) log_four(odds);
      four(&odds_[i]) = odds;
    }
    for (std::int64_t i = 0; i < count; ++i) temper(block_[i], raw_[i], odds_[i]);
    for (std::int64_t i = 0; i < count; ++i) correct(block_[i]);
  }

  // How sure the row's side may be. The row has the probability from now on, and the clock.
  void temper(Learned& row, double raw, double odds) {
    const double g = 2.0 * raw - 1.0;
    const Said said = say(row.score, raw, g, odds - g);
    double* its = side(row.score);
    const double q = said.tempered, other = row.other;
    row.p = mixed(its, said);
    row.clock = clock();
    its[State::kRows] += 1.0;
    its[State::kClock] += row.h;
    const double h = std::min(row.h, kHeaviest), spread = q * (1.0 - q), above = (1.0 - other) - q;
    Temper temper(its);
    temper.learn(spread * said.b * said.b, spread * said.b * said.g, spread * said.g * said.g, above * said.b,
                 above * said.g, h, its[State::kRows]);
    // |q − other| is q, or 1 − q of the other class: no branch
    weigh(std::abs(said.raw - other), std::max(std::abs(q - other), kLeast), h,
          1.0 / (its[State::kClock] + 1.0), temper.weights());
  }

  void correct(const Learned& row) {
    const double p = row.p, better = corrected(p, row.clock), other = row.other;
    const double now = row.clock + row.h, h = std::min(row.h, kHeaviest);
    weigh(std::abs(p - other), std::abs(better - other), h, 1.0 / (now + 1.0), mixed_);
    const auto [node, part] = place(p);
    for (const auto& [i, near] : {std::pair{node, 1.0 - part}, std::pair{node + 1, part}}) {
      nodes_[2 * i] += now * h * near;
      nodes_[2 * i + 1] += now * h * near * ((1.0 - other) - p);
    }
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
  std::array<Learned, kBlock> block_{};
  std::array<double, kBlock> raw_{}, odds_{};
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
