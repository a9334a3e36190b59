// This header has exp, log, pow, cos and similar functions of one double, which give the same bits on every IEEE 754
// machine. They use only + - * / sqrt and integer arithmetic, no C library and no fused operation. They are for numbers
// that are computed once per step: schedules, and the constants of a rule. (Kernels have functions of their own, on
// whole registers: cpu/math.hpp.)
//
//   gradus::portable_math::pow(0.96, step / 100.0)
//
// The largest errors seen, in units in the last place (tests/base/math.cpp), are 0.8 for exp, log, log2, cos_pi, sin_pi
// and cos, and 0.9 for pow. A result that is a double itself is exact: pow(2, 10), pow(10, 3), log2(8), cos_pi(0.5).
// Zeros, infinities and NaN are treated as in C's <math.h> (Annex F). Everything is constexpr.
#pragma once
#include "build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gradus::inline GRADUS_BUILD::portable_math {

// Returns a * b, rounded, even where the compiler would fuse the product with a sum that uses it; g++ does so by
// default, through inlined functions too. Every product of single numbers that may be added to something goes through
// this function. An empty asm hides the product, since g++ 12 drops __builtin_assoc_barrier when it vectorizes a loop
// (docs/arithmetic.md).
template <class T>
[[gnu::always_inline]] constexpr T product(T a, T b) {
#if defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  T r = a * b;
  if (!std::is_constant_evaluated()) {
#if defined(__FMA__) || defined(__FMA4__) || defined(__AVX512F__)
    asm("" : "+x"(r));
#elif defined(__x86_64__) || defined(__i386__)
    // there is no fused instruction
#elif defined(__aarch64__)
    asm("" : "+w"(r));
#elif defined(__ARM_FEATURE_FMA)
    if constexpr (sizeof(T) == sizeof(float))
      asm("" : "+t"(r));
    else if constexpr ((__ARM_FP & 8) != 0)
      asm("" : "+w"(r));
#elif defined(__arm__)
    // there is no fused instruction here either
#elif defined(__riscv_flen)
    if constexpr (sizeof(T) * 8 <= __riscv_flen) asm("" : "+f"(r));
#else
    asm("" : "+m"(r));
#endif
  }
  return r;
#endif
}

inline constexpr double pi = 3.14159265358979323846;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

namespace detail {
// The square root in constant evaluation, since __builtin_sqrt is not constexpr in every compiler. It is computed digit
// by digit and rounded correctly.
constexpr double root_by_digits(double x) {
  if (!(x > 0) || !(x < infinity)) return x < 0 ? not_a_number : x;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = -54;
  if (bits >> 52 == 0) bits = std::bit_cast<std::uint64_t>(x * 0x1p54), exponent -= 54;
  exponent += static_cast<int>(bits >> 52) - 1023 - 52;
  std::uint64_t m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u, root = 0, rest = 0;
  if (exponent % 2 != 0) m <<= 1, --exponent;
  for (int i = 53; i >= 0; --i) {  // 54 digits of the root of m 2^54
    rest = rest << 2 | (i >= 27 ? m >> 2 * (i - 27) & 3 : 0);
    const std::uint64_t next = root << 2 | 1;
    root = root << 1 | (rest >= next);
    if (rest >= next) rest -= next;
  }
  // The last digit rounds. There is no tie, since the root of a double never lies half-way between two doubles.
  return static_cast<double>((root >> 1) + (root & 1)) *
         std::bit_cast<double>(static_cast<std::uint64_t>(exponent / 2 + 1 + 1023) << 52);
}
}  // namespace detail
// IEEE 754 requires correct rounding. A float's root is rounded from the double's, which has more than twice the
// digits.
constexpr double sqrt(double x) { return std::is_constant_evaluated() ? detail::root_by_digits(x) : __builtin_sqrt(x); }
[[gnu::always_inline]] constexpr float sqrt(float x) {
  if (std::is_constant_evaluated()) return static_cast<float>(detail::root_by_digits(static_cast<double>(x)));
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0
  float root = 0;  // by the instruction: the compilers' builtin is a call, which sets errno
  asm("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
  return root;
#else
  return __builtin_sqrtf(x);
#endif
}
// This is true where the square root of a float is an instruction.
inline constexpr bool sqrt_is_fast =
#if defined(__arm__)
#if defined(__ARM_FP) && (__ARM_FP & 4) != 0
    true;
#else
    false;
#endif
#elif defined(__riscv) && !defined(__riscv_fdiv)
    false;
#else
    true;
#endif
// Returns the nearest float, as the conversion does, but by integers alone, so that a board whose program has no other
// double needs no library routines for doubles.
constexpr float to_float(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), digits = bits & (~std::uint64_t{0} >> 12);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << 31;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent > 127)
    return std::bit_cast<float>(sign | 0x7f800000u | (exponent == 1024 && digits != 0 ? 0x400000u : 0u));
  const int drop = exponent < -126 ? 29 - 126 - exponent : 29;
  if (drop > 54) return std::bit_cast<float>(sign);
  const std::uint64_t whole = digits | 1ull << 52, half = 1ull << (drop - 1), rest = whole & (2 * half - 1);
  std::uint32_t kept = static_cast<std::uint32_t>(whole >> drop);
  kept += rest > half || (rest == half && kept % 2 != 0);
  return std::bit_cast<float>(sign |
                              (kept + (exponent < -126 ? 0u : static_cast<std::uint32_t>(exponent + 126) << 23)));
}
constexpr double abs(double x) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffu); }
// Returns the largest whole number that is not above x. Numbers of 2^52 and more, infinities and NaN are returned
// unchanged.
constexpr double floor(double x) {
  if (!(abs(x) < 0x1p52)) return x;
  const double whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole == x ? x : whole > x ? whole - 1 : whole;
}
constexpr double ceil(double x) { return -floor(-x); }

