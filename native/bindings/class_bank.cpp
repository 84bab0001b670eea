// The kernel of ClassBank.
#include "learners/class_bank.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "bindings/module.hpp"
#include "bindings/row_kernel.hpp"
#include "bindings/state.hpp"

namespace skn {

using namespace nb::literals;

namespace {

class ClassBankKernel : public SketchKernel {
 public:
  using SketchKernel::SketchKernel;
  // The probabilities that each expert gives: rows × experts × classes.
  virtual void predict_experts(const PyRows& x, Array<double, 3> out) = 0;
  virtual std::int64_t experts() const = 0;
  // Places for features that the experts with whole matrices may need to learn these rows.
  virtual std::int64_t places_for(const PyRows& x) = 0;
};

template <class T>
class ClassBankKernelOf final : public SketchKernelOf<ClassBank<T>, T, ClassBankKernel> {
 public:
  using SketchKernelOf<ClassBank<T>, T, ClassBankKernel>::SketchKernelOf;

  void predict_experts(const PyRows& x, Array<double, 3> out) override {
    require(extent(out.shape(0)) == x.rows->count() && extent(out.shape(1)) == this->kernel_.experts() &&
                extent(out.shape(2)) == this->kernel_.classes(),
            "lengths differ");
    nb::gil_scoped_release release;
    this->kernel_.predict_experts(*x.rows, this->features(), out.data());
  }

  std::int64_t experts() const override { return this->kernel_.experts(); }

  std::int64_t places_for(const PyRows& x) override {
    nb::gil_scoped_release release;
    return this->kernel_.places_for(*x.rows);
  }
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
ClassFullState full_view(const State& s, std::int64_t* counts, std::int64_t K, bool intercept) {
  using Full = ClassFullState;
  const std::int64_t room = s.rows("full_features"), places = counts[BankState<double>::kPlaces];
  require(room <= ClassFull::kMost + 1 && places <= room, "there is no room for the places");
  return {counts + BankState<double>::kPlaces,
          counts + BankState<double>::kNonZeros,
          counts + BankState<double>::kWaiting,
          s.get<std::int64_t>("full_features", {room}),
          s.get<double>("full_units", {room, Full::kScale}),
          s.get<double>("full_weights", {room, Full::kMemories, K}),
          s.get<double>("full_moments", {Full::packed(room)}),
          s.get<double>("full_sums", {room, Full::kMemories, K + 1}),
          s.get<double>("full_odds", {Full::kMemories, K, Full::kOdds}),
          s.get<double>("full_lift", {Full::kMemories}),
          room,
          K,
          intercept};
}

template <class T>
ClassBankState<T> class_bank_view(const State& s, bool intercept) {
  constexpr std::int64_t kLanes = ClassBankState<T>::kLanes;
  const std::int64_t K = s.columns("full_odds"), E = s.rows("experts"), lanes = K * kLanes;
  const std::int64_t n = s.rows("buffer_length"), m = s.rows("constant") - lanes;
  const std::int64_t q = std::max<std::int64_t>(m, 1), room = s.rows("buffer_index"), ld = padded4(q);
  require(s.has("places"), "the table is not packed");
  require(K > 1 && E > 0 && E <= kLanes && m >= 0 && n >= m &&
              s.columns("table") >= std::max<std::int64_t>(lanes + m + BankState<T>::kTail, 16),
          "the table is too narrow");
  static_assert(sizeof(Expert) == 4 * sizeof(double));
  auto* counts = s.get<std::int64_t>("bank_counts", {BankState<T>::kBankCounts});
  BankState<T> bank{};
  bank.m = m;
  bank.n = n;
  bank.experts = lanes;
  bank.expert = reinterpret_cast<const Expert*>(s.get<double>("experts", {E, 4}));
  bank.counts = s.get<std::int64_t>("counts", {3});
  bank.bank_counts = counts;
  bank.scalars = s.get<double>("scalars", {3});
  bank.shares = s.get<double>("shares", {E + ClassFull::kMemories});
  bank.lambda = s.get<double>("lambda", {ld});
  bank.b = s.get<double>("b", {K, ld, kLanes});
  bank.constant = s.get<double>("constant", {lanes + m});
  bank.buffer_index = s.get<std::int64_t>("buffer_index", {room});
  bank.buffer_value = s.get<T>("buffer_value", {room});
  bank.buffer_start = s.get<std::int64_t>("buffer_start", {n + 1});
  bank.buffer_length = s.get<double>("buffer_length", {n});
  bank.buffer_c = s.get<double>("buffer_c", {n, ld});
  bank.buffer_gram = s.get<double>("buffer_gram", {n, padded4(std::max<std::int64_t>(n, 1))});
  bank.epochs = maps_view<T>(s, q, padded4(lanes + q));
  bank.intercept = intercept;
  bank.room = room;
  bank.lanes = kLanes;
  return {bank, full_view(s, counts, K, intercept), s.get<double>("temper", {Temper::kNumbers}), K, E};
}

template <class T>
std::unique_ptr<ClassBankKernel> class_bank(bool intercept, nb::dict arrays) {
  const State s(arrays);
  const ClassBankState<T> state = class_bank_view<T>(s, intercept);
  ClassBank<T> kernel(state, table_view<T>(s));
  return std::make_unique<ClassBankKernelOf<T>>(s.rows("active"), state.classes, s.owner(),
                                                std::move(kernel));
}

template <class T>
void bind_for(nb::module_& m, const std::string& bits) {
  m.def(("class_bank" + bits).c_str(), &class_bank<T>, "intercept"_a, "arrays"_a);
}

}  // namespace

void bind_class_bank(nb::module_& m) {
  nb::class_<ClassBankKernel, SketchKernel>(m, "ClassBankKernel")
      .def("predict_experts", &ClassBankKernel::predict_experts, "rows"_a, "out"_a)
      .def("places_for", &ClassBankKernel::places_for, "rows"_a)
      .def_prop_ro("experts", &ClassBankKernel::experts);
  bind_for<float>(m, "32");
  bind_for<double>(m, "64");
}

}  // namespace skn
