// Probabilities of classes that sum to one: softmax, how experts' weights follow from them, and calibration.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"

namespace skn {

// v ← v e^{−h·cost}, of which a fraction `share` is shared equally. The sum is one.
inline void reweigh(double* cost, double h, double share, double* v, std::int64_t n) {
  const double least = *std::min_element(cost, cost + n);
  double sum = 0;
  for (std::int64_t e = 0; e < n; ++e) sum += v[e] *= std::exp(-h * (cost[e] - least));
  if (!(sum > 0)) {  // those that were right had no weight at all
    for (std::int64_t e = 0; e < n; ++e) sum += v[e] = cost[e] == least ? 1.0 : 0.0;
  }
  for (std::int64_t e = 0; e < n; ++e) v[e] = (1.0 - share) * v[e] / sum + share / static_cast<double>(n);
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
      : of_(numbers), K_(classes), q_(classes), log_(classes) {}

  // `raw` is p divided by its sum; it may be p itself.
  void play(const double* p, const double* raw, double* out) {
    double top = -INFINITY, sum = 0;
    std::copy_n(p, K_, log_.data());
    log_all(log_.data(), K_);
    for (std::int64_t k = 0; k < K_; ++k) {
      q_[k] = of_.score(log_[k], p[k]);
      top = std::max(top, q_[k]);
    }
    for (std::int64_t k = 0; k < K_; ++k) q_[k] = std::max(q_[k] - top, kFarthest);
    exp_all(q_.data(), K_);
    for (std::int64_t k = 0; k < K_; ++k) sum += q_[k];
    const double per = 1.0 / sum;
    for (std::int64_t k = 0; k < K_; ++k) {
      q_[k] *= per;
      out[k] = of_[Temper::kRaw] * raw[k] + of_[Temper::kTempered] * q_[k];
    }
  }

  // Learns the class of the row that was played, as row t.
  void learn(const double* p, const double* raw, std::int64_t label, double h, std::int64_t t, double clock) {
    double mean_b = 0, mean_g = 0, bb = 0, bg = 0, gg = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
      const double b = log_[k] - p[k], g = p[k];
      mean_b += q_[k] * b;
      mean_g += q_[k] * g;
      bb += q_[k] * b * b;
      bg += q_[k] * b * g;
      gg += q_[k] * g * g;
    }
    double cost[2] = {-std::log(raw[label]), -std::log(q_[label])};
    of_.learn(bb - mean_b * mean_b, bg - mean_b * mean_g, gg - mean_g * mean_g,
              log_[label] - p[label] - mean_b, p[label] - mean_g, h, static_cast<double>(t));
    reweigh(cost, h, 1.0 / (clock + 1.0), of_.weights(), 2);
  }

 private:
  static constexpr double kFarthest = -690;  // from the largest score: e^−690 is 10⁻³⁰⁰

  Temper of_;
  std::int64_t K_;
  std::vector<double> q_, log_;  // of the row played: Q, ln p
};

}  // namespace skn