namespace detail {
// Returns c[0] + x (c[1] + x (...)).
template <std::size_t N>
constexpr double horner(double x, const double (&c)[N]) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = product(sum, x) + c[i];
  return sum;
}

// A number as the sum of two doubles, of which the second is smaller than the first's last place.
struct twofold {
  double high = 0, low = 0;
};
// ordered_sum is Dekker's (1971), for |a| >= |b|; exact_sum is Knuth's, for any two numbers; exact_product is Dekker's,
// by halves of the mantissa.
constexpr twofold ordered_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}
constexpr twofold exact_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
constexpr twofold exact_product(double a, double b) {
  constexpr double split = 134217729.0;  // 2^27 + 1
  const double p = product(a, b), at = product(a, split), bt = product(b, split);
  const double ah = at - (at - a), bh = bt - (bt - b), al = a - ah, bl = b - bh;
  return {p, product(al, bl) - (((p - product(ah, bh)) - product(al, bh)) - product(ah, bl))};
}
constexpr twofold times(twofold a, twofold b) {
  const auto p = exact_product(a.high, b.high);
  return ordered_sum(p.high, p.low + (product(a.high, b.low) + product(a.low, b.high)));
}

// Returns 2^n for n from -1022 to 1023.
constexpr double power_of_two(std::int64_t n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}
inline constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;  // the first 32 bits, and the rest

