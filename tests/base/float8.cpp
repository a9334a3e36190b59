#include <gradus/base/float8.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

// OCP 8-bit Floating Point Specification 1.0, table 1 and section 5: the value of an encoding, from its definition.
double defined(unsigned bits, int mantissa_bits, int bias, bool has_infinity) {
  const unsigned mantissa = bits & ((1u << mantissa_bits) - 1), exponent = (bits & 0x7Fu) >> mantissa_bits;
  const double sign = (bits & 0x80u) != 0 ? -1 : 1;
  const unsigned top = (0x7Fu >> mantissa_bits);
  if (has_infinity && exponent == top) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (!has_infinity && (bits & 0x7Fu) == 0x7Fu) return std::nan("");
  const double part = mantissa / std::pow(2.0, mantissa_bits);
  return exponent == 0 ? sign * part * std::pow(2.0, 1 - bias)
                       : sign * (1 + part) * std::pow(2.0, static_cast<int>(exponent) - bias);
}

template <class T>
void check_type(int mantissa_bits, int bias, bool has_infinity) {
  std::vector<double> values;  // finite, from 0 upwards
  for (unsigned b = 0; b < 256; ++b) {
    const double wanted = defined(b, mantissa_bits, bias, has_infinity);
    const float got = T::from_bits(static_cast<std::uint8_t>(b));
    CAPTURE(b);
    CHECK(std::isnan(wanted) == std::isnan(got));
    if (std::isnan(wanted)) {
      CHECK(std::isnan(static_cast<float>(T(got))));
      continue;
    }
    CHECK(static_cast<double>(got) == wanted);
    CHECK(std::signbit(got) == (b >= 128));
    CHECK(T(got).bits == b);  // there and back
    if (b < 128 && std::isfinite(wanted)) values.push_back(wanted);
  }
  CHECK(values.back() == T::largest);
  CHECK(values[1] == T::smallest);
  CHECK(static_cast<float>(T::from_bits(static_cast<std::uint8_t>(1u << mantissa_bits))) == T::smallest_normal);

  // Every midpoint of neighbours, and what is just beside it; beyond the largest, as if there were one more place.
  values.push_back(2 * values.back() - values[values.size() - 2]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto middle = static_cast<float>((values[i - 1] + values[i]) / 2);
    const auto low = static_cast<std::uint8_t>(i - 1), high = static_cast<std::uint8_t>(i);
    CAPTURE(i);
    for (const unsigned sign : {0u, 0x80u}) {
      const float s = sign != 0 ? -1.0f : 1.0f;
      CHECK(T(s * std::nextafter(middle, 0.0f)).bits == (low | sign));
      CHECK(T(s * std::nextafter(middle, HUGE_VALF)).bits == (high | sign));
      CHECK(T(s * middle).bits == ((low % 2 == 0 ? low : high) | sign));
    }
  }
  const float far[] = {1e30f, std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()};
  for (const float x : far) {
    const float got = T(x);
    CHECK(has_infinity == (std::isinf(got) && got > 0));
    CHECK(!has_infinity == std::isnan(got));
  }
}

}  // namespace

TEST_CASE("the 8-bit floats have the values of the OCP specification, and floats round to the nearest") {
  check_type<gradus::e4m3>(3, 7, false);
  check_type<gradus::e5m2>(2, 15, true);
  static_assert(static_cast<float>(gradus::e4m3(1.0f)) == 1.0f && gradus::e4m3(448.0f).bits == 0x7E);
  static_assert(static_cast<float>(gradus::e5m2(-1.5f)) == -1.5f && gradus::e5m2(57344.0f).bits == 0x7B);
}
