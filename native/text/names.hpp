// The names of features, in order of first appearance: a dictionary instead of hashing, or a record of what
// was hashed to which index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory/fork_safe_mutex.hpp"

namespace skn {

// An entry is found by its key. The first byte says how the rest is to be read:
//   'n' namespace^name                         one feature; see `named`
//   'x' entries of 8 bytes each, little endian their interaction
//   'g' the same                               their n-gram
//
// Single features are numbered 0, 2, 4, … and joined ones 1, 3, 5, …, so that the number of neither depends
// on how many rows are looked at together.
class Names {
 public:
  explicit Names(bool exact) : exact_(exact) {}

  bool exact() const { return exact_; }
  std::size_t singles() const { return lists_[0].keys.size(); }
  std::size_t joints() const { return lists_[1].keys.size(); }
  bool joins() const { return joins_; }

  // Exact indices are the numbers of entries where features are joined, and half of them where they are not.
  // False: it is too late to change one's mind.
  bool set_joins(bool joins) {
    if (joins != joins_ && exact_ && singles() + joints() > 0) return false;
    joins_ = joins;
    return true;
  }

  const std::string& key(std::int64_t entry) const { return *list(entry).keys[place(entry)]; }
  std::int64_t index(std::int64_t entry) const { return list(entry).indices[place(entry)]; }

  // The entry of a key, new or old. `hashed` is its index unless names are exact.
  std::int64_t entry(std::string_view key, std::int64_t hashed) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    const bool joint = key[0] != 'n';
    List& list = lists_[joint];
    const auto count = static_cast<std::int64_t>(list.keys.size());
    const std::int64_t number = 2 * count + joint;
    const auto added = entries_.emplace(std::string(key), number).first;
    list.keys.push_back(&added->first);
    list.indices.push_back(!exact_ ? hashed : joins_ ? number : count);
    return number;
  }

  std::int64_t named(std::string_view space, std::string_view name, std::int64_t hashed) {
    write_name(scratch_, space, name);
    return entry(scratch_, hashed);
  }

  std::int64_t joined(char kind, const std::int64_t* entries, std::size_t count, std::int64_t hashed) {
    scratch_.assign(1, kind);
    for (std::size_t i = 0; i < count; ++i) {
      for (int byte = 0; byte < 8; ++byte) scratch_ += static_cast<char>(entries[i] >> 8 * byte);
    }
    return entry(scratch_, hashed);
  }

  // What people read: `namespace^name`, with `*` between the features of an interaction. That of joined
  // features is cut off: a few bytes of a file may join long names many times.
  std::string shown(std::int64_t entry) const {
    const std::string& key = this->key(entry);
    if (key[0] == 'n') return key.substr(1);
    std::string result;
    for (std::size_t at = 1; at < key.size(); at += 8) {
      if (at > 1) result += key[0] == 'x' ? '*' : ' ';
      const std::int64_t member = part(key, at);
      if (this->key(member)[0] == 'n')
        result.append(this->key(member), 1, kLongestShown);
      else
        result += shown(member);  // an n-gram, of single features
      if (result.size() > kLongestShown) return result.substr(0, kLongestShown) + "…";
    }
    return result;
  }

  // Takes back what `key` gave, single features first; false for a key that no entry can have at this place.
  // An n-gram joins single features, an interaction joins those and n-grams: nothing is deeper than that.
  bool restore(const std::string& key, std::int64_t hashed) {
    if (key.empty() || entries_.contains(key)) return false;
    if (key[0] != 'n') {
      if ((key[0] != 'x' && key[0] != 'g') || key.size() % 8 != 1 || key.size() == 1) return false;
      for (std::size_t at = 1; at < key.size(); at += 8) {
        const std::int64_t earlier = part(key, at);
        if (earlier < 0 || place(earlier) >= list(earlier).keys.size()) return false;
        if (this->key(earlier)[0] == 'x' || (this->key(earlier)[0] == 'g' && key[0] == 'g')) return false;
      }
    }
    entry(key, hashed);
    return true;
  }

  // A reader's thread adds names while others may look: whoever does either holds this.
  ForkSafeMutex& mutex() { return mutex_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
  };

  // The default namespace is not shown, unless the name has a '^'; '^' and '\' of a namespace are escaped, so
  // that different features have different keys.
  static void write_name(std::string& key, std::string_view space, std::string_view name) {
    key.assign(1, 'n');
    for (const char c : space) {
      if (c == '^' || c == '\\') key += '\\';
      key += c;
    }
    if (!space.empty() || name.find('^') != std::string_view::npos) key += '^';
    key += name;
  }

  static std::int64_t part(const std::string& key, std::size_t at) {
    std::uint64_t value = 0;
    for (int byte = 7; byte >= 0; --byte) {
      value = value << 8 | static_cast<unsigned char>(key[at + static_cast<std::size_t>(byte)]);
    }
    return static_cast<std::int64_t>(value);
  }

  static constexpr std::size_t kLongestShown = 1000;  // bytes

  struct List {
    std::vector<const std::string*> keys;
    std::vector<std::int64_t> indices;
  };

  const List& list(std::int64_t entry) const { return lists_[entry & 1]; }
  static std::size_t place(std::int64_t entry) { return static_cast<std::size_t>(entry >> 1); }

  bool exact_;
  bool joins_ = false;
  std::array<List, 2> lists_;  // single features, joined ones
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> entries_;
  std::string scratch_;
  ForkSafeMutex mutex_;
};

}  // namespace skn
