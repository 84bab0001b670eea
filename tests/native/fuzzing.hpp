// What the fuzzers share: inputs made of a corpus by small changes, properties that must hold, the loop.
//
//   fuzz_NAME --inputs 100000 --seconds 60 [--seed 1]
//
// Deterministic for a seed. Exits with 1 and prints the input when a property fails, and with 2 when the
// time ran out before all inputs were done.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace fuzzing {

inline const char* name = "";

class Mutator {
 public:
  // `likely` are the characters that are inserted more often than others.
  Mutator(std::uint64_t seed, const std::vector<std::string>& corpus, std::string_view likely)
      : random_(seed), corpus_(corpus), likely_(likely) {}

  std::string next() {
    std::string text;
    for (std::size_t lines = 1 + below(4); lines > 0; --lines) text += pick();
    for (std::size_t changes = below(6); changes > 0; --changes) change(text);
    return text;
  }

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

 private:
  const std::string& pick() { return corpus_[below(corpus_.size())]; }

  char byte() { return below(4) == 0 ? static_cast<char>(below(256)) : likely_[below(likely_.size())]; }

  std::string number() {
    std::string text;
    for (std::size_t digits = 1 + below(below(8) == 0 ? 800 : 22); digits > 0; --digits) {
      text += static_cast<char>('0' + below(10));
      if (below(12) == 0) text += '.';
    }
    const int largest = below(2) == 0 ? 350 : 40;  // beyond what a double holds, or around what is exact
    if (below(2) == 0) text += "e" + std::to_string(static_cast<int>(below(2 * largest)) - largest);
    return text;
  }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(text.size() - at + 1);
    switch (below(9)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.insert(at, 1, byte());
        break;
      case 2:
        text.erase(at, 1 + below(3));
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, text.substr(at, length));
        break;
      case 5:
        text.resize(at);
        break;
      case 6:
        text = text.substr(0, at) + pick();
        break;
      case 7:
        text.insert(at, number());
        break;
      default:
        text.insert(at, std::to_string(below(100)) + ":" + number() + " ");
        break;
    }
  }

  std::mt19937_64 random_;
  const std::vector<std::string>& corpus_;
  std::string_view likely_;
};

inline std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::size_t size = newline == text.npos ? text.size() : newline + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

[[noreturn]] inline void report(const char* property, std::string_view text) {
  std::fprintf(stderr, "%s: violated: %s\ninput: \"", name, property);
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    std::fprintf(stderr, byte >= 32 && byte < 127 && c != '"' && c != '\\' ? "%c" : "\\x%02x", byte);
  }
  std::fprintf(stderr, "\"\n");
  std::exit(1);
}

inline void require(bool holds, const char* property, std::string_view text) {
  if (!holds) report(property, text);
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

inline std::uint64_t option(int argc, char** argv, std::string_view name, std::uint64_t fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return fallback;
}

// Checks the corpus, then what is made of it; `check` is given a text and, but for the corpus, the mutator.
template <class Check>
int run(const char* program, int argc, char** argv, const std::vector<std::string>& corpus,
        std::string_view likely, Check check) {
  name = program;
  const std::uint64_t inputs = option(argc, argv, "--inputs", 100000);
  const std::chrono::seconds limit(option(argc, argv, "--seconds", 60));
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::steady_clock::now() - start; };
  Mutator mutator(option(argc, argv, "--seed", 1), corpus, likely);

  for (const std::string& text : corpus) check(text, nullptr);
  for (std::uint64_t done = 0; done < inputs; ++done) {
    if (elapsed() > limit) {
      std::fprintf(stderr, "%s: only %llu of %llu inputs within %lld s\n", name,
                   static_cast<unsigned long long>(done), static_cast<unsigned long long>(inputs),
                   static_cast<long long>(limit.count()));
      return 2;
    }
    const std::string text = mutator.next();
    check(text, &mutator);
  }
  std::printf("%s: %llu inputs in %.1f s, no finding\n", name, static_cast<unsigned long long>(inputs),
              std::chrono::duration<double>(elapsed()).count());
  return 0;
}

}  // namespace fuzzing
