// These functions parse numbers in text as std::from_chars does, with the same result to the last bit, but faster for
// short numbers, which are most of those in files: one of at most seven characters is found and computed in a register
// of eight, without a loop.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "../store/decimal.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

constexpr bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Eight characters of text in a register, the first one in its lowest byte.
struct eight_chars {
  static constexpr bool here = std::endian::native == std::endian::little;
  std::uint64_t digits;  // a digit's byte is its number
  std::uint64_t others;  // 0x80 in the bytes of characters that are no digits

  explicit eight_chars(const char* p) {
    std::memcpy(&digits, p, sizeof digits);
    digits ^= 0x3030303030303030U;
    others = (((digits & 0x7f7f7f7f7f7f7f7fU) + 0x7676767676767676U) | digits) & 0x8080808080808080U;
  }
  // Returns the place of the first blank among sixteen characters, or 16.
  static int blank_in_16(const char* p) {
    std::uint64_t a, b;
    std::memcpy(&a, p, sizeof a), std::memcpy(&b, p + 8, sizeof b);
    const auto blanks = [](std::uint64_t text) {
      text ^= 0x2020202020202020U;
      return (text - 0x0101010101010101U) & ~text & 0x8080808080808080U;  // the lowest mark is right
    };
    a = blanks(a), b = blanks(b);
    return a != 0 ? place(a) : 8 + place(b);
  }
  static int place(std::uint64_t mark) { return std::countr_zero(mark) / 8; }  // of the first mark
  // Returns the number that the first n bytes of `d` make, each of them a digit; n is 1 to 8.
  static std::uint64_t number(std::uint64_t d, int n) {
    d <<= 64 - 8 * n;  // zeros in front
    d = d * 10 + (d >> 8);
    return ((d & 0x000000ff000000ffU) * 0x000f424000000064U + (d >> 16 & 0x000000ff000000ffU) * 0x0000271000000001U) >>
           32;
  }
};

// Parses the integer at `p`. Returns the place behind it, or nullptr if there is no integer, or one that does not fit.
template <class Integer>
  requires std::is_integral_v<Integer>
[[gnu::noinline]] const char* long_number_at(const char* p, const char* end, Integer& out) {
  // This many digits always fit.
  constexpr int certain = std::numeric_limits<Integer>::digits10;
  const char* at = p;
  const bool minus = at != end && *at == '-';
  at += minus;
  const char* const first = at;
  const char* const stop = end - at > certain ? at + certain : end;
  Integer n = 0;
  for (; at != stop && is_digit(*at); ++at) n = static_cast<Integer>(n * 10 + (*at - '0'));
  if (at == first) return nullptr;
  if (at == stop && at != end && is_digit(*at)) {
    const auto [past, failed] = std::from_chars(p, end, out);
    return failed == std::errc{} ? past : nullptr;
  }
  out = static_cast<Integer>(minus ? -n : n);
  return at;
}
template <class Integer>
  requires std::is_integral_v<Integer>
[[gnu::always_inline]] inline const char* number_at(const char* p, const char* end, Integer& out) {
  if constexpr (eight_chars::here && std::numeric_limits<Integer>::digits10 >= 7)
    if (end - p >= 8) {
      const eight_chars text(p);
      const int n = eight_chars::place(text.others);
      if (n != 0 && n != 8) {
        out = static_cast<Integer>(eight_chars::number(text.digits, n));
        return p + n;
      }
    }
  return long_number_at(p, end, out);
}

// Parses the floating-point number at `p`, with the same results. If the digits make an integer below 2^53 and the
// power of ten is at most 22, both are exact in double, so one multiplication or division rounds only once (Clinger,
// How to read floating point numbers accurately, 1990). A float made of this double is the nearest one too, unless the
// double lies half-way between two floats.
template <class Float>
  requires std::is_floating_point_v<Float>
