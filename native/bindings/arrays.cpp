// Arrays as memoryviews, for a command that has not imported NumPy: memory, and the little done with it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/module.hpp"
#include "core/elementary.hpp"
#include "core/labels.hpp"
#include "core/losses.hpp"
#include "memory/large_pages.hpp"
#include "memory/zero_pages.hpp"

namespace skn {

using namespace nb::literals;

namespace {

constexpr std::size_t kCacheLine = 64;

template <class T>
nb::object zeros_of(const std::vector<std::size_t>& shape) {
  std::size_t size = sizeof(T);
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t n : shape) {
    if (n != 0 && size > kMost / n) throw std::bad_alloc();
    size *= n;
  }
  if (size > kMost - kCacheLine) throw std::bad_alloc();
  size += kCacheLine;
  auto memory = std::make_unique<ZeroPages>(size);
  const auto start = reinterpret_cast<std::uintptr_t>(memory->data());
  const nb::capsule owner(memory.get(), [](void* p) noexcept { delete static_cast<ZeroPages*>(p); });
  memory.release();
  const auto place = (start + kCacheLine - 1) / kCacheLine * kCacheLine;
  return nb::cast(
      nb::ndarray<nb::memview, T>(reinterpret_cast<T*>(place), shape.size(), shape.data(), owner));
}

nb::object zeros(const std::vector<std::size_t>& shape, const std::string& dtype) {
  if (dtype == "float32") return zeros_of<float>(shape);
  if (dtype == "float64") return zeros_of<double>(shape);
  if (dtype == "int64") return zeros_of<std::int64_t>(shape);
  if (dtype == "int32") return zeros_of<std::int32_t>(shape);
  throw std::invalid_argument("no such dtype");
}

using AnyRows = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Integers = Array<const std::int64_t, 1>;

// Calls visit(i, source's row of the i-th feature, the length of a row in bytes) for `count` features.
template <class Visit>
void for_rows(const AnyRows& source, const Integers& features, std::size_t count, Visit visit) {
  if (count > features.size()) throw std::invalid_argument("so many features are not listed");
  const std::size_t bytes = source.shape(1) * source.itemsize();
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(features.data()[i]);
    if (at >= source.shape(0)) throw std::invalid_argument("no such feature");
    visit(i, at, static_cast<const char*>(source.data()) + at * bytes, bytes);
  }
}

// The rows of `count` features, from their places in one table to those in another.
void copy_rows(const AnyRows& source, const Integers& from, const AnyRows& target, const Integers& to,
               std::size_t count) {
  if (count > to.size() || target.shape(1) != source.shape(1) || target.itemsize() != source.itemsize())
    throw std::invalid_argument("tables do not fit each other");
  for_rows(source, from, count, [&](std::size_t i, std::size_t, const char* row, std::size_t bytes) {
    const auto at = static_cast<std::size_t>(to.data()[i]);
    if (at >= target.shape(0)) throw std::invalid_argument("no such feature");
    std::memcpy(static_cast<char*>(target.data()) + at * bytes, row, bytes);
  });
}

// The rows of `count` features one after the other.
void gather_rows(const AnyRows& source, const AnyRows& target, const Integers& features, std::size_t count) {
  if (target.shape(0) < count || target.shape(1) != source.shape(1) || target.itemsize() != source.itemsize())
    throw std::invalid_argument("tables do not fit each other");
  for_rows(source, features, count, [&](std::size_t i, std::size_t, const char* row, std::size_t bytes) {
    std::memcpy(static_cast<char*>(target.data()) + i * bytes, row, bytes);
  });
}

// The rows of a file, each into its feature's place.
void scatter_rows(const AnyRows& source, const AnyRows& target, const Integers& features) {
  if (source.shape(0) != features.size() || target.shape(1) != source.shape(1) ||
      target.itemsize() != source.itemsize())
    throw std::invalid_argument("tables do not fit each other");
  for_rows(target, features, features.size(), [&](std::size_t i, std::size_t at, const char*, std::size_t n) {
    std::memcpy(static_cast<char*>(target.data()) + at * n, static_cast<const char*>(source.data()) + i * n,
                n);
  });
}

// A column of the rows of `count` features, one number after the other.
template <class T>
nb::object column(const Array<const T, 2>& rows, std::size_t c, const Integers& features, std::size_t count) {
  if (c >= rows.shape(1) || count > features.size()) throw std::invalid_argument("no such column");
  nb::object made = zeros_of<double>({count});
  double* const out = nb::cast<nb::ndarray<double, nb::ndim<1>, nb::c_contig>>(made).data();
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(features.data()[i]);
    if (at >= rows.shape(0)) throw std::invalid_argument("no such feature");
    out[i] = static_cast<double>(rows.data()[at * rows.shape(1) + c]);
  }
  return made;
}

