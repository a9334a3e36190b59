#include <gradus/base/half.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace gradus;

namespace {

// What the bits mean, from the definition alone.
double meaning(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1,
            e = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int m = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  if (e == (1 << exponent_bits) - 1) return m != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (e == 0 ? std::ldexp(m, 1 - bias - mantissa_bits)
                        : std::ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits));
}
std::uint32_t word(float x) {
  std::uint32_t w;
  std::memcpy(&w, &x, 4);
  return w;
}

template <class Narrow>
void exhaustive(int exponent_bits, int mantissa_bits) {
  const unsigned infinite = ((1u << exponent_bits) - 1) << mantissa_bits;
  long wrong = 0;
  for (unsigned b = 0; b < 65536; ++b) {
    const double want = meaning(b, exponent_bits, mantissa_bits);
    const float got = Narrow::from_bits(static_cast<std::uint16_t>(b));
    if (std::isnan(want)) {
      wrong += !std::isnan(got) || !std::isnan(static_cast<float>(Narrow(got)));
      wrong += (Narrow(got).bits & 0x8000u) != (b & 0x8000u);
      continue;
    }
    wrong += word(got) != word(static_cast<float>(want));  // the sign of zero too
    wrong += Narrow(got).bits != b;                        // and back
    // Between this value and the next away from zero: below the middle, the middle itself, above it.
    if ((b & 0x7fffu) >= infinite) continue;
    const double unbounded = std::ldexp(1.0, (1 << (exponent_bits - 1)));  // what would come after the largest
    const double next =
        (b & 0x7fffu) + 1 == infinite ? std::copysign(unbounded, want) : meaning(b + 1, exponent_bits, mantissa_bits);
    const auto middle = static_cast<float>((want + next) / 2);  // exact: it has one more bit, or is halfway above
    const unsigned even = b % 2 == 0 ? b : b + 1;
    wrong += Narrow(middle).bits != even;
    wrong += Narrow(std::nextafter(middle, static_cast<float>(want))).bits != b;
    const float above = std::nextafter(middle, std::copysign(std::numeric_limits<float>::infinity(), middle));
    wrong += Narrow(above).bits != b + 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("half: all 65536 values both ways, and the floats around every middle, against ldexp") {
  exhaustive<half>(5, 10);
}
TEST_CASE("bfloat: all 65536 values both ways, and the floats around every middle, against ldexp") {
  exhaustive<bfloat>(8, 7);
}

TEST_CASE("what does not fit becomes infinite, what is too small zero; the sign stays") {
  CHECK(half(65519.996f).bits == 0x7bff);  // the last that rounds to 65504
  CHECK(half(65520.0f).bits == 0x7c00);
  CHECK(half(-1e30f).bits == 0xfc00);
  CHECK(half(0x1p-25f).bits == 0);  // half of the smallest: a tie, to even
  CHECK(half(-0x1.8p-25f).bits == 0x8001);
  CHECK(half(1e-30f).bits == 0);
  CHECK(half(-0.0f).bits == 0x8000);
  CHECK(bfloat(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(bfloat(-std::numeric_limits<float>::infinity()).bits == 0xff80);
}

TEST_CASE("a NaN stays one, even if all its payload lies in the bits that go") {
  std::uint32_t w = 0x7f800001u;
  float x;
  std::memcpy(&x, &w, 4);
  CHECK(std::isnan(static_cast<float>(half(x))));
  CHECK(std::isnan(static_cast<float>(bfloat(x))));
}

TEST_CASE("named limits") {
  CHECK(half::largest == half::from_bits(0x7bff));
  CHECK(half::smallest_normal == half::from_bits(0x0400));
  CHECK(half::smallest == half::from_bits(1));
  CHECK(half::epsilon == half::from_bits(0x3c01) - 1);
  CHECK(bfloat::largest == bfloat::from_bits(0x7f7f));
  CHECK(bfloat::smallest_normal == bfloat::from_bits(0x0080));
  CHECK(bfloat::smallest == bfloat::from_bits(1));
  CHECK(bfloat::epsilon == bfloat::from_bits(0x3f81) - 1);
}

// The compiler converts too.
static_assert(half(1.0f).bits == 0x3c00 && half(-2.0f).bits == 0xc000 && half(0x1p-24f).bits == 1);
static_assert(bfloat(1.0f).bits == 0x3f80 && bfloat(3.1415927f).bits == 0x4049);
static_assert(half(0.1f) == 0.0999755859375f && half(0.5f) + half(0.25f) == 0.75f);
