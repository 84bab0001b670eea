// Several experts' predictions become one.
//
//   squared    Vovk's aggregating rule: mixable with rate ½ on [−1, 1], where it never loses more than
//              −2 ln Σ v_k e^{−ℓ_k/2}
//   logistic   mixable with rate 1: the mixture of the experts' probabilities
//   others     AdaHedge (de Rooij, van Erven, Grünwald, Koolen 2014): the mean of the experts (of their
//              expected counts), weighted with a rate that follows from what weighting has cost so far
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "learners/bank_loss.hpp"

namespace skn {

// The rate of AdaHedge, ln K over the total of the gaps between the mean loss and the mix loss
// −ln(Σ v e^{−rate·ℓ})/rate. It has the unit of one over the loss, so that units do not matter. 0: none yet.
struct HedgeRate {
  double &rate, &gaps;
};

struct Aggregate {
  BankLoss of;

  static constexpr std::int64_t kMost = 16;  // experts

  struct Played {
    double all, others;  // the prediction that is played, and what it would be without one of the experts
  };

  // For experts p with shares v; `one` of them is left out in the second. up and down become v_k
  // e^{−rate·ℓ_k} for the labels 1 and −1, if the loss is mixable.
  Played mix(const double* p, const double* v, std::int64_t n, std::int64_t one, double* up,
             double* down) const {
    double above = 0, below = 0, weight = 0, least = p[0], most = p[0];
    for (std::int64_t k = 0; k < n; ++k) {
      least = std::min(least, p[k]);
      most = std::max(most, p[k]);
      if (of.squared()) {  // e^{−(p∓1)²/2} = e^{−(p²+1)/2} e^{±p}
        const double e = std::exp(p[k]), common = v[k] * std::exp(-0.5 * (p[k] * p[k] + 1.0));
        up[k] = common * e;
        down[k] = common / e;
      } else if (of.logistic()) {  // σ(p) and σ(−p)
        const double e = std::exp(-std::abs(p[k])), large = v[k] / (1.0 + e), small = e * large;
        up[k] = p[k] >= 0 ? large : small;
        down[k] = p[k] >= 0 ? small : large;
      } else {
        up[k] = v[k] * (of.poisson() ? std::exp(p[k]) : p[k]);
        down[k] = 0;
      }
      if (k == one) continue;
      above += up[k];
      below += down[k];
      weight += v[k];
    }
    const double all = std::clamp(played(above + up[one], below + down[one], weight + v[one]), least, most);
    return {all, weight > 0 ? std::clamp(played(above, below, weight), least, most) : all};
  }

  // Shares after a row of weight h, of which a fraction `share` is redistributed. up and down are those of
  // mix().
  void charge(const double* p, double y, double h, double share, double* v, std::int64_t n, const double* up,
              const double* down, HedgeRate hedge) const {
    if (of.mixable() && h == 1.0 && std::abs(y) == 1.0) {
      std::copy_n(y > 0 ? up : down, n, v);
      return deal(share, v, n);
    }
    double cost[kMost], least = INFINITY;
    const double rate = of.squared() ? 0.5 : 1.0;
    for (std::int64_t k = 0; k < n; ++k) {
      cost[k] = rate * of.loss.value(p[k], y);
      least = std::min(least, cost[k]);
    }
    for (std::int64_t k = 0; k < n; ++k) cost[k] = h * (cost[k] - least);
    if (!of.mixable()) return charge_hedge(cost, share, v, n, hedge);
    for (std::int64_t k = 0; k < n; ++k) v[k] *= std::exp(-cost[k]);
    deal(share, v, n);
  }

  // Of `all` experts the first n remain.
  static void leave(double* v, std::int64_t n, std::int64_t all) {
    std::fill(v + n, v + all, 0.0);
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += v[k];
    for (std::int64_t k = 0; k < n; ++k) v[k] = sum > 0 ? v[k] / sum : 1.0 / static_cast<double>(n);
  }

  static void temper(double power, double* v, std::int64_t n) {  // v ← v^power
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += v[k] = std::pow(v[k], power);
    for (std::int64_t k = 0; k < n; ++k) v[k] /= sum;
  }

 private:
  static constexpr double kNoGap = 1e-290;

  // Of sums over experts of `weight` in all.
  double played(double above, double below, double weight) const {
    if (of.squared()) return 0.5 * std::log(above / below);
    if (of.logistic()) return std::log(above / below);
    return of.poisson() ? std::log(above / weight) : above / weight;
  }

  // Costs are those above the least.
  static void charge_hedge(const double* cost, double share, double* v, std::int64_t n, HedgeRate hedge) {
    double mean = 0;
    for (std::int64_t k = 0; k < n; ++k) mean += v[k] * cost[k];
    const double scale = std::log(static_cast<double>(n)), old = hedge.rate;
    if (old == 0) {  // no expert has been better than another so far: the rate is infinite
      hedge.gaps += mean;
      if (!(hedge.gaps > kNoGap)) return;
      hedge.rate = scale / hedge.gaps;
      for (std::int64_t k = 0; k < n; ++k) v[k] *= std::exp(-hedge.rate * cost[k]);
      return deal(share, v, n);
    }
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += v[k] *= std::exp(-old * cost[k]);
    hedge.gaps += std::max(0.0, mean + std::log(sum) / old);
    hedge.rate = scale / hedge.gaps;
    deal(share, v, n);
    if (hedge.rate < old) temper(hedge.rate / old, v, n);
  }

  static void deal(double share, double* v, std::int64_t n) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += v[k];
    const double kept = (1.0 - share) / sum, dealt = share / static_cast<double>(n);
    for (std::int64_t k = 0; k < n; ++k) v[k] = kept * v[k] + dealt;
  }
};

}  // namespace skn
