// The experts of a bank (bank.hpp) that take steps: how each of them sees a row, what it predicts, and its
// step. They are the lanes of two vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/elementary.hpp"
#include "core/small_matrix.hpp"
#include "learners/bank_labels.hpp"
#include "learners/bank_loss.hpp"
#include "learners/bank_row.hpp"
#include "learners/bank_state.hpp"

namespace skn {

template <class T>
class BankExperts {
  using State = BankState<T>;

 public:
  static constexpr std::int64_t kMost = 8;

  BankExperts(const BankLoss& loss, const BankState<T>& state)
      : loss_(loss),
        s_(state),
        K_(state.experts),
        ldm_(padded4(std::max<std::int64_t>(state.m, 1))),
        c_(static_cast<std::size_t>(kViews * ldm_)),
        direction_(static_cast<std::size_t>(kMost * ldm_)) {
    for (int half : {0, 1}) up_[half] = down_[half] = Four{} + 0.5;  // before the first row
    for (std::int64_t k = 0; k < K_; ++k) {
      const bool averaged = s_.expert[k].sees(kAveraged);
      const Expert& its = s_.expert[averaged ? k + 1 : k];
      const std::int64_t half = k / 4, lane = k % 4;
      averaged_[half][lane] = -averaged;
      view_[k] = static_cast<std::uint8_t>(its.view);
      multiplier_[half][lane] = its.multiplier;
      here_[half][lane] = -1;
      even_[half][lane] = -(its.sees(kEven) || its.sees(kRestless));
      restless_[half][lane] = -its.sees(kRestless);
      if (its.sees(kRare)) {
        rare_[half][lane] = -1;
        any_rare_[half] = true;
        kind_[k] = kMost;
        rarely_[k] = T(1);
        continue;
      }
      kind_[k] = 0;
      while (kind_[k] < kinds_ && !(steady_[kind_[k]] == its.steady && root_[kind_[k]] == its.root &&
                                    kind_view_[kind_[k]] == view_[k]))
        ++kind_[k];
      if (kind_[k] < kinds_) continue;
      steady_[kinds_] = its.steady;
      root_[kinds_] = its.root;
      kind_view_[kinds_++] = view_[k];
    }
  }

  double* c() { return c_.data(); }                   // U times the row
  const T* rarely() const { return rarely_.data(); }  // 1 for experts of that view, else 0

  // How the row looks to experts of each kind, after c is known. A class hardly depends on how long a row is
  // (a long text is not more of its class than a short one), a number to be predicted may well. Features
  // never seen count as zero.
  void view(const BankRow<T>& row, bool classes) {
    const bool begun = s_.bank_counts[State::kLearned] > 0;
    const double length = begun ? typical() : 1.0;
    const bool evens = classes && begun && row.seen_xx() > State::kNoLength;
    seen_[kEven].features = seen_[kRestless].features = evens ? std::sqrt(length / row.seen_xx()) : 1.0;
    seen_[kRestless].constant = std::max(1.0, kHeavy * std::sqrt(std::max(length - 1.0, 0.0)));
    // Else a row without known features, such as an empty text, would move the constant all the way to its
    // label, and with it every prediction.
    seen_[kRestless].least = evens && row.seen_xx() <= one() ? length : 0.0;
    const auto rows = static_cast<double>(s_.bank_counts[State::kLearned] + 1);
    seen_[kRare].features = seen_[kRare].constant = 1.0 / std::sqrt(std::sqrt(rows));
    for (int half : {0, 1}) {
      const Four plain = Four{} + 1.0;
      const Four features = even_[half] ? Four{} + seen_[kEven].features : plain,
                 constant = restless_[half] ? Four{} + seen_[kRestless].constant : plain;
      features_[half] = rare_[half] ? Four{} + seen_[kRare].features : features;
      constant_[half] = rare_[half] ? Four{} + seen_[kRare].constant : constant;
    }
    view_sketch();
  }

