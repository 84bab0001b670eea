// Exponentials and logarithms of four numbers at once against those of long doubles, and the paths of
// experts' steps against those that are found one by one. Prints the largest differences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/elementary.hpp"
#include "learners/bank_loss.hpp"
#include "learners/class_steps.hpp"

namespace {

std::mt19937_64 random_bits(1);

double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_bits); }

// In units of the last place.
double units(double found, long double exact) {
  const double rounded = std::abs(static_cast<double>(exact));
  const double unit = std::nextafter(rounded, INFINITY) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(found) - exact)) / unit;
}

double worst_elementary(std::int64_t count) {
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    skn::Four powers, logarithms;
    double x[4], y[4];
    for (int j = 0; j < 4; ++j) {
      powers[j] = x[j] = i % 2 ? between(-700, 700) : between(-1, 1);
      logarithms[j] = y[j] = i % 3 ? std::exp(between(-700, 700)) : between(0.5, 2);
    }
    skn::exp_four(powers);
    skn::log_four(logarithms);
    for (int j = 0; j < 4; ++j) {
      worst = std::max(worst, units(powers[j], std::exp(static_cast<long double>(x[j]))));
      if (y[j] != 1) worst = std::max(worst, units(logarithms[j], std::log(static_cast<long double>(y[j]))));
    }
  }
  return worst;
}

double worst_path(std::int64_t count) {
  constexpr std::int64_t kLanes = skn::ClassSteps::kLanes, kClasses = 3;
  skn::ClassSteps steps(kClasses);
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<double> p(kLanes * kClasses, 1e-9);
    skn::ClassSteps::Lanes length;
    for (std::int64_t e = 0; e < kLanes; ++e) {
      p[e] = 1.0 / (1.0 + std::exp(between(-19, 19)));
      p[kLanes + e] = 1.0 - p[e];
      length[e] = std::exp(between(-9, 14));
    }
    const double* const way = steps.take(p.data(), 0, length);
    for (std::int64_t at = 0; at < 2 * kLanes; ++at) {
      if (at >= kLanes && p[at] < 1e-4 / kClasses) continue;  // left alone
      const double odds = std::log(p[at]) - std::log1p(-std::min(p[at], 1 - 1e-9));
      const double exact = skn::BankLoss::travel_odds(odds, at < kLanes ? 1.0 : -1.0, length[at % kLanes]);
      worst = std::max(worst, std::abs(way[at] - exact) / std::max(1.0, std::abs(exact)));
    }
  }
  return worst;
}

}  // namespace

int main(int, char** arguments) {
  const std::int64_t count = std::atoll(arguments[1]);
  const double elementary = worst_elementary(count), path = worst_path(count);
  std::printf("%.2f units, paths within %.1e\n", elementary, path);
  return elementary <= 2 && path < 1e-11 ? 0 : 1;
}