// Returns e^(high + low), by high = n ln 2 + r with |r| <= ln 2 / 2, and Taylor's series of e^r.
constexpr double exp(twofold x) {
  if (!(x.high < 710)) return x.high >= 710 ? infinity : x.high;
  if (x.high < -746) return 0;
  const double n = floor(product(x.high, 1.4426950408889634074) + 0.5);
  const double first = x.high - product(n, ln2_high), second = product(n, ln2_low);  // `first` is exact
  const double r = first - second, rest = ((first - r) - second) + x.low;
  constexpr double c[] = {1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
                          1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double tail = product(product(r, r), horner(r, c));
  const double y = 1 + (r + (tail + product(rest, 1 + (r + tail))));
  const auto exponent = static_cast<std::int64_t>(n), half = exponent / 2;  // 2^n itself may be out of range
  return product(product(y, power_of_two(half)), power_of_two(exponent - half));
}

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x.
struct split {
  double k = 0, f = 0;
  constexpr explicit split(double x) {
    if (x < 0x1p-1022) x *= 0x1p54, k = -54;
    constexpr std::uint64_t one = 0x3ff0000000000000u, root_half = 0x3fe6a09e667f3bcdu, field = 0x000fffffffffffffu;
    const std::uint64_t w = std::bit_cast<std::uint64_t>(x) + (one - root_half);
    k += static_cast<double>(static_cast<std::int64_t>(w >> 52) - 1023);
    f = std::bit_cast<double>((w & field) + root_half) - 1;
  }
};
// Returns log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = f / (2 + f), |s| <= 0.172. The first two terms are
// computed in twofold numbers; the result is accurate to about 64 bits.
constexpr twofold log_1p(double f) {
  const twofold d = ordered_sum(2, f);
  const double s = f / d.high;
  const twofold p = exact_product(s, d.high);
  const twofold t = ordered_sum(s, (((f - p.high) - p.low) - product(s, d.low)) / d.high);
  const twofold z = times(t, t), cube = times(z, t);
  const twofold third = times(cube, {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  constexpr double c[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                          2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25};
  const double rest = product(product(cube.high, z.high), horner(z.high, c));
  const twofold sum = ordered_sum(t.high + t.high, third.high);
  return ordered_sum(sum.high, sum.low + (t.low + t.low) + (third.low + rest));
}
constexpr twofold log(double x) {
  const split parts(x);
  const twofold l = log_1p(parts.f), sum = exact_sum(product(parts.k, ln2_high), l.high);
  return ordered_sum(sum.high, sum.low + (product(parts.k, ln2_low) + l.low));
}
constexpr bool is_ordinary(double x) { return x > 0 && x < infinity; }
// Returns the logarithm of the other numbers: zeros, negative numbers, infinity, NaN.
constexpr double log_of_other(double x) { return x == 0 ? -infinity : x < 0 ? not_a_number : x; }

// Return sin and cos of t for |t| <= pi / 4, by Taylor's series.
constexpr double sin_near(twofold t) {
  const double z = product(t.high, t.high);
  constexpr double c[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  return t.high + (product(product(z, t.high), horner(z, c)) + product(t.low, 1 - 0.5 * z));
}
constexpr double cos_near(twofold t) {
  const double z = product(t.high, t.high), half = 0.5 * z, w = 1 - half;
  constexpr double c[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
                          1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  return w + (((1 - w) - half) + (product(product(z, z), horner(z, c)) - product(t.high, t.low)));
}
// Returns cos(n pi / 2 + t) for a whole n.
constexpr double cos_turned(double n, twofold t) {
  switch (static_cast<std::int64_t>(n) & 3) {
  case 0: return cos_near(t);
  case 1: return -sin_near(t);
  case 2: return -cos_near(t);
  default: return sin_near(t);
  }
}
// Splits x exactly into n / 2 + r with |r| <= 1/4; t is then r pi.
struct half_turns {
  double n = 0;
  twofold t;
  constexpr explicit half_turns(double x) {  // |x| < 2^53
    n = abs(x) < 0x1p51 ? floor(x + x + 0.5) : x + x;
    t = times({x - 0.5 * n, 0}, {pi, 0x1.1a62633145c07p-53});
  }
};
}  // namespace detail

constexpr double exp(double x) { return detail::exp({x, 0}); }

constexpr double log(double x) { return detail::is_ordinary(x) ? detail::log(x).high : detail::log_of_other(x); }
// Is exact for powers of two.
constexpr double log2(double x) {
  if (!detail::is_ordinary(x)) return detail::log_of_other(x);
  const detail::split parts(x);
  const auto l = detail::times(detail::log_1p(parts.f), {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56});
  const auto sum = detail::exact_sum(parts.k, l.high);
  return sum.high + (sum.low + l.low);
}

// Return cos(pi x) and sin(pi x), which are exact if x is a multiple of 1/2, and NaN for an infinite x.
constexpr double cos_pi(double x) {
  x = abs(x);
  if (!(x < 0x1p53)) return x < infinity ? 1.0 : not_a_number;  // an even number
  const detail::half_turns h(x);
  return detail::cos_turned(h.n, h.t) + 0.0;
}
constexpr double sin_pi(double x) {
  if (!(abs(x) < 0x1p53)) return abs(x) < infinity ? 0.0 : not_a_number;
  if (x == 0) return x;
  const detail::half_turns h(x);
  return detail::cos_turned(h.n - 1, h.t);
}
// Returns cos(x) for x in radians, up to 2^20, and NaN beyond. Prefer cos_pi, whose reduction loses no accuracy.
constexpr double cos(double x) {
  if (!(abs(x) <= 0x1p20)) return not_a_number;
  const double n = floor(product(x, 2 / pi) + 0.5);
  // pi / 2 is split into three pieces, of which the first two are so short that their products with n are exact.
  const double first = x - product(n, 0x1.921fb544p+0), second = product(n, 0x1.0b4611a6p-34);
  const auto r = detail::exact_sum(first, -second);
  return detail::cos_turned(n, detail::ordered_sum(r.high, r.low - product(n, 0x1.3198a2e037073p-69)));
}

// Returns x^y as C's pow does: pow(x, 0) and pow(1, y) are 1 whatever the other argument is; a negative x has a result
// only for whole exponents.
constexpr double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return not_a_number;
  const bool whole = floor(y) == y, odd = whole && abs(y) < 0x1p53 && (static_cast<std::int64_t>(y) & 1) != 0;
  const bool negative = odd && (std::bit_cast<std::uint64_t>(x) >> 63) != 0;
  const double a = abs(x);
  if (x < 0 && !whole && a < infinity) return not_a_number;
  double result = 0;
  if (a == 1) {
    result = 1;
  } else if (a == 0 || a == infinity) {
    result = (a == 0) == (y < 0) ? infinity : 0;
  } else if (abs(y) == infinity) {
    result = (a > 1) == (y > 0) ? infinity : 0;
  } else {
    const detail::twofold l = detail::log(a);
    const double estimate = y * l.high;
    if (estimate > 720)
      result = infinity;
    else if (estimate < -750)
      result = 0;
    else  // here |y| < 2^63, so no half of a product in `times` overflows
      result = detail::exp(detail::times(l, {y, 0}));
  }
  return negative ? -result : result;
}

}  // namespace gradus::portable_math
