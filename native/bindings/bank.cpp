// The kernel of NewtonBank.
#include "learners/bank.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "bindings/state.hpp"
#include "learners/calibration.hpp"
#include "learners/residuals.hpp"

namespace skn {

using namespace nb::literals;

namespace {

using Widths = std::optional<ConstDoubles>;  // of distributions, by features

class BankKernel : public SketchKernel {
 public:
  using SketchKernel::SketchKernel;
  // What each expert would predict.
  virtual void predict_experts(const PyRows& x, Array<double, 2> out) = 0;
  virtual std::int64_t experts() const = 0;
  // Places for features that the experts with whole matrices may need to learn these rows.
  virtual std::int64_t places_for(const PyRows& x) = 0;
  // How wide the distributions of the labels of these rows are, by their features. False if these are many.
  virtual bool stretches(const PyRows& x, Array<double, 1> out) = 0;
  // Quantiles of the labels of rows with these predictions, and how far off these are.
  virtual void quantiles(ConstDoubles predictions, Widths widths, ConstDoubles levels,
                         Array<double, 2> out) const = 0;
  virtual void deviations(ConstDoubles predictions, Widths widths, Array<double, 1> out) const = 0;
  // The probability of +1 by the score of a row.
  virtual double chance(double score) const = 0;
  virtual void chances(ConstDoubles scores, Array<double, 1> out) const = 0;
};

template <class T>
class BankKernelOf final : public SketchKernelOf<Bank<T>, T, BankKernel> {
 public:
  BankKernelOf(std::int64_t features, nb::object owner, Bank<T> kernel, const Residuals& residuals,
               const Calibration& calibration)
      : SketchKernelOf<Bank<T>, T, BankKernel>(features, 1, std::move(owner), std::move(kernel)),
        residuals_(residuals),
        calibration_(calibration) {}

  void predict_experts(const PyRows& x, Array<double, 2> out) override {
    require(extent(out.shape(0)) == x.rows->count() && extent(out.shape(1)) == this->kernel_.experts(),
            "lengths differ");
    nb::gil_scoped_release release;
    this->kernel_.predict_experts(*x.rows, this->features(), out.data());
  }

  std::int64_t experts() const override { return this->kernel_.experts(); }

  std::int64_t places_for(const PyRows& x) override {
    nb::gil_scoped_release release;
    return this->kernel_.places_for(*x.rows);
  }

  bool stretches(const PyRows& x, Array<double, 1> out) override {
    require(extent(out.shape(0)) == x.rows->count(), "lengths differ");
    nb::gil_scoped_release release;
    return this->kernel_.stretches(*x.rows, out.data());
  }

  void quantiles(ConstDoubles predictions, Widths widths, ConstDoubles levels,
                 Array<double, 2> out) const override {
    require(out.shape(0) == predictions.size() && out.shape(1) == levels.size(), "lengths differ");
    require(!widths || widths->size() == predictions.size(), "lengths differ");
    require(residuals_.tracked(), "residuals are not tracked");
    nb::gil_scoped_release release;
    residuals_.quantiles(extent(predictions.size()), predictions.data(), widths ? widths->data() : nullptr,
                         extent(levels.size()), levels.data(), out.data());
  }

  void deviations(ConstDoubles predictions, Widths widths, Array<double, 1> out) const override {
    require(out.shape(0) == predictions.size(), "lengths differ");
    require(!widths || widths->size() == predictions.size(), "lengths differ");
    require(residuals_.tracked(), "residuals are not tracked");
    nb::gil_scoped_release release;
    residuals_.deviations(extent(predictions.size()), predictions.data(), widths ? widths->data() : nullptr,
                          out.data());
  }

  double chance(double score) const override { return calibration_.of(score); }

  void chances(ConstDoubles scores, Array<double, 1> out) const override {
    require(out.shape(0) == scores.size(), "lengths differ");
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < scores.size(); ++i) out.data()[i] = calibration_.of(scores.data()[i]);
  }

 private:
  void learn_rows(const Rows& rows, const double* labels, const double* weights, double* out) override {
    const bool unknown = this->kernel_.knows_no_labels();
    this->kernel_.learn(rows, labels, weights, out);
    const std::int64_t old = this->kernel_.restarted();
    const auto& widths = this->kernel_.stretches();
    const auto few = static_cast<std::int64_t>(widths.size());
    if (old > 0) residuals_.restart();
    residuals_.learn(rows.count() - old, labels + old, weights == nullptr ? weights : weights + old,
                     out + old, widths.data() + std::min(old, few), std::max<std::int64_t>(few - old, 0),
                     unknown && old == 0);
    calibration_.learn(rows.count(), labels, weights, out);
  }

