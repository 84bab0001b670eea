// Probabilities of classes that sum to one: softmax, how experts' weights follow from them, and calibration.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"

namespace skn {

// Not copied first: a vector that was stored in parts would be waited for.
inline void logs(const double* from, double* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Four its = four(from + i);
    log_four(its);
    four(to + i) = its;
  }
  for (; i < n; ++i) to[i] = log_one(from[i]);
}

// v ← v e^{−h·cost}, of which a fraction `share` is shared equally. The sum is one.
inline void reweigh(double* cost, double h, double share, double* v, std::int64_t n) {
  const double least = *std::min_element(cost, cost + n);
  for (std::int64_t e = 0; e < n; ++e) cost[e] = std::max(-h * (cost[e] - least), -690.0);
  exp_all(cost, n);
  double sum = 0;
  for (std::int64_t e = 0; e < n; ++e) sum += v[e] *= cost[e];
  if (!(sum > 0)) {  // those that were right had no weight at all
    for (std::int64_t e = 0; e < n; ++e) sum += v[e] = cost[e] == 1.0 ? 1.0 : 0.0;
  }
  const double kept = (1.0 - share) / sum, dealt = share / static_cast<double>(n);
  for (std::int64_t e = 0; e < n; ++e) v[e] = kept * v[e] + dealt;
}

// How sure probabilities p may be has to be learned: Q ∝ exp(β(ln p − p) + γp), β and γ by Newton's method
// for −ln Q of the class that came, on about half of the rows so far. With β, γ ≥ 0 the order of classes
// stays. Played is the mixture of P, which is p divided by its sum, and Q, weighted like two experts.
class Temper {
 public:
  enum { kBeta, kGamma, kBB, kBG, kGG, kRaw, kTempered, kNumbers };  // curvature; weights of P and Q

  explicit Temper(double* numbers) : s_(numbers) {}

  double operator[](int i) const { return s_[i]; }
  double* weights() const { return s_ + kRaw; }

  // The logarithm of Q up to a constant, for ln p and p.
  double score(double log, double p) const { return s_[kBeta] * (log - p) + s_[kGamma] * p; }

  // After a row of weight h, the t-th: the covariance of (ln p − p, p) under Q, and what they are for the
  // class that came above their mean.
  void learn(double bb, double bg, double gg, double b, double g, double h, double t) {
    const double kept = 1.0 - 1.0 / (t + kFirst);
    s_[kBB] = kept * s_[kBB] + h * std::max(0.0, bb);
    s_[kBG] = kept * s_[kBG] + h * bg;
    s_[kGG] = kept * s_[kGG] + h * std::max(0.0, gg);
    move(h * b, h * g);
  }

 private:
  static constexpr double kFirst = 19, kRidge = 1e-3, kMost = 20;
  static constexpr double kLeastBeta = 0.05;  // Q is never the same for all classes

  // A step of Newton's method within β, γ ≥ 0.
  void move(double b, double g) {
    const double BB = s_[kBB] + kRidge, GG = s_[kGG] + kRidge, BG = s_[kBG];
    const double determinant = std::max(BB * GG - BG * BG, kRidge * kRidge);
    double beta = s_[kBeta] + (GG * b - BG * g) / determinant;
    double gamma = s_[kGamma] + (BB * g - BG * b) / determinant;
    if (gamma < 0) {
      gamma = 0;
      beta = s_[kBeta] + (b + BG * s_[kGamma]) / BB;
    } else if (beta < kLeastBeta) {
      beta = kLeastBeta;
      gamma = s_[kGamma] + (g + BG * (s_[kBeta] - beta)) / GG;
    }
    s_[kBeta] = std::clamp(beta, kLeastBeta, kMost);
    s_[kGamma] = std::clamp(gamma, 0.0, kMost);
  }

  double* s_;
};

// For K classes at once.
class ClassTemper {
 public:
  ClassTemper(double* numbers, std::int64_t classes)
      : of_(numbers), K_(classes), fours_(classes / 4 * 4), q_(classes), log_(classes) {}

  // `raw` is p divided by its sum; it may be p itself.
  void play(const double* p, const double* raw, double* out) {
    logs(p, log_.data(), K_);
    Four highest = Four{} - INFINITY;
    for (std::int64_t k = 0; k < fours_; k += 4) {
      const Four its =
          of_[Temper::kBeta] * (four(&log_[k]) - four(p + k)) + of_[Temper::kGamma] * four(p + k);
      highest = highest < its ? its : highest;
      four(&q_[k]) = its;
    }
    double top = std::max(std::max(highest[0], highest[1]), std::max(highest[2], highest[3]));
    for (std::int64_t k = fours_; k < K_; ++k) top = std::max(top, q_[k] = of_.score(log_[k], p[k]));
    for (std::int64_t k = 0; k < K_; ++k) q_[k] = std::max(q_[k] - top, kFarthest);
    exp_all(q_.data(), K_);
    Four sums{};
    for (std::int64_t k = 0; k < fours_; k += 4) sums += four(&q_[k]);
    double sum = total(sums);
    for (std::int64_t k = fours_; k < K_; ++k) sum += q_[k];
    const double per = 1.0 / sum;
    for (std::int64_t k = 0; k < K_; ++k) {
      q_[k] *= per;
      out[k] = of_[Temper::kRaw] * raw[k] + of_[Temper::kTempered] * q_[k];
    }
  }

  // Learns the class of the row that was played, as row t.
  void learn(const double* p, const double* raw, std::int64_t label, double h, std::int64_t t, double clock) {
    Moments m;
    for (std::int64_t k = 0; k < fours_; k += 4)
      m.add(four(&q_[k]), four(&log_[k]) - four(p + k), four(p + k));
    if (fours_ < K_) m.add(last(q_.data()), last(log_.data()) - last(p), last(p));
    const double mean_b = total(m.b), mean_g = total(m.g);
    double cost[2] = {-log_one(raw[label]), -log_one(q_[label])};
    of_.learn(total(m.bb) - mean_b * mean_b, total(m.bg) - mean_b * mean_g, total(m.gg) - mean_g * mean_g,
              log_[label] - p[label] - mean_b, p[label] - mean_g, h, static_cast<double>(t));
    reweigh(cost, h, 1.0 / (clock + 1.0), of_.weights(), 2);
  }

 private:
  static constexpr double kFarthest = -690;  // from the largest score: e^−690 is 10⁻³⁰⁰

  // Of (ln p − p, p) under Q.
  struct Moments {
    Four b{}, g{}, bb{}, bg{}, gg{};

    void add(const Four& q, const Four& its_b, const Four& its_g) {
      const Four qb = q * its_b, qg = q * its_g;
      b += qb;
      g += qg;
      bb += qb * its_b;
      bg += qb * its_g;
      gg += qg * its_g;
    }
  };

  // The classes after the last whole four, then zeros.
  Four last(const double* of) const {
    Four its{};
    for (std::int64_t k = fours_; k < K_; ++k) its[k - fours_] = of[k];
    return its;
  }

  Temper of_;
  std::int64_t K_, fours_;       // classes, those in whole fours
  std::vector<double> q_, log_;  // of the row played: Q, ln p
};

}  // namespace skn