// The places of the first `count` features that are listed.
nb::object places_of(const Integers& features, std::size_t count,
                     const Array<const std::int32_t, 1>& places) {
  if (count > features.size()) throw std::invalid_argument("so many features are not listed");
  nb::object made = zeros_of<std::int64_t>({count});
  auto* const out = nb::cast<nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig>>(made).data();
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(features.data()[i]);
    if (at >= places.size()) throw std::invalid_argument("no such feature");
    out[i] = places.data()[at];
  }
  return made;
}

// Are these the numbers from 1 on?
bool are_counted(const Integers& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values.data()[i] != static_cast<std::int64_t>(i + 1)) return false;
  return true;
}

using AnyArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

bool large_pages(const AnyArray& array, bool hurry) {
  const nb::gil_scoped_release release;
  return use_large_pages(array.data(), array.nbytes(), hurry);
}

// Of an array that others use meanwhile nothing changes.
void large_pages_ahead(const AnyArray& array, std::size_t first, std::size_t last, bool hurry) {
  last = std::min(last, array.shape(0));
  if (first >= last) return;
  const std::size_t bytes = array.nbytes() / array.shape(0);
  const nb::gil_scoped_release release;
  prefer_large_pages(static_cast<char*>(array.data()) + first * bytes, (last - first) * bytes, hurry);
}

// The place of each of the first `count` features that are listed is its number in the list.
void number_features(const Integers& features, std::size_t count, const Array<std::int32_t, 1>& places) {
  if (count > features.size()) throw std::invalid_argument("so many features are not listed");
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(features.data()[i]);
    if (at >= places.size()) throw std::invalid_argument("no such feature");
    places.data()[at] = static_cast<std::int32_t>(i + 1);
  }
}

// The least and the largest, 0 where there is none.
std::tuple<std::int64_t, std::int64_t> extremes(const Array<const std::int64_t, kAnyDimensions>& values) {
  if (values.size() == 0) return {0, 0};
  const auto [least, largest] = std::minmax_element(values.data(), values.data() + values.size());
  return {*least, *largest};
}

// -0.0 is none: kernels compare epochs by their bits.
bool are_whole(const ConstDoubles& values, double least, double largest) {
  return std::all_of(values.data(), values.data() + values.size(), [&](double x) {
    return x >= least && x <= largest && x == std::floor(x) && !(x == 0 && std::signbit(x));
  });
}

bool are_distinct(const Integers& values) {
  std::vector<std::int64_t> sorted(values.data(), values.data() + values.size());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// Is each of these one of those?
bool are_among(const Integers& values, const Integers& those) {
  std::vector<std::int64_t> sorted(those.data(), those.data() + those.size());
  std::sort(sorted.begin(), sorted.end());
  return std::all_of(values.data(), values.data() + values.size(),
                     [&](std::int64_t x) { return std::binary_search(sorted.begin(), sorted.end(), x); });
}

// Where the first number is of which `wrong` is true; -1 if there is none.
template <class Wrong>
std::int64_t first_where(const ConstDoubles& values, Wrong wrong) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (wrong(values.data()[i])) return static_cast<std::int64_t>(i);
  return -1;
}

template <class T>
bool all_finite(const Array<const T, kAnyDimensions>& values) {
  const T* const begin = values.data();
  return std::all_of(begin, begin + values.size(), [](T x) { return std::isfinite(x); });
}

std::int64_t not_finite(const ConstDoubles& values) {
  return first_where(values, [](double x) { return !std::isfinite(x); });
}

std::int64_t negative(const ConstDoubles& values) {
  return first_where(values, [](double x) { return !(x >= 0.0); });  // NaN included
}

// The first few numbers that differ, the least and the largest, and whether all are finite.
std::tuple<std::vector<double>, double, double, bool> look(const ConstDoubles& values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double *const begin = values.data(), *const end = begin + values.size();
  double least = kInfinity, largest = -kInfinity, nothing = 0;
  for (const double* x = begin; x != end; ++x) {
    least = *x < least ? *x : least;
    largest = *x > largest ? *x : largest;
    nothing += *x - *x;  // NaN if it is not finite
  }
  if (nothing != 0) return {{}, least, largest, false};
  std::vector<double> few;
  if (begin != end) few.push_back(*begin);
  for (const double* x = begin; x != end && few.size() < 3; ++x)
    if (int{*x == few.front()} + int{*x == few.back()} == 0)
      few.push_back(*x);  // one branch, hardly ever taken
  return {few, least, largest, true};
}

