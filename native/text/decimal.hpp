// The double that is nearest to a decimal number, ties to even, on every platform: not all standard libraries
// have std::from_chars for floating point.
//
// A decimal w·10^q with w below 2^64 is multiplied by 128 bits of 5^q, which gives an interval that contains
// it. Almost always both ends round to the same double. Where they do not, big integers compare the decimal
// with the midpoint of two neighbouring doubles.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace skn::text {

// 5^q is in [T, T + 1)·2^exponent, where T = high·2^64 + low has its highest bit set.
struct PowerOfFive {
  std::uint64_t high = 0, low = 0;
  std::int16_t exponent = 0;
};

// Less, and w·10^q is below half the least double; more, and it is above the largest.
inline constexpr int kLeastPower = -342, kLargestPower = 308;
inline constexpr int kLargestExactPower = 55;  // the largest of which 128 bits are all

class PowersOfFive {
 public:
  constexpr PowersOfFive() {
    Words words{};
    words[0] = 1;
    for (int q = 0; q <= kLargestPower; ++q) {
      table_[q - kLeastPower] = leading(words, 0);
      std::uint64_t carry = 0;
      for (std::uint32_t& word : words) {
        carry += std::uint64_t{word} * 5;
        word = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    words = Words{};
    words[kWords - 1] = 1;  // 2^(32·(kWords − 1)); its quotient by 5^342 still has more than 128 bits
    for (int q = -1; q >= kLeastPower; --q) {
      std::uint64_t rest = 0;  // floor(floor(a / 5) / 5) = floor(a / 25)
      for (int i = kWords - 1; i >= 0; --i) {
        rest = rest << 32 | words[i];
        words[i] = static_cast<std::uint32_t>(rest / 5);
        rest %= 5;
      }
      table_[q - kLeastPower] = leading(words, -32 * (kWords - 1));
    }
  }
  constexpr const PowerOfFive& operator[](int q) const { return table_[q - kLeastPower]; }

 private:
  static constexpr int kWords = 30;
  using Words = std::array<std::uint32_t, kWords>;

  // The leading 128 bits of words·2^exponent.
  static constexpr PowerOfFive leading(const Words& words, int exponent) {
    int top = kWords - 1;
    while (words[top] == 0) --top;
    const int shift = std::countl_zero(words[top]);
    std::uint32_t part[4] = {};
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t upper = top - i >= 0 ? words[top - i] : 0;
      const std::uint32_t lower = top - i >= 1 ? words[top - i - 1] : 0;
      part[i] = static_cast<std::uint32_t>((std::uint64_t{upper} << 32 | lower) >> (32 - shift));
    }
    return {std::uint64_t{part[0]} << 32 | part[1], std::uint64_t{part[2]} << 32 | part[3],
            static_cast<std::int16_t>(exponent + 32 * (top + 1) - shift - 128)};
  }

  PowerOfFive table_[kLargestPower - kLeastPower + 1];
};

inline constexpr PowersOfFive powers_of_five;

struct Wide {  // high·2^64 + low
  std::uint64_t high, low;
};

inline Wide multiply(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#else
  const std::uint64_t a1 = a >> 32, a0 = a & 0xFFFFFFFF, b1 = b >> 32, b0 = b & 0xFFFFFFFF;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xFFFFFFFF);
  return {a1 * b1 + (middle >> 32) + (other >> 32), a * b};
#endif
}

// A double that is not negative as an integer multiple of 2^ulp; infinity is the multiple after the largest.
struct Rounded {
  std::uint64_t multiple = 0;
  int ulp = -1074;

  double value() const {
    return std::bit_cast<double>(multiple + (static_cast<std::uint64_t>(ulp + 1074) << 52));
  }
};

// x·2^exponent cut off to a double, or rounded to nearest. The highest or second highest bit of x is set.
template <bool nearest>
Rounded round(Wide x, int exponent) {
  const int leading =
      exponent + 127 - std::countl_zero(x.high);             // x·2^exponent is in [2^leading, 2·2^leading)
  if (leading > 1023) return {std::uint64_t{1} << 53, 971};  // infinity
  Rounded result;
  result.ulp = std::max(leading - 52, -1074);
  const int drop = result.ulp - exponent;  // at least 74
  if (drop > 128) return result;           // below a half of the least double
  const Wide dropped = drop == 128 ? x : Wide{x.high & ((std::uint64_t{1} << (drop - 64)) - 1), x.low};
  if (drop < 128) result.multiple = x.high >> (drop - 64);
  if constexpr (nearest) {
    const std::uint64_t half = std::uint64_t{1} << (drop - 65);
    const bool above = dropped.high > half || (dropped.high == half && dropped.low > 0);
    const bool tie = dropped.high == half && dropped.low == 0;
    result.multiple += above || (tie && result.multiple % 2 == 1);
  }
  return result;
}

// A natural number of at most kWords·32 bits: see `compare` for why they suffice.
class BigInteger {
 public:
  explicit BigInteger(std::uint64_t value) {
    words_[0] = static_cast<std::uint32_t>(value);
    words_[1] = static_cast<std::uint32_t>(value >> 32);
    size_ = 2;
  }
  void multiply_add(std::uint32_t factor, std::uint32_t term) {
    std::uint64_t carry = term;
    for (std::size_t i = 0; i < size_; ++i) {
      carry += std::uint64_t{words_[i]} * factor;
      words_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0 && size_ < kWords) words_[size_++] = static_cast<std::uint32_t>(carry);
  }
  void multiply_by_power_of_five(int power) {
    constexpr std::uint32_t kFive13 = 1220703125;  // 5^13, the largest in 32 bits
    for (; power >= 13; power -= 13) multiply_add(kFive13, 0);
    for (; power > 0; --power) multiply_add(5, 0);
  }
  void shift_left(int bits) {
    for (; bits >= 31; bits -= 31) multiply_add(std::uint32_t{1} << 31, 0);
    multiply_add(std::uint32_t{1} << bits, 0);
  }
  friend int compare(const BigInteger& a, const BigInteger& b) {
    for (std::size_t i = kWords; i-- > 0;)
      if (a.words_[i] != b.words_[i]) return a.words_[i] < b.words_[i] ? -1 : 1;
    return 0;
  }