  void view_sketch() {
    with_length([&](auto ld) {
      for (std::int64_t j = 0; j < ld; j += 4) {
        Four constant;
        constant_at(j, constant);
        const Four features = four(c_.data() + j) - constant;
        for (int view : {kEven, kRestless}) {
          const Seen& seen = seen_[view];
          four(c_.data() + view * ld + j) = seen.features * features + seen.constant * constant;
        }
      }
    });
  }

  // Four of the constant's m coordinates.
  void constant_at(std::int64_t j, Four& to) const {
    const double* const from = s_.constant + K_ + j;
    if (j + 4 <= s_.m) {
      to = four(from);
      return;
    }
    to = Four{};
    for (int i = 0; i < 3; ++i)
      if (j + i < s_.m) to[i] = from[i];
  }

  // What each predicts, of sums of its weights in units; then what the constant expert does, as p_K.
  void look(const BankLabels<T>& labels, const double* sums, double unit, double usual, double* p) {
    const double offset = s_.scalars[State::kOffset];
    const bool rare_odds = labels.rare_odds();
    const double part = State::averaging(static_cast<double>(s_.counts[State::kRounds]));
    for (int half : {0, 1}) {
      Four products, constant, its;
      multiply(half, products);
      load_constant(half, constant);
      assemble(sums + 4 * half, its);
      Four score = constant_[half] * constant + features_[half] * unit * its + products;
      score = offset + (averaged_[half] ? next(score) + part * score : score);
      Four predicted = score;
      labels.within(predicted);
      if (rare_odds && any_rare_[half]) {
        odds_[half] = score;
        labels.within_odds(odds_[half]);
        sigmoids(odds_[half], up_[half], down_[half]);
        predicted = rare_[half] ? up_[half] - down_[half] : predicted;
      }
      four(p + 4 * half) = kLanes + 4 * half == K_ ? Four{} + usual : predicted;
    }
    if (K_ == kMost) p[K_] = usual;
  }

  // The mean ‖x‖² once the row will have been learned.
  double typical_with(const BankRow<T>& row) const {
    return (s_.scalars[State::kSquares] + row.xx()) /
           static_cast<double>(s_.bank_counts[State::kLearned] + 1);
  }

  // Steps of log odds, which take longest and wait for nothing else, before the row is learned.
  void rush(const BankRow<T>& row, double y, double h, double typical) {
    aim_rarely(row, h, typical, s_.bank_counts[State::kLearned] + 1);
    for (int half : {0, 1}) {
      if (!any_rare_[half]) continue;
      const Lane positive = Four{} + y > 0.0;  // labels cannot be foreseen: no branch
      Four right = positive ? up_[half] : down_[half], wrong = positive ? down_[half] : up_[half];
      if (std::abs(y) != 1.0) sigmoids(y * odds_[half], right, wrong);  // labels turn out to be numbers
      const Four length = rare_[half] ? rare_length_ * multiplier_[half] : Four{};
      BankLoss::travel_odds<T>(right, wrong, y, length, odds_way_[half]);
    }
  }

  // The metrics at this row, of which experts of one kind share one. `typical` is that with the row, `root`
  // is 1/√t.
  void aim(const BankRow<T>& row, double typical, double root) {
    const double ridge = s_.scalars[State::kRidge];
    double xx[kViews];
    for (int view : {kPlain, kEven, kRestless}) {
      const Seen& seen = seen_[view];
      const double whole =
          seen.features * seen.features * (row.xx() - one()) + seen.constant * seen.constant * one();
      xx[view] = std::max(whole, seen.least);
    }
    for (std::int64_t from = 0; from < kinds_; from += 4) {
      const Four f = four(&steady_[from]) + four(&root_[from]) * root, a = typical + 0.5 * f * ridge,
                 flat = 1.0 / a;
      Four inside[4] = {}, squares[4] = {};
      with_length([&](auto ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          if (from + i >= kinds_) break;
          const double* const c = c_.data() + kind_view_[from + i] * ld;
          double* const direction = direction_.data() + (from + i) * ld;
          for (std::int64_t j = 0; j < ld; j += 4) {
            const Four each = four(c + j), square = each * each,
                       g = 1.0 / (a[i] + f[i] * four(s_.lambda + j));
            four(direction + j) = each * (g - flat[i]);
            inside[i] += square;
            squares[i] += square * g;
          }
        }
      });
      Four in, square;
      totals(inside, in);
      totals(squares, square);
      const auto of = [&](std::int64_t i) { return xx[kind_view_[from + i]]; };
      const Four all = {of(0), of(1), of(2), of(3)}, outside = all - in;
      const Four q = (outside > 0.0 ? outside : Four{}) * flat + square;
      four(&flat_[from]) = flat;
      four(&q_[from]) = q;
      four(&per_q_[from]) = 1.0 / q;
    }
  }

