// Decimal numbers against the C library's strtod, which rounds correctly: random texts of all kinds,
// midpoints of doubles and their neighbours. Prints how many were compared; the first difference ends it.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "text/number.hpp"

namespace {

std::mt19937_64 random_bits(1);

std::uint64_t below(std::uint64_t n) { return random_bits() % n; }

std::string digits(std::uint64_t count) {
  std::string text;
  while (text.size() < count) text += static_cast<char>('0' + below(10));
  return text;
}

double random_double() {
  double value;
  do value = std::bit_cast<double>(random_bits() >> 1);
  while (!std::isfinite(value));
  return value;
}

std::string printed(const char* format, double value) {
  char buffer[1200];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// Exactly between two neighbouring doubles, in all its digits; now and then a little more or less.
std::string midpoint() {
  double value = random_double();
  if (below(4) == 0) value = std::bit_cast<double>(below(std::uint64_t{1} << (1 + below(52))));  // subnormal
  const double next = std::nextafter(value, HUGE_VAL);
  if (!std::isfinite(next)) return "0";
  if (value == 0) return "2.4703282292062327208e-324";
  // Long double holds the midpoint of normal numbers where it has 64 bits; else digits of a neighbour will
  // do.
  char buffer[1400];
  std::snprintf(buffer, sizeof buffer, "%.1100Le", (static_cast<long double>(value) + next) / 2);
  std::string text = buffer;
  const std::size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  while (mantissa.back() == '0') mantissa.pop_back();
  const std::uint64_t kind = below(4);
  if (kind == 1) mantissa += std::string(below(900), '0') + "1";
  if (kind == 2 && mantissa.back() > '1') --mantissa.back();
  if (kind == 3) mantissa += std::string(below(40), '0');
  return mantissa + text.substr(e);
}

std::string text() {
  switch (below(9)) {
    case 0:
      return printed("%.17g", random_double());
    case 1:
      return printed("%.16g", random_double());
    case 2:
      return midpoint();
    case 3:
      return digits(1 + below(25)) + "e" + std::to_string(static_cast<int>(below(720)) - 370);
    case 4:
      return digits(below(20)) + "." + digits(1 + below(20)) + "E" + (below(2) ? "+" : "-") +
             digits(1 + below(3));
    case 5:
      return digits(1 + below(18)) + "." + digits(below(18));
    case 6:
      return "0." + std::string(below(340), '0') + digits(1 + below(40));
    case 7:
      return std::to_string((std::uint64_t{1} << 53) + below(1 << 12)) + (below(2) ? "" : "e0");
    default:
      return digits(1 + below(900)) + "e-" + std::to_string(below(1200));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const long total = count > 1 ? std::atol(arguments[1]) : 100000;
  for (long i = 0; i < total; ++i) {
    const std::string number = text(), line = number + "\n";
    const char* p = line.data();
    double value = -1;
    const auto error =
        skn::text::read_number(p, line.data() + line.size(), value, [](char c) { return c == '\n'; });
    const double expected = std::strtod(number.c_str(), nullptr);
    const bool right = std::isinf(expected) ? error == skn::text::NumberError::range
                                            : error == skn::text::NumberError::none &&
                                                  std::memcmp(&value, &expected, sizeof value) == 0;
    if (!right) {
      std::printf("%s: %a, strtod %a\n", number.c_str(), value, expected);
      return 1;
    }
  }
  std::printf("%ld numbers as strtod\n", total);
}
