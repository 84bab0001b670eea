// JSON lines → items: one object of a line, flat or with one level of objects and lists in it.
//
// Only what is certainly right is taken: of any other line the parser says no more than that, and
// `streams/formats/jsonl.py` finds out what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/number.hpp"
#include "text/table_rows.hpp"

namespace skn::json {

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Whether the bytes are UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF.
inline bool is_utf8(const char* p, const char* end) {
  const auto byte = [](char c) { return static_cast<unsigned char>(c); };
  while (p < end) {
    const unsigned char first = byte(*p++);
    if (first < 0x80) continue;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4 || end - p < more) return false;
    const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(*p) < low || byte(*p) > high) return false;
    for (int k = 1; k < more; ++k)
      if ((byte(p[k]) & 0xC0) != 0x80) return false;
    p += more;
  }
  return true;
}

inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  if (code < 0x10000) {
    put(0xE0 | code >> 12);
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
  }
  put(0x80 | (code >> 6 & 0x3F));
  put(0x80 | (code & 0x3F));
}

inline bool read_hex(const char* p, const char* end, std::uint32_t& code) {
  if (end - p < 4) return false;
  code = 0;
  for (int k = 0; k < 4; ++k) {
    const char c = p[k], letter = static_cast<char>(c | 0x20);
    const bool digit = text::is_digit(c);
    if (!digit && (letter < 'a' || letter > 'f')) return false;
    code = code << 4 | static_cast<std::uint32_t>(digit ? c - '0' : letter - 'a' + 10);
  }
  return true;
}

// A string without its quotes, its escapes undone; false for what is no escape, and for half a character.
inline bool unescape(std::string_view raw, std::string& out) {
  static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  out.clear();
  const char *p = raw.data(), *const end = p + raw.size();
  while (p < end) {
    if (*p != '\\') {
      out += *p++;
      continue;
    }
    if (++p == end) return false;
    if (*p != 'u') {
      const std::size_t which = from.find(*p++);
      if (which == from.npos) return false;
      out += to[which];
      continue;
    }
    std::uint32_t code, second;
    if (!read_hex(++p, end, code)) return false;
    p += 4;
    if (code >= 0xD800 && code < 0xE000) {
      const bool pair = code < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
                        read_hex(p + 2, end, second) && second >= 0xDC00 && second < 0xE000;
      if (!pair) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
      p += 6;
    }
    append_utf8(out, code);
  }
  return true;
}

enum class Type : std::uint8_t { null, yes, no, number, string, object, list };

struct Item {
  Type type = Type::null;
  bool escaped = false;      // a string
  bool integer = false;      // a number
  std::uint32_t key = 0;     // of an object's member
  std::uint32_t inside = 0;  // how many items of an object or list follow
  const char *begin = nullptr, *end = nullptr;
  double value = 0.0;
};

struct Key {
  std::string text;
  std::int64_t column = -1;  // none yet
  std::int32_t label = -1;   // which of the labels, if one
  bool weight = false, tag = false, dropped = false;
  std::uint64_t line = 0;  // the last that has it, counted from 1
};

// The keys of all objects so far.
class Keys {
 public:
  static constexpr std::uint32_t kTop = ~std::uint32_t{0};

  Key& operator[](std::uint32_t at) { return keys_[at]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(keys_.size()); }

  std::uint32_t find(std::string_view text) {
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back({std::string(text)});
    numbers_.emplace(std::string(text), number);
    return number;
  }

  // Objects mostly have the keys of the object before them, in the same order; `place` counts those of a
  // line.
  void begin_line() {
    place_ = 0;
    ++line_;
  }

  // The member of an object that belongs to `parent`; false for a key that takes more care, or comes twice.
  bool member(std::string_view raw, bool escaped, std::uint32_t parent, std::uint32_t& key) {
    return find_member(raw, escaped, parent, key) && std::exchange(keys_[key].line, line_) != line_;
  }

 private:
  struct Expected {
    std::string raw;
    std::uint32_t parent = kTop, key = 0;
  };

  bool find_member(std::string_view raw, bool escaped, std::uint32_t parent, std::uint32_t& key) {
    const std::size_t place = place_++;
    if (place < expected_.size() && expected_[place].parent == parent && expected_[place].raw == raw) {
      key = expected_[place].key;
      return true;
    }
    std::string_view text = raw;
    if (escaped) {
      if (!unescape(raw, text_)) return false;
      text = text_;
    }
    if (parent == kTop) {
      key = find(text);
    } else {
      if (keys_[parent].text.find('|') != std::string::npos) return false;
      full_.assign(keys_[parent].text);
      (full_ += '|') += text;
      key = find(full_);
    }
    if (place < kMostExpected) {
      if (place >= expected_.size()) expected_.resize(place + 1);
      expected_[place] = {std::string(raw), parent, key};
    }
    return true;
  }

  static constexpr std::size_t kMostExpected = 1 << 12;

  std::vector<Key> keys_;
  table::ByText<std::uint32_t> numbers_;
  std::vector<Expected> expected_;
  std::size_t place_ = 0;
  std::uint64_t line_ = 0;
  std::string text_, full_;
};

// The items of a line, an object's before those of what follows it.
class Line {
 public:
  std::vector<Item> items;

