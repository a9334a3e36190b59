// These 16-bit floating-point numbers are for storage, not for arithmetic. They are converted from and to float;
// computation is in float32.
//
//   half      IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.  dtype float16
//   bfloat    the upper half of a float32: 8 and 7 bits.               dtype bfloat16
//
// (The names are LLVM's and Metal's; gradus::float16 and gradus::bfloat16 are dtypes.) The conversion from float rounds
// to nearest, ties to even. A number that is too large becomes infinite, subnormal results are kept, and a NaN stays a
// NaN. The conversion to float is exact. The bits are the same on every machine, and in constant evaluation.
#pragma once
#include "build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The conversions have no branches, so that compilers vectorize loops over arrays.
constexpr std::uint16_t bfloat_bits(float x) {
  const std::uint32_t w = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (w + 0x7fffu + (w >> 16 & 1u)) >> 16, quiet = w >> 16 | 0x40u;
  return static_cast<std::uint16_t>((w & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}
constexpr float bfloat_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::uint16_t half_bits(float x) {
  const std::uint32_t w = std::bit_cast<std::uint32_t>(x), a = w & 0x7fffffffu;
  const std::uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;  // bias 15 instead of 127
  // Below 2^-14 a half is a multiple of 2^-24, which is the last place of 0.5, so the addition rounds to it.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
  std::uint32_t bits = a < 0x38800000u ? subnormal : normal;
  bits = a >= 0x477ff000u ? 0x7c00u : bits;  // from 65520 on
  bits = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : bits;
  return static_cast<std::uint16_t>(bits | (w >> 16 & 0x8000u));
}
constexpr float half_value(std::uint16_t bits) {
  const std::uint32_t a = bits & 0x7fffu;
  // 2^-14 + a 2^-24 is exact for a below 2^10.
  const float subnormal = std::bit_cast<float>(((a & 0x3ffu) << 13) + 0x38800000u) - 0x1p-14f;
  const std::uint32_t normal = (a << 13) + (a < 0x7c00u ? 0x38000000u : 0x70000000u);
  const std::uint32_t small = 0u - static_cast<std::uint32_t>(a < 0x400u);  // a mask, since g++ would branch
  const std::uint32_t w = (std::bit_cast<std::uint32_t>(subnormal) & small) | (normal & ~small);
  return std::bit_cast<float>(w | (std::uint32_t{bits} & 0x8000u) << 16);
}

}  // namespace detail

struct half {
  std::uint16_t bits = 0;

  static constexpr float largest = 65504, smallest_normal = 0x1p-14f, smallest = 0x1p-24f, epsilon = 0x1p-10f;
  constexpr half() = default;
  constexpr explicit half(float x) : bits(detail::half_bits(x)) {}
  static constexpr half from_bits(std::uint16_t b) {
    half h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return detail::half_value(bits); }
};

struct bfloat {
  std::uint16_t bits = 0;

  static constexpr float largest = 0x1.fep127f, smallest_normal = 0x1p-126f, smallest = 0x1p-133f, epsilon = 0x1p-7f;
  constexpr bfloat() = default;
  constexpr explicit bfloat(float x) : bits(detail::bfloat_bits(x)) {}
  static constexpr bfloat from_bits(std::uint16_t b) {
    bfloat h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return detail::bfloat_value(bits); }
};
static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2);

namespace detail {
// Arrays: to[i] is from[i], rounded or widened.
template <class Narrow>
constexpr void round_each(const float* from, Narrow* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Narrow(from[i]);
}
template <class Narrow>
constexpr void widen_each(const Narrow* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}
}  // namespace detail

}  // namespace gradus