 private:
  static constexpr std::size_t kWords = 100;
  std::uint32_t words_[kWords] = {};
  std::size_t size_;
};

// The digits of a decimal, its first digit not 0: 0.d₁d₂… · 10^scale.
struct Digits {
  const char *first, *last;  // from the first digit that is not 0; a point may be among them
  std::int64_t scale;
  std::uint64_t leading = 0;  // as many of them as fit 19 digits
  int count = 0;              // digits in `leading`
  bool more = false;          // whether digits that are not 0 follow

  // Of text that is digits[.digits], then perhaps an exponent; first == last where all digits are 0.
  Digits(const char* text, const char* end, std::int64_t exponent) : scale(exponent) {
    const auto digit = [](char c) { return static_cast<unsigned char>(c - '0') < 10; };
    bool fraction = false;
    for (; text < end && (*text == '0' || *text == '.'); ++text) {
      if (fraction) --scale;
      fraction |= *text == '.';
    }
    first = last = text;
    for (; last < end && (digit(*last) || *last == '.'); ++last) {
      if (*last == '.') {
        fraction = true;
        continue;
      }
      if (!fraction) ++scale;
      if (count < 19) {
        leading = leading * 10 + static_cast<std::uint64_t>(*last - '0');
        ++count;
      } else {
        more |= *last != '0';
      }
    }
  }
};

// The sign of decimal − (multiple + ½)·2^ulp. The decimal is in [10^-331, 10^310], where a midpoint of
// doubles has at most 767 digits, so that of digits beyond 800 only matters whether one is not 0. All numbers
// here have less than 10^801 < 2^2661 or 2^55·5^(331 + 801) < 2^2684 as their larger factor, and are compared
// at the same scale: 3,200 bits are enough.
inline int compare_with_midpoint(const Digits& digits, const Rounded& below) {
  BigInteger decimal(0), midpoint(2 * below.multiple + 1);
  int count = 0;
  bool rest = false;
  for (const char* p = digits.first; p < digits.last; ++p) {
    if (*p == '.') continue;
    if (count == 800) {
      rest |= *p != '0';
    } else {
      decimal.multiply_add(10, static_cast<std::uint32_t>(*p - '0'));
      ++count;
    }
  }
  if (rest) {
    decimal.multiply_add(10, 1);
    ++count;
  }
  const int power = static_cast<int>(digits.scale) - count;  // decimal·10^power against midpoint·2^(ulp − 1)
  decimal.multiply_by_power_of_five(std::max(power, 0));
  midpoint.multiply_by_power_of_five(std::max(-power, 0));
  const int twos = below.ulp - 1 - power;
  decimal.shift_left(std::max(-twos, 0));
  midpoint.shift_left(std::max(twos, 0));
  return compare(decimal, midpoint);
}

// w·10^q, or with `more` a number between it and (w + 1)·10^q, which then has 19 digits; w is not 0 and q
// within the table. False where 128 bits do not decide; then `cut` is the largest double that is certainly
// not above it.
[[gnu::always_inline]] inline bool round_product(std::uint64_t w, int q, bool more, double& value,
                                                 Rounded& cut) {
  const int shift = std::countl_zero(w);
  w <<= shift;
  const PowerOfFive& power = powers_of_five[q];
  const int exponent = 64 + power.exponent + q - shift;
  const Wide upper = multiply(w, power.high), lower = multiply(w, power.low);
  Wide from{upper.high, upper.low + lower.high};  // floor(w·T / 2^64)
  from.high += from.low < lower.high;
  if (!more && q >= 0 && q <= kLargestExactPower) {
    from.low |= lower.low != 0;  // far below the last bit kept, where only "not 0" matters
    value = round<true>(from, exponent).value();
    return true;
  }
  // One unit for each of: what was cut off the product, what was cut off the power of five, and the product
  // of what was cut off and what follows w; 2^shift of the higher word for what follows w.
  Wide to{from.high, from.low + 3};
  to.high += to.low < 3;
  if (more) to.high += std::uint64_t{1} << shift;
  value = round<true>(from, exponent).value();
  if (to.high >= from.high && round<true>(to, exponent).value() == value) return true;
  cut = round<false>(from, exponent);
  return false;
}

// The decimal [text, end), digits[.digits] and perhaps an exponent, whose value is given: infinity if it is
// too large.
inline double nearest_double(const char* text, const char* end, std::int64_t exponent) {
  const Digits digits(text, end, exponent);
  constexpr double kInfinity = std::bit_cast<double>(std::uint64_t{0x7FF} << 52);
  if (digits.first == digits.last || digits.scale < -330) return 0.0;
  if (digits.scale > 310) return kInfinity;
  const int q = static_cast<int>(digits.scale) - digits.count;
  if (q < kLeastPower) return 0.0;
  if (q > kLargestPower) return kInfinity;
  double value;
  Rounded cut;
  if (round_product(digits.leading, q, digits.more, value, cut)) return value;
  const int sign = compare_with_midpoint(digits, cut);
  cut.multiple += sign > 0 || (sign == 0 && cut.multiple % 2 == 1);
  return cut.value();
}

}  // namespace skn::text