  // The step of each along flat·x + direction·U: what is added to weights for every unit of x.
  void step(const BankRow<T>& row, const BankLabels<T>& labels, const double* p, double y, double h,
            double typical, double miss, double per, typename BankRow<T>::Steps& steps) {
    const bool rare_odds = labels.rare_odds();
    if (!rare_odds) aim_rarely(row, h, typical, s_.bank_counts[State::kLearned]);
    const auto t = static_cast<double>(s_.counts[State::kRounds]);
    const double late = -0.5 * t * (t - 1.0);  // in BankState::averaging
    Four out[2];
    for (int half : {0, 1}) {
      Four flat, per_q, q;
      of_kinds(flat_, half, flat);
      of_kinds(per_q_, half, per_q);
      of_kinds(q_, half, q);
      flat = rare_[half] ? Four{} + rare_flat_ : flat;
      per_q = rare_[half] ? Four{} + rare_per_q_ : per_q;
      const Four length = rare_[half] ? rare_length_ * multiplier_[half] : h * multiplier_[half] * q;
      Four way;
      loss_.travel(four(p + 4 * half), y, length, miss, way);
      labels.stop(four(p + 4 * half), way);
      way *= labels.half();
      if (rare_odds && any_rare_[half]) way = rare_[half] ? odds_way_[half] : way;
      Four step = here_[half] ? way * per_q : Four{};
      step = averaged_[half] ? late * next(step) : step;
      const Four along = step * flat;
      four(&step_[static_cast<std::size_t>(4 * half)]) = step;
      if (s_.intercept) move_constant(half, along * constant_[half]);
      out[half] = per * (along * features_[half]);
    }
    with_length([&](auto ld) {
      for (std::int64_t k = 0; k < K_; ++k)
        if (kind_[k] < kMost)
          for (std::int64_t j = 0; j < ld; j += 4)
            four(s_.b + k * ld + j) += step_[k] * four(direction_.data() + kind_[k] * ld + j);
    });
    hold(out[0], out[1], steps);
  }