  // False: not certainly right. [p, end) is a line without its end; `limit` bounds what may be read.
  bool read(Keys& keys, const char* p, const char* end, const char* limit) {
    keys_ = &keys;
    end_ = end;
    limit_ = limit;
    items.clear();
    keys.begin_line();
    p = skip(p);
    if (*p != '{' || (p = object(p + 1, Keys::kTop)) == nullptr) return false;
    return skip(p) == end;
  }

 private:
  static constexpr std::size_t kMostItems = 1 << 18;

  static const char* skip(const char* p) {
    while (is_space(*p)) ++p;
    return p;
  }

  // Behind the closing quote of the string whose opening quote is before p.
  const char* string(const char* p, bool& escaped) const {
    escaped = false;
    for (;; ++p) {
      if (*p == '"') return p + 1;
      if (static_cast<unsigned char>(*p) < 0x20) return nullptr;  // the line's end, too
      if (*p != '\\') continue;
      escaped = true;
      if (++p >= end_) return nullptr;
    }
  }

  // The members of an object, behind its bracket.
  const char* object(const char* p, std::uint32_t parent) {
    p = skip(p);
    if (*p == '}') return p + 1;
    while (true) {
      bool escaped;
      if (*p != '"') return nullptr;
      const char* const key = ++p;
      if ((p = string(p, escaped)) == nullptr) return nullptr;
      Item item;
      if (!keys_->member({key, static_cast<std::size_t>(p - 1 - key)}, escaped, parent, item.key))
        return nullptr;
      p = skip(p);
      if (*p != ':') return nullptr;
      if ((p = value(skip(p + 1), item, parent == Keys::kTop ? 1 : 2)) == nullptr) return nullptr;
      p = skip(p);
      if (*p == '}') return p + 1;
      if (*p != ',') return nullptr;
      p = skip(p + 1);
    }
  }

  const char* list(const char* p) {
    p = skip(p);
    if (*p == ']') return p + 1;
    while (true) {
      if ((p = value(p, Item(), 3)) == nullptr) return nullptr;
      p = skip(p);
      if (*p == ']') return p + 1;
      if (*p != ',') return nullptr;
      p = skip(p + 1);
    }
  }

  // An object's member at depth 1 or 2, or an item of a list, which may be neither object nor list.
  const char* value(const char* p, Item item, int depth) {
    if (items.size() >= kMostItems) return nullptr;
    const std::size_t at = items.size();
    item.begin = p;
    items.push_back(item);
    if (*p == '"') {
      bool escaped;
      if ((p = string(p + 1, escaped)) == nullptr) return nullptr;
      items[at].escaped = escaped;
      ++items[at].begin;
      items[at].end = p - 1;
      items[at].type = Type::string;
    } else if (*p == '-' || text::is_digit(*p)) {
      if ((p = number(p, items[at])) == nullptr) return nullptr;
    } else if (*p == '{' || *p == '[') {
      if (depth == 3) return nullptr;
      const bool is_object = *p == '{';
      p = is_object ? object_at(p + 1, item.key, depth) : list(p + 1);
      if (p == nullptr) return nullptr;
      items[at].type = is_object ? Type::object : Type::list;
      items[at].inside = static_cast<std::uint32_t>(items.size() - at - 1);
    } else {
      return literal(p, items[at]);
    }
    return p;
  }

  const char* object_at(const char* p, std::uint32_t parent, int depth) {
    if (depth == 1) return object(p, parent);
    p = skip(p);  // an empty one says nothing
    return *p == '}' ? p + 1 : nullptr;
  }

  const char* literal(const char* p, Item& item) const {
    const auto is = [this, p](std::string_view word) {
      return static_cast<std::size_t>(end_ - p) >= word.size() &&
             std::memcmp(p, word.data(), word.size()) == 0;
    };
    if (is("null")) return item.type = Type::null, p + 4;
    if (is("true")) return item.type = Type::yes, p + 4;
    if (is("false")) return item.type = Type::no, p + 5;
    return nullptr;
  }

  const char* number(const char* p, Item& item) const {
    const char* const begin = p;
    p += *p == '-';
    if (!text::is_digit(*p) || (*p == '0' && text::is_digit(p[1]))) return nullptr;
    while (text::is_digit(*p)) ++p;
    item.integer = *p != '.' && *p != 'e' && *p != 'E';
    if (*p == '.') {
      if (!text::is_digit(*++p)) return nullptr;
      while (text::is_digit(*p)) ++p;
    }
    if (*p == 'e' || *p == 'E') {
      ++p;
      p += *p == '-' || *p == '+';
      if (!text::is_digit(*p)) return nullptr;
      while (text::is_digit(*p)) ++p;
    }
    const char* read = begin;
    const auto ends = [](char c) { return !text::is_digit(c) && c != '.' && c != 'e' && c != 'E'; };
    if (text::read_number(read, limit_, item.value, ends) != text::NumberError::none || read != p)
      return nullptr;
    item.type = Type::number;
    item.end = p;
    return p;
  }

  Keys* keys_ = nullptr;
  const char *end_ = nullptr, *limit_ = nullptr;
};

}  // namespace skn::json
