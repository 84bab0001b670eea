// Names → indices as Vowpal Wabbit makes them: MurmurHash3 (x86, 32 bits) of the name, seeded with the hash
// of its namespace; a name of digits is the number itself, counted from the namespace's hash.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skn::hashing {

inline std::uint32_t rotate_left(std::uint32_t x, int by) { return x << by | x >> (32 - by); }

// Four bytes, the first one lowest.
inline std::uint32_t load_four(const char* p) {
  std::uint32_t x = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&x, p, 4);
  } else {
    for (int i = 0; i < 4; ++i) x |= static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])) << 8 * i;
  }
  return x;
}

// Appleby's MurmurHash3_x86_32.
inline std::uint32_t murmur3(const char* data, std::size_t size, std::uint32_t seed) {
  constexpr std::uint32_t c1 = 0xcc9e2d51, c2 = 0x1b873593;
  const auto mixed = [](std::uint32_t k) { return rotate_left(k * c1, 15) * c2; };
  std::uint32_t h = seed;
  const char* const end = data + size;
  for (; end - data >= 4; data += 4) h = rotate_left(h ^ mixed(load_four(data)), 13) * 5 + 0xe6546b64;
  std::uint32_t rest = 0;
  if (size >= 4) {  // the last ones without those that are done
    rest = static_cast<std::uint32_t>(std::uint64_t{load_four(end - 4)} << 8 * (size % 4) >> 32);
  } else {
    for (const char* p = end; p > data;) rest = rest << 8 | static_cast<unsigned char>(*--p);
  }
  h ^= mixed(rest);  // of no bytes: 0
  h ^= static_cast<std::uint32_t>(size);
  h = (h ^ h >> 16) * 0x85ebca6b;
  h = (h ^ h >> 13) * 0xc2b2ae35;
  return h ^ h >> 16;
}

// ASCII blanks and control characters; bytes of UTF-8 are neither.
inline bool is_blank(char c) { return static_cast<unsigned char>(c) <= 0x20; }

inline std::string_view trimmed(std::string_view name) {
  while (!name.empty() && is_blank(name.front())) name.remove_prefix(1);
  while (!name.empty() && is_blank(name.back())) name.remove_suffix(1);
  return name;
}

// The hash of a name within a namespace of this hash; of a namespace's own name, with seed 0.
inline std::uint64_t name_hash(std::string_view name, std::uint64_t seed) {
  name = trimmed(name);
  std::uint64_t number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return murmur3(name.data(), name.size(), static_cast<std::uint32_t>(seed));
    number = 10 * number + static_cast<std::uint64_t>(c - '0');
  }
  return number + seed;
}

// How indices of several features become that of their interaction, from left to right.
inline std::uint64_t interaction_hash(std::uint64_t left, std::uint64_t right) {
  return 16777619 * left ^ right;
}

// How indices of neighbours become that of an n-gram, from left to right.
inline std::uint64_t ngram_hash(std::uint64_t left, std::uint64_t right) { return 27942141 * left + right; }

}  // namespace skn::hashing
