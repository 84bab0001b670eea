// A column of a table: its names and their hashes, its kind, and what is known of its cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/hashing.hpp"

namespace skn::table {

enum class Kind : std::uint8_t { unknown, number, boolean, category, text, date };

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

struct Feature {
  std::string ending;  // what follows the column's name in the feature's
  double value;
};

struct Known {
  std::vector<Feature> features;
  bool misfit = false;  // not of the column's kind, and taken as missing
};

struct Column {
  std::string space, name;  // of the features: of `space|name`, or of `name` alone
  std::string named;        // `name=`, before a category and of a missing value
  std::string key;          // of the table
  std::string within;       // the namespace of a list's numbers: `name`, or `space^name`
  Kind kind = Kind::unknown;
  std::uint8_t longest = 1;       // words of a text that are one feature
  std::uint8_t number = 0;        // among those with interactions
  std::uint64_t seed = 0;         // of the namespace
  std::uint64_t within_seed = 0;  // of that of a list's numbers
  std::uint64_t plain = 0;        // the hash of the name
  std::uint64_t missing = 0;      // of `name=`
  ByText<Known> texts;            // cells that were asked for
  ByText<Known> numbers;          // the same for numbers, where these are not the value

  Column(std::string_view of, std::uint8_t joined) : key(of), number(joined) {
    const std::size_t bar = of.find('|');
    space = bar == of.npos ? std::string_view() : of.substr(0, bar);
    name = bar == of.npos ? of : of.substr(bar + 1);
    within = space.empty() ? name : space + '^' + name;
    seed = hashing::name_hash(space, 0);
    within_seed = hashing::name_hash(within, 0);
    plain = hashing::name_hash(name, seed);
    named = name + '=';
    missing = hashing::name_hash(named, seed);
  }
};

}  // namespace skn::table