  Residuals residuals_;
  Calibration calibration_;
};

template <class T>
MapState<T> maps_view(const State& s, std::int64_t q, std::int64_t width) {
  using Maps = MapState<T>;
  // The archives have room for whole groups; one more group is open, and not in them.
  std::int64_t limit = Maps::capacity(), group = 1;
  const char* const names[] = {"archive0", "archive1", "archive2"};
  std::array<T*, Maps::kLevels - 1> archive;
  for (std::size_t level = 0; level < archive.size(); ++level, group *= Maps::kGroup) {
    const std::int64_t rows = s.rows(names[level]);
    archive[level] = s.get<T>(names[level], {rows, q, width});
    limit = std::min(limit, (rows / Maps::kGroup + 1) * Maps::kGroup * group);
  }
  return {s.get<std::int64_t>("items", {Maps::kLevels}),
          s.get<T>("suffix", {Maps::kLevels * Maps::kGroup, q, width}), archive, limit};
}

// The arrays say how many places there is room for.
BankFullState full_view(const State& s, std::int64_t* counts, bool intercept) {
  using Full = BankFullState;
  const std::int64_t room = s.rows("full_features"), places = counts[BankState<double>::kPlaces];
  require(room <= BankFull::kMost + 1 && places <= room, "there is no room for the places");
  return {counts + BankState<double>::kPlaces,
          counts + BankState<double>::kNonZeros,
          counts + BankState<double>::kWaiting,
          s.get<std::int64_t>("full_features", {room}),
          s.get<double>("full_units", {room, Full::kScale}),
          s.get<double>("full_weights", {room, Full::kMemories}),
          s.get<double>("full_moments", {Full::packed(room)}),
          s.get<double>("full_odds", {Full::kScores, Full::kOdds}),
          s.get<double>("full_block", {room, Full::kLongest}),
          s.get<double>("full_labels", {Full::kLongest, Full::kLabel}),
          s.get<double>("full_spread", {room, Spread::kNumbers}),
          room,
          intercept};
}

BankTrackingState tracking_view(const State& s, std::int64_t of_full) {
  using Tracking = BankTrackingState;
  const std::int64_t room = s.rows("tracking");
  auto* const places = s.get<std::int64_t>("tracked", {1});
  require(room <= BankTracking::kMost + 1 && *places <= room, "there is no room for the places");
  require(*places < 0 || *places == of_full, "there are other places");
  return {places, s.get<double>("tracking", {room, Tracking::kNumbers}),
          s.get<double>("tracking_covariance", {Tracking::packed(room)}), room};
}

// Is this the covariance of so many places, as steps leave it? Else they could make it grow without bound.
bool is_covariance(ConstDoubles packed, std::int64_t places) {
  using Tracking = BankTrackingState;
  constexpr double kMost = 1.0 + 1e-6;  // variances begin with 1
  if (places < 0 || places > BankTracking::kMost + 1 || extent(packed.size()) != Tracking::packed(places))
    return false;
  const auto row = [&](std::int64_t i) { return packed.data() + Tracking::packed(i); };
  std::vector<double> L(static_cast<std::size_t>(places * places));  // by Cholesky's factors
  for (std::int64_t i = 0; i < places; ++i) {
    for (std::int64_t j = i + 1; j < padded4(i + 1); ++j)
      if (row(i)[j] != (j < places ? row(j)[i] : 0.0)) return false;
    for (std::int64_t j = 0; j <= i; ++j) {
      if (!(std::abs(row(i)[j]) <= kMost)) return false;
      double rest = row(i)[j];
      for (std::int64_t k = 0; k < j; ++k) rest -= L[i * places + k] * L[j * places + k];
      if (j == i && !(rest > 0)) return false;
      L[i * places + j] = j < i ? rest / L[j * places + j] : std::sqrt(rest);
    }
  }
  return true;
}

template <class T>
BankState<T> bank_view(const State& s, bool intercept, double clip) {
  const std::int64_t n = s.rows("buffer_length"), K = s.rows("experts"), m = s.rows("constant") - K;
  const std::int64_t q = std::max<std::int64_t>(m, 1), room = s.rows("buffer_index");
  const std::int64_t ld = padded4(q), stride = s.columns("table"), all = s.rows("shares");
  constexpr std::int64_t kFull = BankFull::kMemories;
  require(all == K + 1 || all == K + 1 + kFull || all == K + 1 + kFull + 1, "there are other experts");
  require(s.has("places"), "the table is not packed");
  require(K > 0 && K + 1 + kFull + 1 <= BankStack::kInputs && m >= 0 && n >= m &&
              stride >= std::max<std::int64_t>(K + m + 3, 8),
          "the table is too narrow");
  static_assert(sizeof(Expert) == 4 * sizeof(double));
  auto* counts = s.get<std::int64_t>("bank_counts", {BankState<T>::kBankCounts});
  return {m,
          n,
          K,
          reinterpret_cast<const Expert*>(s.get<double>("experts", {K, 4})),
          s.get<std::int64_t>("counts", {3}),
          counts,
          s.get<double>("scalars", {BankState<T>::kScalars}),
          s.get<double>("shares", {all}),
          s.get<double>("lambda", {ld}),
          s.get<double>("b", {K, ld}),
          s.get<double>("constant", {K + m}),
          s.get<std::int64_t>("buffer_index", {room}),
          s.get<T>("buffer_value", {room}),
          s.get<std::int64_t>("buffer_start", {n + 1}),
          s.get<double>("buffer_length", {n}),
          s.get<double>("buffer_c", {n, ld}),
          s.get<double>("buffer_gram", {n, padded4(std::max<std::int64_t>(n, 1))}),
          maps_view<T>(s, q, padded4(K + q)),
          full_view(s, counts, intercept),
          tracking_view(s, counts[BankState<T>::kPlaces]),
          s.get<double>("stack", {BankStack::kRows, BankStack::kInputs}),
          s.get<double>("first_labels", {FirstLabels::kNumbers}),
          all > K + 1,
          all > K + 1 + kFull,
          intercept,
          clip,
          room};
}

// No experts: nothing is tracked.
ResidualState residual_view(const State& s) {
  using Residual = ResidualState;
  double* const scalars = s.get<double>("residual_scalars", {Residual::kScalars});
  double* const levels = s.get<double>("residual_levels", {extent(Residual::kLevels.size())});
  if (s.rows("residuals") == 0) return {nullptr, nullptr, nullptr};
  return {s.get<double>("residuals", {Residual::kExperts, Residual::kWidth}), scalars, levels};
}

template <class T>
std::unique_ptr<BankKernel> newton_bank(int loss, double parameter, bool intercept, double clip,
                                        nb::dict arrays) {
  const State s(arrays);
  require(clip > 0, "clip must be positive");
  const BankLoss of(make_loss(loss, parameter));
  Bank<T> kernel(of, bank_view<T>(s, intercept, clip), table_view<T>(s));
  const Residuals residuals(residual_view(s), of.poisson());
  using Sides = CalibrationState;
  const Calibration calibration(s.get<double>("calibration", {Sides::kSides, Sides::kWidth}),
                                s.get<double>("corrections", {Sides::kCorrections, 2}), of.logistic());
  return std::make_unique<BankKernelOf<T>>(s.rows("active"), s.owner(), std::move(kernel), residuals,
                                           calibration);
}

// Of several classes, a bank for each of them: rows × classes scores.
ClassCalibration class_calibration(const Array<double, 2>& side, bool logistic, std::size_t classes) {
  require(side.shape(0) == 1 && side.shape(1) == CalibrationState::kWidth, "there are other numbers");
  return {side.data(), logistic, extent(classes)};
}

void calibrate_classes(Array<double, 2> side, bool logistic, Array<const double, 2> scores,
                       ConstDoubles labels, std::optional<ConstDoubles> weights) {
  const std::size_t n = scores.shape(0);
  require(labels.size() == n && (!weights || weights->size() == n), "lengths differ");
  ClassCalibration calibration = class_calibration(side, logistic, scores.shape(1));
  nb::gil_scoped_release release;
  calibration.learn(extent(n), labels.data(), weights ? weights->data() : nullptr, scores.data());
}

void class_chances(Array<double, 2> side, bool logistic, Array<const double, 2> scores,
                   Array<double, 2> out) {
  const std::size_t n = scores.shape(0), classes = scores.shape(1);
  require(out.shape(0) == n && out.shape(1) == classes, "lengths differ");
  ClassCalibration calibration = class_calibration(side, logistic, classes);
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < n; ++i) calibration.play(scores.data() + i * classes, out.data() + i * classes);
}