[[gnu::noinline]] const char* long_number_at(const char* p, const char* end, Float& out) {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const auto slow = [&]() -> const char* {
    const auto [past, failed] = decimal_at(p, end, out);
    return failed == std::errc{} ? past : nullptr;
  };
  const char* at = p;
  const bool minus = at != end && *at == '-';
  at += minus;
  const char* const first = at;
  std::uint64_t digits = 0;  // wraps if there are too many digits, which `count` shows
  for (; at != end && is_digit(*at); ++at) digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
  std::int64_t count = at - first, power = 0;
  if (at != end && *at == '.') {
    const char* const point = ++at;
    for (; at != end && is_digit(*at); ++at) digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    power = point - at, count += at - point;
  }
  if (count == 0 || count > 19) return slow();
  if (at != end && (*at == 'e' || *at == 'E')) {
    int exponent = 0;
    const char* from = at + 1;
    if (from != end && *from == '+' && end - from > 1 && is_digit(from[1])) ++from;
    const auto [past, failed] = std::from_chars(from, end, exponent);
    if (failed != std::errc{}) return slow();
    power += exponent, at = past;
  }
  if (digits >= std::uint64_t{1} << 53 || power < -22 || power > 22) return slow();
  const auto whole = static_cast<double>(digits);
  const double value = power < 0 ? whole / powers[-power] : whole * powers[power];
  if constexpr (std::is_same_v<Float, float>)
    if ((std::bit_cast<std::uint64_t>(value) & 0x1fffffff) == 0x10000000) return slow();
  out = static_cast<Float>(minus ? -value : value);
  return at;
}
// Where there are at most seven characters, digits and power are exact in float as well.
template <class Float>
  requires std::is_floating_point_v<Float>
[[gnu::always_inline]] inline const char* number_at(const char* p, const char* end, Float& out) {
  static constexpr Float powers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F};
  if (eight_chars::here && end - p > 8) {
    const bool minus = *p == '-';
    const char* const at = minus ? p + 1 : p;
    const eight_chars text(at);
    const int before = eight_chars::place(text.others);
    const bool point = before < 8 && at[before] == '.';
    // Without the point, digits behind it are one place lower.
    const std::uint64_t low = (std::uint64_t{1} << 8 * (before & 7)) - 1;
    const std::uint64_t digits = point ? (text.digits & low) | (text.digits >> 8 & ~low) : text.digits;
    const int past = point ? eight_chars::place(text.others & (text.others - 1)) : before;
    const int count = past - point;
    if (past < 8 && count > 0 && (at[past] | 0x20) != 'e') {
      const Float value = static_cast<Float>(static_cast<std::int64_t>(eight_chars::number(digits, count))) /
                          powers[point ? past - before - 1 : 0];
      out = minus ? -value : value;
      return at + past;
    }
  }
  return long_number_at(p, end, out);
}

// Returns whether `field` is a number and nothing else, except for blanks around it. As in TensorFlow, a float may
// begin with +, and a float beyond its range becomes 0 or infinite.
template <class Number>
bool is_number(std::string_view field, Number& out) {
  constexpr std::string_view blanks = " \t\v\f";
  const auto from = field.find_first_not_of(blanks);
  if (from == field.npos) return false;
  field = field.substr(from, field.find_last_not_of(blanks) - from + 1);
  if constexpr (std::is_floating_point_v<Number>)
    if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* const end = field.data() + field.size();
  if (number_at(field.data(), end, out) == end) return true;
  if constexpr (std::is_floating_point_v<Number>) {
    long double wide = 0;
    const auto [past, failed] = decimal_at(field.data(), end, wide);
    if (failed == std::errc{} && past == end) {
      constexpr long double most = std::numeric_limits<Number>::max();
      constexpr auto infinite = std::numeric_limits<Number>::infinity();
      out = wide > most ? infinite : wide < -most ? -infinite : static_cast<Number>(wide);
      return true;
    }
  }
  return false;
}

}  // namespace gradus::detail