 private:
  static constexpr double kHeavy = 0.25;  // a restless expert's constant, as a share of the typical row
  using Lane [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(8)]] = std::int64_t;
  static constexpr Lane kLanes = {0, 1, 2, 3};

  // A row as experts of a view see it: its features and the constant are multiplied by these.
  struct Seen {
    double features = 1, constant = 1;
    double least = 0;  // its ‖x‖² in a step: what it lacks counts as a feature that no other row has
  };

  double one() const { return s_.intercept ? 1.0 : 0.0; }
  double typical() const {  // ‖x‖²
    return s_.scalars[State::kSquares] / static_cast<double>(s_.bank_counts[State::kLearned]);
  }

  // What the next lanes have.
  static Four next(const Four& its) { return __builtin_shufflevector(its, its, 1, 2, 3, 3); }

  static void sigmoids(const Four& z, Four& up, Four& down) {
    Four e = z > 0.0 ? -z : z;
    exp_four(e);
    const Four large = 1.0 / (1.0 + e), small = e * large;
    up = z > 0.0 ? large : small;
    down = z > 0.0 ? small : large;
  }

  // b_kᵀc of four experts, c as each sees it.
  void multiply(int half, Four& to) const {
    with_length([&](auto ld) {
      Four product[4] = {};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {  // beyond the last expert, what is there of it
        const std::int64_t k = std::min<std::int64_t>(4 * half + i, K_ - 1);
        const double *const c = c_.data() + view_[k] * ld, *const b = s_.b + k * ld;
        for (std::int64_t j = 0; j < ld; j += 4) product[i] += four(c + j) * four(b + j);
      }
      totals(product, to);
    });
  }

  // Calls f with ldm as a constant if it is the usual one.
  template <class Call>
  [[gnu::always_inline]] void with_length(Call f) const {
    if (ldm_ == 8) return f(std::integral_constant<int, 8>{});
    f(ldm_);
  }

  // The constants of four experts; those of the last ones may be the last numbers that there are.
  bool whole_constant(int half) const { return 4 * half + 4 <= K_ + s_.m; }
  void load_constant(int half, Four& to) const {
    if (whole_constant(half)) {
      to = four(s_.constant + 4 * half);
      return;
    }
    to = Four{};
    for (std::int64_t i = 0; 4 * half + i < K_; ++i) to[i] = s_.constant[4 * half + i];
  }
  void move_constant(int half, const Four& by) const {
    if (whole_constant(half)) {
      four(s_.constant + 4 * half) += by;
      return;
    }
    for (std::int64_t i = 0; 4 * half + i < K_; ++i) s_.constant[4 * half + i] += by[i];
  }

  // AdaGrad's step: a feature's own rate is 1/√n, that of the constant 1/√T.
  void aim_rarely(const BankRow<T>& row, double h, double first, std::int64_t learned) {
    const double by = seen_[kRare].features, rate = 1.0 / std::sqrt(static_cast<double>(learned));
    const double q = rate * by * by * row.rare_xx();
    rare_flat_ = rate;
    rare_per_q_ = 1.0 / q;
    rare_length_ = h * q / (by * std::sqrt(first));
  }

  void of_kinds(const std::array<double, kMost + 1>& its, int half, Four& to) const {
    const std::uint8_t* const kind = &kind_[static_cast<std::size_t>(4 * half)];
    to = Four{its[kind[0]], its[kind[1]], its[kind[2]], its[kind[3]]};
  }

  static void hold(const Four& low, const Four& high, typename BankRow<T>::Steps& to) {
    Four held[2] = {low, high};
    for (Four& its : held) {
      its = its > State::kHeaviest ? Four{} + State::kHeaviest : its;
      its = its < -State::kHeaviest ? Four{} - State::kHeaviest : its;
    }
    to = __builtin_convertvector(__builtin_shufflevector(held[0], held[1], 0, 1, 2, 3, 4, 5, 6, 7),
                                 typename BankRow<T>::Steps);
  }

  BankLoss loss_;
  BankState<T> s_;
  std::int64_t K_, ldm_;
  std::array<Seen, kViews> seen_;
  std::vector<double> c_, direction_;  // U times the row for each view; of each kind
  // By expert: its view and kind, of which rare ones have none; their lanes.
  std::array<std::uint8_t, kMost> view_{}, kind_{};
  std::array<T, kMost> rarely_{};
  Lane here_[2]{}, even_[2]{}, restless_[2]{}, rare_[2]{},
      averaged_[2]{};  // −1 for those that are of that view, else 0
  bool any_rare_[2]{};
  Four multiplier_[2]{}, features_[2]{}, constant_[2]{};
  std::array<double, kMost> step_{};
  // Of those whose scores are log odds.
  Four odds_[2]{}, up_[2]{}, down_[2]{}, odds_way_[2]{};
  double rare_flat_ = 0, rare_per_q_ = 0, rare_length_ = 0;  // the latter for a step of 1
  // By kind.
  std::int64_t kinds_ = 0;
  std::array<std::uint8_t, kMost> kind_view_{};
  std::array<double, kMost> steady_{}, root_{};
  std::array<double, kMost + 1> flat_{}, per_q_{}, q_{};  // the last is that of experts without a kind
};

}  // namespace skn