// How many numbers differ from the one before.
std::int64_t changes(const ConstDoubles& values) {
  std::int64_t count = 0;
  for (std::size_t i = 1; i < values.size(); ++i) count += values.data()[i] != values.data()[i - 1];
  return count;
}

// The labels as the learner gets them (the same array if that is as they are), and the rows whose label is
// unfit.
std::tuple<nb::object, std::vector<std::int64_t>> code(LabelRule& rule, const nb::object& given) {
  const auto labels = nb::cast<ConstDoubles>(given);
  if (auto* const classes = std::get_if<ClassLabels>(&rule))
    classes->learn_zero(labels.data(), labels.size());
  auto unfit = unfit_rows(rule, labels.data(), labels.size());
  if (keeps_labels(rule)) return {given, std::move(unfit)};
  nb::object made = zeros_of<double>({labels.size()});
  double* const out = nb::cast<nb::ndarray<double, nb::ndim<1>, nb::c_contig>>(made).data();
  code_labels(rule, labels.data(), labels.size(), out);
  return {std::move(made), std::move(unfit)};
}

std::optional<bool> zero(const LabelRule& rule) {
  const auto* const classes = std::get_if<ClassLabels>(&rule);
  if (classes == nullptr || classes->zero < 0) return std::nullopt;
  return classes->zero == 1;
}

void bind_labels(nb::module_& m) {
  using Rule = LabelRule;
  nb::class_<Rule>(m, "LabelRule")
      .def_static(
          "numbers", [](double low, double high) { return Rule(NumberLabels{low, high}); }, "low"_a, "high"_a)
      .def_static("signs", [] { return Rule(SignLabels{}); })
      .def_static(
          "positive", [](double label) { return Rule(PositiveLabels{label}); }, "label"_a)
      .def_static(
          "classes",
          [](std::int64_t count, std::optional<bool> zero) {
            return Rule(ClassLabels{static_cast<double>(count), zero ? (*zero ? 1 : 0) : -1});
          },
          "count"_a, "zero"_a.none() = nb::none())
      .def("takes", &label_fits, "label"_a)
      .def(
          "unfit",
          [](const Rule& rule, const ConstDoubles& labels) {
            return unfit_rows(rule, labels.data(), labels.size());
          },
          "labels"_a, "The rows whose label does not fit.")
      .def("code", &code, "labels"_a, "(what the learner gets, rows whose label does not fit)")
      .def_prop_ro("zero", &zero, "Are classes counted from 0? None if that is not known.");
}

nb::tuple losses() {
  nb::list names;
  for (const auto& [name, parameter] : loss_names) names.append(nb::make_tuple(name, parameter));
  return nb::tuple(names);
}

// Adds rows, first to last, to the sums of a progressive score; and says whether all labels are -1 or +1.
std::tuple<double, double, double, bool> add_losses(int code, double parameter,
                                                    const ConstDoubles& predictions,
                                                    const ConstDoubles& labels,
                                                    const std::optional<ConstDoubles>& weights, double losses,
                                                    double mistakes, double weight) {
  const Loss loss = make_loss(code, parameter);
  const std::size_t n = labels.size();
  if (predictions.size() != n || (weights && weights->size() != n))
    throw std::invalid_argument("lengths differ");
  bool signs = true;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = predictions.data()[i], y = labels.data()[i], w = weights ? weights->data()[i] : 1.0;
    losses += w * loss.value(p, y);
    mistakes += (p >= 0.0 ? 1.0 : -1.0) != y ? w : 0.0;
    weight += w;
    signs = signs && std::abs(y) == 1.0;
  }
  return {losses, mistakes, weight, signs};
}

// The cross-entropy of the softmax of K scores.
double cross_entropy(const double* p, std::size_t label, std::vector<double>& powers) {
  constexpr double kFarthest = -700;  // e^−700 adds nothing to 1
  const double top = *std::max_element(p, p + powers.size());
  for (std::size_t k = 0; k < powers.size(); ++k) powers[k] = std::max(p[k] - top, kFarthest);
  exp_all(powers.data(), static_cast<std::int64_t>(powers.size()));
  double sum = 0;
  for (double power : powers) sum += power;
  return std::log(sum) - (p[label] - top);
}

