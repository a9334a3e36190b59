// These functions parse numbers in text as std::from_chars does, with the same result to the last bit, but faster for
// short numbers, which are most of those in files.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "../store/decimal.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

constexpr bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Parses the integer at `p`. Returns the place behind it, or nullptr if there is no integer, or one that does not fit.
template <class Integer>
  requires std::is_integral_v<Integer>
const char* number_at(const char* p, const char* end, Integer& out) {
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

// Parses the floating-point number at `p`, with the same results. If the digits make an integer below 2^53 and the
// power of ten is at most 22, both are exact in double, so one multiplication or division rounds only once (Clinger,
// How to read floating point numbers accurately, 1990). A float made of this double is the nearest one too, unless the
// double lies half-way between two floats.
template <class Float>
  requires std::is_floating_point_v<Float>
const char* number_at(const char* p, const char* end, Float& out) {
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
