// A mean of floats, with the bits of a sum in double that is divided in double and rounded to float, by integers: a
// program without double arithmetic (update/float_constants.hpp) then contains no routine for doubles. IEEE 754-2019,
// binary64, rounded to nearest, ties to even.
#pragma once
#include "build.hpp"

#include <bit>
#include <cstdint>

namespace gradus::inline GRADUS_BUILD::detail {

class mean_in_words {
public:
  void start(float x) { sum_ = widened(x); }
  void add(float x) { sum_ = sum_of(sum_, widened(x)); }
  // Returns the sum divided by n, which is 1 or more.
  float over(std::uint32_t n) const { return narrowed(quotient(sum_, n)); }

private:
  // A double as its sign, its exponent field, and its digits with the leading one: 53 bits, or 0 for a zero. Sums of
  // floats are never subnormal as doubles.
  struct number {
    bool is_negative = false;
    int exponent = 0;
    std::uint64_t digits = 0;
  };
  static constexpr int beyond = 0x7ff;  // the exponent of infinities, whose digits are `one`, and of NaN
  static constexpr std::uint64_t one = std::uint64_t{1} << 52;
  number sum_;

  static constexpr number nan() { return {false, beyond, one | one >> 1}; }
  static constexpr number widened(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const int exponent = static_cast<int>(bits >> 23 & 0xff);
    std::uint32_t digits = bits & 0x7fffffu;
    number n{bits >> 31 != 0, 0, 0};
    if (exponent == 0 && digits == 0) return n;
    n.exponent = exponent == 0xff ? beyond : exponent + 896;
    if (exponent == 0) {
      const int shift = std::countl_zero(digits) - 8;
      digits <<= shift, n.exponent = 897 - shift;
    }
    n.digits = static_cast<std::uint64_t>(digits | 0x800000u) << 29;
    return n;
  }
  // Rounds digits that have three bits more, the last one for all that are further below.
  static constexpr number rounded(bool is_negative, int exponent, std::uint64_t digits) {
    const std::uint64_t below = digits & 7;
    digits = (digits >> 3) + (below > 4 || (below == 4 && (digits >> 3 & 1) != 0) ? 1 : 0);
    if (digits >> 53 != 0) digits >>= 1, ++exponent;
    return {is_negative, exponent, digits};
  }
  static constexpr number sum_of(number a, number b) {
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.digits < b.digits)) {
      const number smaller = a;
      a = b, b = smaller;
    }
    if (a.exponent == beyond) {
      if (a.digits != one) return a;
      return b.exponent == beyond && a.is_negative != b.is_negative ? nan() : a;
    }
    if (b.digits == 0) return a.digits != 0 ? a : number{a.is_negative && b.is_negative, 0, 0};
    const int apart = a.exponent - b.exponent;
    const std::uint64_t from = b.digits << 3;
    std::uint64_t added = apart > 60 ? 1 : from >> apart;
    if (apart > 0 && apart <= 60 && (from & ((std::uint64_t{1} << apart) - 1)) != 0) added |= 1;
    std::uint64_t digits = a.digits << 3;
    if (a.is_negative == b.is_negative) {
      digits += added;
      if (digits >> 56 != 0) digits = digits >> 1 | (digits & 1), ++a.exponent;
    } else {
      digits -= added;
      if (digits == 0) return {};
      const int shift = std::countl_zero(digits) - 8;
      digits <<= shift, a.exponent -= shift;
    }
    return rounded(a.is_negative, a.exponent, digits);
  }
  static constexpr number quotient(const number& x, std::uint32_t n) {
    if (x.exponent == beyond || x.digits == 0) return x;
    std::uint64_t digits = 0, rest = 0;
    int at = 53;
    while (digits >> 54 == 0) {  // 55 digits, the last two below the quotient's own
      --at;
      rest = rest << 1 | (at >= 0 ? x.digits >> at & 1 : 0);
      digits <<= 1;
      if (rest >= n) rest -= n, digits |= 1;
    }
    if (at > 0 && (x.digits & ((std::uint64_t{1} << at) - 1)) != 0) rest |= 1;
    return rounded(x.is_negative, x.exponent + at + 2, digits << 1 | (rest != 0 ? 1 : 0));
  }
  static constexpr float narrowed(const number& x) {
    std::uint32_t bits = x.is_negative ? 0x80000000u : 0;
    if (x.exponent == beyond) return std::bit_cast<float>(bits | (x.digits == one ? 0x7f800000u : 0x7fc00000u));
    const int exponent = x.exponent - 896, drop = exponent > 0 ? 29 : 30 - exponent;
    if (x.digits == 0 || drop > 54) return std::bit_cast<float>(bits);
    if (exponent >= 0xff) return std::bit_cast<float>(bits | 0x7f800000u);
    const std::uint64_t kept = x.digits >> drop, below = x.digits & ((std::uint64_t{1} << drop) - 1),
                        half = std::uint64_t{1} << (drop - 1);
    bits += exponent > 0 ? static_cast<std::uint32_t>(exponent - 1) << 23 : 0;
    bits += static_cast<std::uint32_t>(kept) + (below > half || (below == half && (kept & 1) != 0) ? 1 : 0);
    return std::bit_cast<float>(bits);
  }
};

}  // namespace gradus::detail
