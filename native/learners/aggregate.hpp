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

#include "core/elementary.hpp"
#include "core/small_matrix.hpp"
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
    double up, down;     // sums of those below
  };

  // For experts p with shares v; `one` of them is left out in the second. up and down become v_k
  // e^{−rate·ℓ_k} for the labels 1 and −1, if the loss is mixable. Arrays of p, up and down have room for
  // kMost.
  void mix(const double* p, const double* v, std::int64_t n, std::int64_t one, double* up, double* down,
           Played& to) const {
    if (!of.mixable()) return mix_mean(p, v, n, one, up, to);
    Four above{}, below{}, least = Four{} + p[0], most = least;
    for (std::int64_t k = 0; k < n; k += 4) {
      Four its, share, ups, downs;
      load(p + k, n - k, p[0], its);
      load(v + k, n - k, 0.0, share);
      least = its < least ? its : least;
      most = its > most ? its : most;
      if (of.squared()) {
        ups = its - 1.0;
        downs = its + 1.0;
        ups *= -0.5 * ups;
        downs *= -0.5 * downs;
        exp_four(ups);
        exp_four(downs);
        ups *= share;
        downs *= share;
      } else {  // σ(p) and σ(−p)
        Four e = its > 0.0 ? -its : its;
        exp_four(e);
        const Four large = share / (1.0 + e), small = e * large;
        ups = its >= 0.0 ? large : small;
        downs = its >= 0.0 ? small : large;
      }
      four(up + k) = ups;
      four(down + k) = downs;
      const Lane kept = kLanes + k != one;
      above += kept ? ups : Four{};
      below += kept ? downs : Four{};
    }
    const double others_up = total(above), others_down = total(below);
    const double all_up = others_up + up[one], all_down = others_down + down[one];
    Four logs = {all_up / all_down, others_up / others_down, 1.0, 1.0};
    log_four(logs);
    if (of.squared()) logs *= 0.5;
    const double low = std::min(std::min(least[0], least[1]), std::min(least[2], least[3])),
                 high = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    const double all = std::clamp(logs[0], low, high);
    to.all = all;
    to.others = others_up > 0 ? std::clamp(logs[1], low, high) : all;
    to.up = all_up;
    to.down = all_down;
  }

  // Shares after a row of weight h, of which a fraction `share` is redistributed. up, down and what was
  // played are those of mix().
  void charge(const double* p, double y, double h, double share, double* v, std::int64_t n, const double* up,
              const double* down, const Played& played, HedgeRate hedge) const {
    if (of.mixable() && h == 1.0 && std::abs(y) == 1.0) {
      const double* const its[] = {down, up};  // labels cannot be foreseen: no branch
      return deal(share, its[y > 0], if_above(y, 0.0, played.up, played.down), v, n);
    }
    double cost[kMost] = {}, least = INFINITY;
    const double rate = of.squared() ? 0.5 : 1.0;
    for (std::int64_t k = 0; k < n; ++k) {
      cost[k] = rate * of.loss.value(p[k], y);
      least = std::min(least, cost[k]);
    }
    for (std::int64_t k = 0; k < n; ++k) cost[k] = h * (cost[k] - least);
    if (!of.mixable()) return charge_hedge(cost, share, v, n, hedge);
    deal(share, v, fall(1.0, cost, v, n), v, n);
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
  static constexpr double kFarthest = -700;  // e^−700 is 10⁻³⁰⁴

  using Lane [[gnu::vector_size(32)]] = std::int64_t;
  static constexpr Lane kLanes = {0, 1, 2, 3};

  // Four of `count` numbers; beyond them there is `rest`.
  static void load(const double* from, std::int64_t count, double rest, Four& to) {
    to = Four{} + rest;
    if (count >= 4) {
      to = four(from);
      return;
    }
    for (std::int64_t k = 0; k < count; ++k) to[k] = from[k];
  }

  void mix_mean(const double* p, const double* v, std::int64_t n, std::int64_t one, double* up,
                Played& to) const {
    double above = 0, weight = 0, least = p[0], most = p[0];
    for (std::int64_t k = 0; k < n; ++k) {
      least = std::min(least, p[k]);
      most = std::max(most, p[k]);
      up[k] = v[k] * (of.poisson() ? std::exp(p[k]) : p[k]);
      if (k == one) continue;
      above += up[k];
      weight += v[k];
    }
    const auto mean = [this](double sum, double of_all) {
      return of.poisson() ? std::log(sum / of_all) : sum / of_all;
    };
    const double all = std::clamp(mean(above + up[one], weight + v[one]), least, most);
    to = {all, weight > 0 ? std::clamp(mean(above, weight), least, most) : all, 0.0, 0.0};
  }

  // v ← v e^{−rate·cost}: returns the sum.
  static double fall(double rate, double* cost, double* v, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) cost[k] = std::max(-rate * cost[k], kFarthest);
    exp_all(cost, n);
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += v[k] *= cost[k];
    return sum;
  }

  // Costs are those above the least.
  static void charge_hedge(double* cost, double share, double* v, std::int64_t n, HedgeRate hedge) {
    double mean = 0;
    for (std::int64_t k = 0; k < n; ++k) mean += v[k] * cost[k];
    const double scale = std::log(static_cast<double>(n)), old = hedge.rate;
    if (old == 0) {  // no expert has been better than another so far: the rate is infinite
      hedge.gaps += mean;
      if (!(hedge.gaps > kNoGap)) return;
      hedge.rate = scale / hedge.gaps;
      return deal(share, v, fall(hedge.rate, cost, v, n), v, n);
    }
    const double sum = fall(old, cost, v, n);
    hedge.gaps += std::max(0.0, mean + std::log(sum) / old);
    hedge.rate = scale / hedge.gaps;
    deal(share, v, sum, v, n);
    if (hedge.rate < old) temper(hedge.rate / old, v, n);
  }

  static void deal(double share, const double* from, double sum, double* v, std::int64_t n) {
    const double kept = (1.0 - share) / sum, dealt = share / static_cast<double>(n);
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) four(v + k) = kept * four(from + k) + dealt;
    for (; k < n; ++k) v[k] = kept * from[k] + dealt;
  }
};

}  // namespace skn