template <class T>
void bind_for(nb::module_& m, const std::string& bits) {
  m.def(("newton_bank" + bits).c_str(), &newton_bank<T>, "loss"_a, "parameter"_a, "intercept"_a, "clip"_a,
        "arrays"_a);
}

}  // namespace

void bind_bank(nb::module_& m) {
  nb::class_<BankKernel, SketchKernel>(m, "BankKernel")
      .def("predict_experts", &BankKernel::predict_experts, "rows"_a, "out"_a)
      .def("places_for", &BankKernel::places_for, "rows"_a)
      .def("stretches", &BankKernel::stretches, "rows"_a, "out"_a)
      .def("quantiles", &BankKernel::quantiles, "predictions"_a, "widths"_a.none(), "levels"_a, "out"_a)
      .def("deviations", &BankKernel::deviations, "predictions"_a, "widths"_a.none(), "out"_a)
      .def("chance", &BankKernel::chance, "score"_a)
      .def("chances", &BankKernel::chances, "scores"_a, "out"_a)
      .def_prop_ro("experts", &BankKernel::experts);
  m.def("is_covariance", &is_covariance, "packed"_a, "places"_a);
  m.def("calibrate_classes", &calibrate_classes, "side"_a, "logistic"_a, "scores"_a, "labels"_a,
        "weights"_a.none());
  m.def("class_chances", &class_chances, "side"_a, "logistic"_a, "scores"_a, "out"_a);
  bind_for<float>(m, "32");
  bind_for<double>(m, "64");
}

}  // namespace skn