// The same as add_losses for K scores per row: the mean of the losses of each class against the rest, or
// without a code the cross-entropy of their softmax.
std::tuple<double, double, double> add_class_losses(const std::optional<int>& code, double parameter,
                                                    const Array<const double, 2>& predictions,
                                                    const ConstDoubles& labels,
                                                    const std::optional<ConstDoubles>& weights, double losses,
                                                    double mistakes, double weight) {
  const std::optional<Loss> loss = code ? std::optional(make_loss(*code, parameter)) : std::nullopt;
  const std::size_t n = labels.size(), K = predictions.shape(1);
  if (predictions.shape(0) != n || (weights && weights->size() != n))
    throw std::invalid_argument("lengths differ");
  std::vector<double> powers(K);
  for (std::size_t i = 0; i < n; ++i) {
    const double *p = predictions.data() + i * K, y = labels.data()[i],
                 w = weights ? weights->data()[i] : 1.0;
    if (!(y >= 0 && y < static_cast<double>(K) && y == std::floor(y)))
      throw std::invalid_argument("row " + std::to_string(i) + ": expected the number of one of " +
                                  std::to_string(K) + " classes as the label, got " + std::to_string(y));
    const auto label = static_cast<std::size_t>(y);
    double its = 0;
    if (loss) {
      for (std::size_t k = 0; k < K; ++k) its += loss->value(p[k], k == label ? 1.0 : -1.0);
      its /= static_cast<double>(K);
    } else {
      its = cross_entropy(p, label, powers);
    }
    losses += w * its;
    mistakes += static_cast<std::size_t>(std::max_element(p, p + K) - p) != label ? w : 0.0;
    weight += w;
  }
  return {losses, mistakes, weight};
}

}  // namespace

void bind_arrays(nb::module_& m) {
  m.def("zeros", &zeros, "shape"_a, "dtype"_a);
  m.def("copy_rows", &copy_rows, "source"_a.noconvert(), "from_places"_a, "target"_a.noconvert(),
        "to_places"_a, "count"_a);
  m.def("gather_rows", &gather_rows, "source"_a.noconvert(), "target"_a.noconvert(), "features"_a, "count"_a);
  m.def("places_of", &places_of, "features"_a, "count"_a, "places"_a);
  m.def("are_counted", &are_counted, "values"_a, "Are these 1, 2, 3, …?");
  m.def(
      "use_large_pages", &large_pages, "array"_a.noconvert(), "hurry"_a,
      "Have the system use pages of 2 MB where it is in use. False: they take long; wait, or do not hurry.");
  m.def("prefer_large_pages", &large_pages_ahead, "array"_a.noconvert(), "first"_a, "last"_a, "hurry"_a,
        "The same for rows that nobody has used yet; in a hurry, not where they take long.");
  m.def("number_features", &number_features, "features"_a, "count"_a, "places"_a.noconvert());
  m.def("scatter_rows", &scatter_rows, "source"_a.noconvert(), "target"_a.noconvert(), "features"_a);
  m.def("column", &column<float>, "rows"_a.noconvert(), "column"_a, "features"_a, "count"_a);
  m.def("column", &column<double>, "rows"_a.noconvert(), "column"_a, "features"_a, "count"_a,
        "A column of the rows of so many features, as float64.");
  m.def("extremes", &extremes, "values"_a, "The least and the largest; zeros if there are none.");
  m.def("are_whole", &are_whole, "values"_a, "least"_a, "largest"_a);
  m.def("are_distinct", &are_distinct, "values"_a);
  m.def("are_among", &are_among, "values"_a, "those"_a, "Is each of these values one of those?");
  m.def("all_finite", &all_finite<float>, "values"_a);
  m.def("all_finite", &all_finite<double>, "values"_a, "Is every number finite? Of any shape.");
  m.def("not_finite", &not_finite, "values"_a, "Where the first one is; -1 if there is none.");
  m.def("negative", &negative, "values"_a, "Where the first one is, or the first NaN; -1 if there is none.");
  m.def("look", &look, "values"_a, "(the first three that differ, least, largest, all finite)");
  m.def("changes", &changes, "values"_a, "How many differ from the one before.");
  m.def("add_losses", &add_losses, "code"_a, "parameter"_a, "predictions"_a, "labels"_a, "weights"_a.none(),
        "losses"_a, "mistakes"_a, "weight"_a);
  m.def("add_class_losses", &add_class_losses, "code"_a.none(), "parameter"_a, "predictions"_a, "labels"_a,
        "weights"_a.none(), "losses"_a, "mistakes"_a, "weight"_a);
  m.attr("LOSSES") = losses();  // name and, if it has one, name of the parameter
  bind_labels(m);
}

}  // namespace skn
