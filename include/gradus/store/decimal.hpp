// This header parses floating-point numbers in text, the same in every locale: by std::from_chars, or by a substitute
// in a standard library that has it for integers alone (libc++ 16).
#pragma once
#include "../base/build.hpp"

#include <charconv>
#if !defined(__cpp_lib_to_chars) || defined(GRADUS_STRTOD)
#include <locale.h>
#include <stdlib.h>

#include <limits>
#include <string>
#include <type_traits>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#define GRADUS_DECIMAL_BY_STRTOD
#endif

namespace gradus::inline GRADUS_BUILD::detail {

// Parses the number at `p` as std::from_chars does: no blanks and no + before it, no hexadecimal digits; `out` is
// changed only if there is a number that fits.
template <class Float>
std::from_chars_result decimal_at(const char* p, const char* end, Float& out) {
#if !defined(GRADUS_DECIMAL_BY_STRTOD)
  return std::from_chars(p, end, out);
#else
  // strtod accepts more than that and needs a zero byte after it, so it gets a copy of the characters that
  // std::from_chars would read.
  const auto digits = [&](const char*& at, bool& nonzero) {
    const char* const first = at;
    for (; at != end && *at >= '0' && *at <= '9'; ++at) nonzero = nonzero || *at != '0';
    return at - first;
  };
  const auto word = [&](const char*& at, const char* letters) {
    const char* to = at;
    for (; *letters != '\0'; ++to, ++letters)
      if (to == end || (*to | 0x20) != *letters) return false;
    at = to;
    return true;
  };
  const char* at = p;
  if (at != end && *at == '-') ++at;
  bool finite = false, nonzero = false, ignored = false;
  if (word(at, "inf")) {
    word(at, "inity");
  } else if (word(at, "nan")) {
  } else {
    finite = true;
    auto count = digits(at, nonzero);
    if (at != end && *at == '.') {
      const char* const point = at++;
      const auto behind = digits(at, nonzero);
      if (count + behind == 0) at = point;
      count += behind;
    }
    if (count == 0) return {p, std::errc::invalid_argument};
    if (at != end && (*at == 'e' || *at == 'E')) {
      const char* exponent = at + 1;
      if (exponent != end && (*exponent == '+' || *exponent == '-')) ++exponent;
      if (digits(exponent, ignored) != 0) at = exponent;
    }
  }
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", locale_t());
  const std::string copy(p, at);
  Float value;
  if constexpr (std::is_same_v<Float, float>)
    value = strtof_l(copy.c_str(), nullptr, plain);
  else if constexpr (std::is_same_v<Float, double>)
    value = strtod_l(copy.c_str(), nullptr, plain);
  else
    value = strtold_l(copy.c_str(), nullptr, plain);
  constexpr Float most = std::numeric_limits<Float>::max();
  if (finite && (value > most || value < -most || (nonzero && value == 0))) return {at, std::errc::result_out_of_range};
  out = value;
  return {at, std::errc{}};
#endif
}

}  // namespace gradus::detail
