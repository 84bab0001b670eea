// Rows with namespaces → rows as the learner sees them: namespaces dropped, n-grams and interactions added.
//
// Indices of n-grams and interactions are Vowpal Wabbit's (hashing.hpp), or entries of exact names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "text/hashing.hpp"
#include "text/names.hpp"

namespace skn {

// A row that grows beyond this is a mistake, and would take the memory of the machine.
inline constexpr std::size_t max_row_features = std::size_t{1} << 24;

struct Expansion {
  std::array<bool, 256> kept{};           // by the first byte of a namespace
  std::array<std::uint8_t, 256> ngram{};  // 0 or 1: none; n: all grams of 2 … n neighbours
  std::vector<std::string>
      interactions;  // first bytes of namespaces; ':' stands for each namespace of the row
  std::uint64_t mask = ~std::uint64_t{0};
};

struct SpacedRows {
  std::span<const std::int64_t> indptr, indices;
  std::span<const double> data;
  std::span<const std::uint8_t> spaces;
  std::span<const std::int64_t> entries;  // in the names, where there are names
};

struct ExpandedRows {
  std::vector<std::int64_t> indptr{0}, indices;
  std::vector<double> data;
};

class Expander {
 public:
  Expander(const Expansion& how, Names* names) : how_(how), names_(names) {}

  // Throws std::overflow_error where a row grows out of bounds.
  ExpandedRows expand(const SpacedRows& rows) {
    ExpandedRows out;
    out.indices.reserve(rows.indices.size());
    out.data.reserve(rows.indices.size());
    for (std::size_t row = 0; row + 1 < rows.indptr.size(); ++row) {
      gather(rows, static_cast<std::size_t>(rows.indptr[row]),
             static_cast<std::size_t>(rows.indptr[row + 1]));
      begin_ = out.indices.size();
      for (const std::uint8_t space : present_) {
        for (const Feature& feature : groups_[space]) write(out, feature);
      }
      choose_terms();
      for (const auto& [key, term] : chosen_) {
        spaces_.assign(term.begin(), term.end());
        combine(out, 0);
      }
      out.indptr.push_back(static_cast<std::int64_t>(out.indices.size()));
      for (const std::uint8_t space : present_) groups_[space].clear();
    }
    return out;
  }

 private:
  struct Feature {
    std::uint64_t index;
    double value;
    std::int64_t entry;
  };

  // The features of one row by namespace, in order of appearance, with their n-grams.
  void gather(const SpacedRows& rows, std::size_t begin, std::size_t end) {
    present_.clear();
    for (std::size_t k = begin; k < end; ++k) {
      const std::uint8_t space = rows.spaces.empty() ? std::uint8_t{' '} : rows.spaces[k];
      if (!how_.kept[space]) continue;
      if (groups_[space].empty()) present_.push_back(space);
      const auto index = static_cast<std::uint64_t>(rows.indices[k]) & how_.mask;
      groups_[space].push_back({index, rows.data[k], rows.entries.empty() ? -1 : rows.entries[k]});
    }
    for (const std::uint8_t space : present_) add_ngrams(groups_[space], how_.ngram[space]);
  }

  void add_ngrams(std::vector<Feature>& group, std::size_t longest) {
    const std::size_t words = group.size();
    std::vector<std::int64_t> parts;
    for (std::size_t n = 2; n <= longest; ++n) {
      for (std::size_t first = 0; first + n <= words; ++first) {
        std::uint64_t hash = group[first].index;
        parts.assign(1, group[first].entry);
        for (std::size_t k = first + 1; k < first + n; ++k) {
          hash = hashing::ngram_hash(hash, group[k].index);
          parts.push_back(group[k].entry);
        }
        group.push_back(joined('g', parts, hash, 1.0));
      }
    }
  }

  Feature joined(char kind, const std::vector<std::int64_t>& parts, std::uint64_t hash, double value) {
    hash &= how_.mask;
    if (names_ == nullptr) return {hash, value, -1};
    const std::int64_t entry =
        names_->joined(kind, parts.data(), parts.size(), static_cast<std::int64_t>(hash));
    return {static_cast<std::uint64_t>(names_->index(entry)), value, entry};
  }

  // The interactions of the row in progress, with a namespace for each ':'.
  void choose_terms() {
    sorted_ = present_;
    std::sort(sorted_.begin(), sorted_.end());
    if (sorted_ == chosen_for_) return;
    chosen_for_ = sorted_;
    chosen_.clear();
    for (const std::string& term : how_.interactions) {
      spaces_.clear();
      choose(term);
    }
  }

  // Each ':' becomes a namespace of the row, not before the one that the ':' left of it became. As in Vowpal
  // Wabbit a set of namespaces is taken once, however often it is asked for; what repeats one is sorted.
  void choose(const std::string& term, std::uint8_t least = 0) {
    const std::size_t at = spaces_.size();
    if (at == term.size()) {
      std::string key(spaces_.begin(), spaces_.end()), asked = key;
      std::sort(key.begin(), key.end());
      if (std::adjacent_find(key.begin(), key.end()) != key.end()) asked = key;
      std::string& kept = chosen_.try_emplace(key, asked).first->second;
      kept = std::min(kept, asked);
      return;
    }
    const bool any = term[at] == ':';
    const std::uint8_t only = static_cast<std::uint8_t>(term[at]);
    for (const std::uint8_t space : any ? std::span<const std::uint8_t>(sorted_) : std::span(&only, 1)) {
      if (any && space < least) continue;
      spaces_.push_back(space);
      choose(term, any ? space : least);
      spaces_.pop_back();
    }
  }

  // All combinations of a feature from each of `spaces_`; from a namespace that repeats its neighbour, those
  // not before the neighbour's, so that each set of features comes once.
  void combine(ExpandedRows& out, std::size_t depth, std::uint64_t hash = 0, double value = 1.0,
               std::size_t last = 0) {
    if (depth == 0) parts_.clear();
    if (depth == spaces_.size()) {
      write(out, joined('x', parts_, hash, value));
      return;
    }
    const std::vector<Feature>& group = groups_[spaces_[depth]];
    const bool repeats = depth > 0 && spaces_[depth] == spaces_[depth - 1];
    for (std::size_t k = repeats ? last : 0; k < group.size(); ++k) {
      parts_.push_back(group[k].entry);
      const std::uint64_t next =
          depth == 0 ? group[k].index : hashing::interaction_hash(hash, group[k].index);
      combine(out, depth + 1, next, value * group[k].value, k);
      parts_.pop_back();
    }
  }

  void write(ExpandedRows& out, const Feature& feature) {
    if (out.indices.size() - begin_ >= max_row_features)
      throw std::overflow_error("too many features in a row");
    out.indices.push_back(static_cast<std::int64_t>(feature.index));
    out.data.push_back(feature.value);
  }

  const Expansion& how_;
  Names* names_;
  std::array<std::vector<Feature>, 256> groups_;
  std::vector<std::uint8_t> present_, sorted_, spaces_;
  std::map<std::string, std::string> chosen_;  // interactions by their namespaces, sorted
  std::vector<std::uint8_t> chosen_for_;       // the namespaces of the row they were chosen for
  std::vector<std::int64_t> parts_;
  std::size_t begin_ = 0;  // of the row in progress
};

}  // namespace skn
