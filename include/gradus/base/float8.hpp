// This header has the 8-bit floating-point numbers of the Open Compute Project (OCP FP8). Files hold them, and nothing
// computes with them; they are converted from and to float.
//
//   e4m3      4 bits of exponent, 3 of mantissa; no infinity, one NaN of each sign. dtype float8_e4m3
//   e5m2      5 and 2 bits, by the rules of IEEE 754.                               dtype float8_e5m2
//
// The conversion from float rounds to nearest, ties to even. It keeps subnormal results, and a NaN stays a NaN. A
// number that is too large becomes infinite (e5m2) or NaN (e4m3, as in PyTorch and ml_dtypes). The conversion to float
// is exact.
#pragma once
#include "build.hpp"

#include <bit>
#include <cstdint>

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Returns the value of 8 bits, of which `Mantissa` are the mantissa. The number must be finite.
template <int Mantissa, int Bias>
constexpr float float8_value(std::uint8_t bits) {
  constexpr std::uint32_t low = (1u << Mantissa) - 1;
  const std::uint32_t exponent = (bits & 0x7Fu) >> Mantissa, mantissa = bits & low;
  const float scale = std::bit_cast<float>(((exponent == 0 ? 1u : exponent) + (127u - Bias - Mantissa)) << 23);
  const float size = static_cast<float>(exponent == 0 ? mantissa : mantissa + low + 1) * scale;
  return (bits & 0x80u) != 0 ? -size : size;
}

// Returns the bits of a float. A number that rounds to more than the largest finite one gives the bits `beyond`.
template <int Mantissa, int Bias>
constexpr std::uint8_t float8_bits(float x, std::uint32_t beyond, std::uint32_t nan) {
  const std::uint32_t w = std::bit_cast<std::uint32_t>(x), a = w & 0x7FFFFFFFu, sign = w >> 24 & 0x80u;
  constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - Bias) << 23, drop = 23 - Mantissa;
  if (a > 0x7F800000u) return static_cast<std::uint8_t>(sign | nan);
  std::uint32_t bits = 0;
  if (a < smallest_normal) {  // rounds to a multiple of the smallest number, which is the last place of `unit`
    const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(128 - Bias - Mantissa + 23) << 23);
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + unit) - std::bit_cast<std::uint32_t>(unit);
  } else {
    const std::uint32_t rebiased = a - (static_cast<std::uint32_t>(127 - Bias) << 23);
    bits = (rebiased + ((1u << (drop - 1)) - 1) + (rebiased >> drop & 1u)) >> drop;
  }
  return static_cast<std::uint8_t>(sign | (bits < beyond ? bits : beyond));
}

}  // namespace detail

struct e4m3 {
  std::uint8_t bits = 0;

  static constexpr float largest = 448, smallest_normal = 0x1p-6f, smallest = 0x1p-9f, epsilon = 0x1p-3f;
  constexpr e4m3() = default;
  constexpr explicit e4m3(float x) : bits(detail::float8_bits<3, 7>(x, 0x7F, 0x7F)) {}
  static constexpr e4m3 from_bits(std::uint8_t b) {
    e4m3 f;
    f.bits = b;
    return f;
  }
  constexpr operator float() const {
    if ((bits & 0x7Fu) == 0x7Fu) return std::bit_cast<float>(0x7FC00000u | (bits & 0x80u) << 24);
    return detail::float8_value<3, 7>(bits);
  }
};

struct e5m2 {
  std::uint8_t bits = 0;

  static constexpr float largest = 57344, smallest_normal = 0x1p-14f, smallest = 0x1p-16f, epsilon = 0x1p-2f;
  constexpr e5m2() = default;
  constexpr explicit e5m2(float x) : bits(detail::float8_bits<2, 15>(x, 0x7C, 0x7E)) {}
  static constexpr e5m2 from_bits(std::uint8_t b) {
    e5m2 f;
    f.bits = b;
    return f;
  }
  constexpr operator float() const {
    const std::uint32_t a = bits & 0x7Fu, sign = (bits & 0x80u) << 24;
    if (a >= 0x7Cu) return std::bit_cast<float>(sign | (a == 0x7Cu ? 0x7F800000u : 0x7FC00000u));
    return detail::float8_value<2, 15>(bits);
  }
};
static_assert(sizeof(e4m3) == 1 && sizeof(e5m2) == 1);

}  // namespace gradus
