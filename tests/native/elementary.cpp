// Exponentials and logarithms of several numbers at once against those of long doubles, and the paths of
// experts' steps, in float and double, against those that are found one by one. Prints the largest
// differences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "core/elementary.hpp"
#include "learners/bank_loss.hpp"
#include "learners/class_steps.hpp"

namespace {

std::mt19937_64 random_bits(1);

double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_bits); }

// In units of the last place.
template <class T>
double units(T found, long double exact) {
  const T rounded = std::abs(static_cast<T>(exact));
  const T unit = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(found) - exact) /
                             static_cast<long double>(unit));
}

double worst_elementary(std::int64_t count) {
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    skn::Four powers, logarithms, less;
    double x[4], y[4];
    for (int j = 0; j < 4; ++j) {
      less[j] = powers[j] = x[j] = i % 2 ? between(-700, 700) : between(-1, 1);
      logarithms[j] = y[j] = i % 3 ? std::exp(between(-700, 700)) : between(0.5, 2);
    }
    skn::exp_four(powers);
    skn::expm1_four(less);
    skn::log_four(logarithms);
    for (int j = 0; j < 4; ++j) {
      worst = std::max(worst, units(powers[j], std::exp(static_cast<long double>(x[j]))));
      worst = std::max(worst, units(less[j], std::expm1(static_cast<long double>(x[j]))));
      if (y[j] != 1) worst = std::max(worst, units(logarithms[j], std::log(static_cast<long double>(y[j]))));
    }
  }
  return worst;
}

double worst_float_power(std::int64_t count) {
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    skn::Wide<float>::Vector powers;
    float x[8];
    for (int j = 0; j < 8; ++j)
      powers[j] = x[j] = static_cast<float>(i % 2 ? between(-87, 87) : between(-1, 1));
    skn::exp_of<skn::Wide<float>>(powers);
    for (int j = 0; j < 8; ++j)
      worst = std::max(worst, units<float>(powers[j], std::exp(static_cast<long double>(x[j]))));
  }
  return worst;
}

// One number has the bits of four.
bool alike(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = i % 2 ? between(-700, 700) : between(-1, 1), y = std::exp(between(-700, 700));
    skn::Four power = {x, x, x, x}, less = power, log = {y, y, y, y};
    skn::exp_four(power);
    skn::expm1_four(less);
    skn::log_four(log);
    if (power[3] != skn::exp_one(x) || less[3] != skn::expm1_one(x) || log[3] != skn::log_one(y))
      return false;
  }
  return std::isnan(skn::log_one(NAN)) && std::isnan(skn::exp_one(NAN)) && skn::log_one(INFINITY) == INFINITY;
}

// How far log odds move towards y: m + e^m of their margin m grows by the length. By Newton's method.
double travelled(double odds, double y, double length) {
  const long double from = y * odds, z = 8.0L * length + from + std::exp(from);
  long double m = z > 1 ? std::log(z) : z;  // not below it
  for (int i = 0; i < 60; ++i) {
    const long double e = std::exp(m);
    m -= (m + e - z) / (1.0L + e);
  }
  return y * static_cast<double>(m - from);
}

// Of two classes, so that 1 − p of the one is known to all digits: it is p of the other.
template <class T>
double worst_path(std::int64_t count) {
  constexpr std::int64_t kLanes = skn::ClassSteps<T>::kLanes, kClasses = 2;
  skn::ClassSteps<T> steps(kClasses);
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<T> p(kLanes * kClasses);
    double odds[kLanes];
    skn::Four length;
    for (std::int64_t e = 0; e < kLanes; ++e) {
      odds[e] = between(-19, 19);
      p[e] = static_cast<T>(1.0 / (1.0 + std::exp(-odds[e])));
      p[kLanes + e] = static_cast<T>(1.0 / (1.0 + std::exp(odds[e])));
      length[e] = std::exp(between(-9, 14));
    }
    std::int64_t asked = 0;
    const T* const way = steps.take(p.data(), 0, length, [&](std::int64_t) { ++asked; });
    if (asked < steps.vectors()) return INFINITY;
    for (std::int64_t at = 0; at < kClasses * kLanes; ++at) {
      if (at >= kLanes && p[at] < 1e-4 / kClasses) continue;  // left alone
      const std::int64_t e = at % kLanes;
      const double exact =
          at < kLanes ? travelled(odds[e], 1.0, length[e]) : travelled(-odds[e], -1.0, length[e]);
      worst =
          std::max(worst, std::abs(static_cast<double>(way[at]) - exact) / std::max(1.0, std::abs(exact)));
    }
  }
  return worst;
}

// The same for the log odds of a bank of two classes, relative to ways that are not tiny: one by one, and
// four at a time.
double worst_way(std::int64_t count) {
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double odds[4], length[4], way[4];
    const double y = i % 2 ? 1 : -1;
    for (int j = 0; j < 4; ++j) {
      odds[j] = between(-20, 20);
      length[j] = std::exp(between(-20, 20));
    }
    skn::BankLoss::travel_odds(odds, y, length, way, 4);
    for (int j = 0; j < 4; ++j) {
      const double exact = travelled(odds[j], y, length[j]);
      const double one = skn::BankLoss::travel_odds(skn::Sigmoids(y * odds[j]), y, length[j]);
      const double off = std::max(std::abs(way[j] - exact), std::abs(one - exact));
      worst = std::max(worst, off / std::max(1e-6, std::abs(exact)));
    }
  }
  return worst;
}

// Four at a time in the precision T of the table, of probabilities of being right and wrong.
template <class T>
double worst_table_way(std::int64_t count) {
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double odds[4];
    const double y = i % 2 ? 1 : -1;
    skn::Four right, wrong, length, way;
    for (int j = 0; j < 4; ++j) {
      odds[j] = between(-20, 20);
      const skn::Sigmoids margin(y * odds[j]);
      right[j] = margin.up;
      wrong[j] = margin.down;
      length[j] = std::exp(between(-9, 14));
    }
    skn::BankLoss::travel_odds<T>(right, wrong, y, length, way);
    for (int j = 0; j < 4; ++j) {
      const double exact = travelled(odds[j], y, length[j]);
      worst = std::max(worst, std::abs(way[j] - exact) / std::max(1.0, std::abs(exact)));
    }
  }
  return worst;
}

}  // namespace

int main(int, char** arguments) {
  const std::int64_t count = std::atoll(arguments[1]);
  const double elementary = std::max(worst_elementary(count), worst_float_power(count));
  const double path = std::max(worst_path<double>(count), worst_table_way<double>(count));
  const double rough = std::max(worst_path<float>(count), worst_table_way<float>(count));
  const double way = worst_way(count);
  std::printf("%.2f units, paths within %.1e, in float %.1e, ways %.1e\n", elementary, path, rough, way);
  return alike(count) && elementary <= 2 && path < 1e-11 && rough < 1e-5 && way < 1e-11 ? 0 : 1;
}
