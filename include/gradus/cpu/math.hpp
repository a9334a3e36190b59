// This header has exp, log and related functions on numbers. They use no branches, no tables and no library, so that
// lane and pack, desktop and microcontroller give the same bits. tests/cpu/math.cpp measures them; their largest
// errors, in units in the last place, are:
//
//   exp, log, log1p: 1.1     pow: 1.6     expm1, sin2pi, cos2pi: 2     sigmoid: 2.2     tanh, erf: 2.6
//
// Zeros, infinities and NaN are treated as in C's <math.h>; a NaN stays a NaN. Subnormal results are right to one unit
// of the smallest number. Where a thread flushes subnormals to zero, such results are zero, and a subnormal argument
// counts as zero.
#pragma once
#include "../base/build.hpp"

#include <limits>

#include "number.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class N, class... Rest>
GRADUS_INLINE N horner(N x, double first, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0)
    return N::of(first);
  else
    return fma(x, horner(x, rest...), N::of(first));
}
// The polynomials below are Chebyshev interpolants that were computed with 50 digits; float uses the shorter one.

// Returns (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
template <class N>
GRADUS_INLINE N exp_tail(N r) {
  if constexpr (is_double<N>)
    return horner(r, 0.5, 0.166666666666666712, 0.0416666666666666699, 0.00833333333332584798, 0.00138888888888835433,
                  0.000198412698758195791, 0.0000248015873262611039, 2.75572541393168905e-6, 2.75572727426993457e-7,
                  2.5105739219586713e-8, 2.09150598849176859e-9);
  else
    return horner(r, 0.5, 0.166665752173736494, 0.0416665524031902174, 0.0083634727221610281, 0.00139265504284959209);
}
// Returns (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 with z = s^2, for |s| <= 0.1716.
template <class N>
GRADUS_INLINE N log_tail(N z) {
  if constexpr (is_double<N>)
    return horner(z, 0.40000000000000029, 0.285714285713329325, 0.222222222736176224, 0.181818078390157923,
                  0.153856044117685143, 0.132849779696199052, 0.129256635751102745);
  else
    return horner(z, 0.400000155131625242, 0.285620497937892551, 0.23056652002457477);
}
// Returns erf(x) / x with z = x^2, for |x| <= 1.
template <class N>
GRADUS_INLINE N erf_near(N z) {
  if constexpr (is_double<N>)
    return horner(z, 1.12837916709551257, -0.376126389031837481, 0.112837916709548787, -0.0268661706450767932,
                  0.00522397762481801447, -0.000854832698083378991, 0.000120553311116427109, -0.0000149255952668311816,
                  1.6461000484121368e-6, -1.6350312701054695e-7, 1.46597752740474358e-8, -1.13728488567916737e-9,
                  5.9571761477489114e-11);
  else
    return horner(z, 1.12837916584835095, -0.37612626666720331, 0.112835947151602177, -0.0268542120106264124,
                  0.00518908742343397399, -0.000801686428716586953, 0.0000787587506268548834);
}
// Returns (x + 3) e^(x^2) erfc(x) with t = (x - 2) / (x + 3), for x from 1 to 6 (float: 4).
template <class N>
GRADUS_INLINE N erf_far(N t) {
  if constexpr (is_double<N>)
    return horner(t, 1.27697838155252885, -1.39293316478471403, 1.16249936431874029, -0.719622633817560964,
                  0.300110167741715612, -0.056339283082390536, -0.0174903407703499912, 0.0122881372974680773,
                  0.000395320644616783237, -0.00206986299681611206, 0.0000540839331342603924, 0.000388852700830292606,
                  2.6166160731331001e-6, -0.0000894196503260692885, 0.0000157890890828951975);
  else
    return horner(t, 1.27697838153149469, -1.39293316479974288, 1.16249938008480377, -0.71962274264000002,
                  0.300108607789595889, -0.0563294523999989215, -0.017444754464741284, 0.0120316286820279643);
}
// These return sin(2 pi x) / x and (cos(2 pi x) - 1) / x^2 with z = x^2, for |x| <= 1/8.
template <class N>
GRADUS_INLINE N sin_turn(N z) {
  if constexpr (is_double<N>)
    return horner(z, 6.28318530717958648, -41.3417022403997601, 81.6052492760749299, -76.7058597529978102,
                  42.0586939289251604, -15.0946403973801106, 3.81978779200644164, -0.711629350367876655);
  else
    return horner(z, 6.28318530715226368, -41.3417021530472175, 81.6052045776367443, -76.6978504232456426,
                  41.472251141419129);
}
template <class N>
GRADUS_INLINE N cos_turn(N z) {
  if constexpr (is_double<N>)
    return horner(z, -19.7392088021787172, 64.9393940226682915, -85.4568172066936843, 60.2446413718544528,
                  -26.4262567777951728, 7.90353561006410712, -1.71433315477476519, 0.279738529615758025);
  else
    return horner(z, -19.7392087899387861, 64.9393689766615078, -85.4488041547914352, 59.423290715608124);
}

// This describes the layout of a T, and holds ln 2 in two pieces, of which the first is so short that its product with
// an exponent is exact.
template <class T>
struct format;
template <>
struct format<float> {
  static constexpr int mantissa = 23, bias = 127;
  static constexpr std::uint32_t one = 0x3f800000u, root_half = 0x3f3504f3u, field = 0x007fffffu;
  static constexpr float magic = 0x1.8p23f, count = 0x1p23f, smallest = 0x1p-126f, lift = 0x1p25f, split = 4097.0f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -0.000212194440054690583f;
  static constexpr float exp_least = -104.0f, exp_most = 89.0f, expm1_least = -20.0f;
};
template <>
struct format<double> {
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr std::uint64_t one = 0x3ff0000000000000u, root_half = 0x3fe6a09e667f3bcdu,
                                 field = 0x000fffffffffffffu;
  static constexpr double magic = 0x1.8p52, count = 0x1p52, smallest = 0x1p-1022, lift = 0x1p54, split = 134217729.0;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 1.9082149292705878161e-10;
  static constexpr double exp_least = -746.0, exp_most = 710.0, expm1_least = -40.0;
};

// Where `supported`, the machine multiplies such a number by 2^n in one operation, with n given as a number. It rounds
// once, as multiplying by two exact factors does.
template <class N>
struct machine_scale {
  static constexpr bool supported = false;
};
#if GRADUS_SIMD && defined(__AVX512F__)
template <class A, class Arch>
  requires(sizeof(vector_pack<float, A, Arch>) == 64)
struct machine_scale<vector_pack<float, A, Arch>> {
  using N = vector_pack<float, A, Arch>;
  static constexpr bool supported = true;
  static GRADUS_INLINE N by(N x, N n) { return typename N::batch(_mm512_maskz_scalef_ps(0xffff, x.raw(), n.raw())); }
};
template <class A, class Arch>
  requires(sizeof(vector_pack<double, A, Arch>) == 64)
struct machine_scale<vector_pack<double, A, Arch>> {
  using N = vector_pack<double, A, Arch>;
  static constexpr bool supported = true;
  static GRADUS_INLINE N by(N x, N n) { return typename N::batch(_mm512_maskz_scalef_pd(0xff, x.raw(), n.raw())); }
};
#endif

// This splits x = n ln 2 + r with |r| <= ln 2 / 2. Without a machine_scale, 2^n comes as two factors, since a single
// one may be out of range.
template <class N>
struct halved_exponent {
  N n, r, first, second;
  GRADUS_INLINE explicit halved_exponent(N x) {
    using f = format<typename N::value_type>;
    using words = typename N::words;
    using word = typename N::word;
    const N magic(f::magic);
    const N t = fma(x, N::of(1.4426950408889634074), magic);
    n = t - magic;
    r = fma(n, N(-f::ln2_low), fma(n, N(-f::ln2_high), x));
    if constexpr (!machine_scale<N>::supported) {
      // The low bits of t hold n. With twice the bias added, n is positive and may be shifted.
      const words k = t.bits() - words(magic.bits()) + words(static_cast<word>(2 * f::bias));
      const words half = (k >> 1) & words(f::field);
      first = N::from(half << f::mantissa);
      second = N::from((k - half) << f::mantissa);
    }
  }
  // Returns x 2^n.
  GRADUS_INLINE N scaled(N x) const {
    if constexpr (machine_scale<N>::supported)
      return machine_scale<N>::by(x, n);
    else
      return x * first * second;
  }
  // Returns 2^-n.
  GRADUS_INLINE N inverse() const {
    if constexpr (machine_scale<N>::supported) {
      return machine_scale<N>::by(N(1), -n);
    } else {  // the exponent fields of its two factors are those of 2^n, mirrored
      using f = format<typename N::value_type>;
      using words = typename N::words;
      const words mirror(static_cast<typename N::word>(typename N::word{2 * f::bias} << f::mantissa));
      return N::from(mirror - first.bits()) * N::from(mirror - second.bits());
    }
  }
};
// Returns e^x - 1 for x between expm1_least and exp_most.
template <class N>
GRADUS_INLINE N expm1_within(N x) {
  const halved_exponent<N> e(x);
  const N power = fma(e.r * e.r, exp_tail(e.r), e.r);
  return e.scaled(power + (N(1) - e.inverse()));
}

// This splits x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class N>
struct split_exponent {
  N k, f;
  GRADUS_INLINE explicit split_exponent(N x) {
    using c = format<typename N::value_type>;
    using words = typename N::words;
    const auto small = x < N(c::smallest);
    const words w = select(small, x * N(c::lift), x).bits() + words(c::one - c::root_half);
    const N exponent =
        N::from((w >> c::mantissa) | N(c::count).bits()) - N(c::count + static_cast<typename N::value_type>(c::bias));
    k = exponent - select(small, N(static_cast<typename N::value_type>(is_double<N> ? 54 : 25)), N(0));
    f = N::from((w & words(c::field)) + words(c::root_half)) - N(1);
  }
};

// Returns log(2^k (1 + f)) + c for a small correction c.
template <class N>
GRADUS_INLINE N log_of_parts(N k, N f, N c) {
  using format = detail::format<typename N::value_type>;
  const N s = f / (N(2) + f), z = s * s, half_square = N::of(0.5) * f * f;
  const N tail = fma(s, half_square + z * fma(z, log_tail(z), N::of(2.0 / 3.0)), fma(k, N(format::ln2_low), c));
  return fma(k, N(format::ln2_high), f - (half_square - tail));
}
template <class N>
GRADUS_INLINE N infinity() {
  return N(std::numeric_limits<typename N::value_type>::infinity());
}
template <class N>
GRADUS_INLINE N not_a_number() {
  return N(std::numeric_limits<typename N::value_type>::quiet_NaN());
}
}  // namespace detail

template <number N>
GRADUS_INLINE N exp(N x) {
  using f = detail::format<typename N::value_type>;
  const detail::halved_exponent<N> e(min(N(f::exp_most), max(N(f::exp_least), x)));
  const N power = fma(e.r * e.r, detail::exp_tail(e.r), e.r) + N(1);
  return e.scaled(power);
}

// Returns e^x - 1, accurate near 0.
template <number N>
GRADUS_INLINE N expm1(N x) {
  using f = detail::format<typename N::value_type>;
  const N result = detail::expm1_within(min(N(f::exp_most), max(N(f::expm1_least), x)));
  return select(x == N(0), x, result);
}

template <number N>
GRADUS_INLINE N log(N x) {
  const detail::split_exponent<N> p(x);
  const N r = detail::log_of_parts(p.k, p.f, N(0));
  const N known = select(x < detail::infinity<N>(), r, x);
  return select(x > N(0), known,
                select(x == N(0), -detail::infinity<N>(), select(x < N(0), detail::not_a_number<N>(), x)));
}

// Returns log(1 + x), accurate near 0.
template <number N>
GRADUS_INLINE N log1p(N x) {
  const N u = N(1) + x;
  const detail::split_exponent<N> p(u);
  // This is what 1 + x lost in rounding, relative to 1 + x.
  const N lost = select(x > N(1), N(1) - (u - x), x - (u - N(1))) / u;
  const N r = detail::log_of_parts(p.k, p.f, lost);
  const N known = select(x < detail::infinity<N>(), select(x == N(0), x, r), x);
  return select(x > N(-1), known,
                select(x == N(-1), -detail::infinity<N>(), select(x < N(-1), detail::not_a_number<N>(), x)));
}

template <number N>
GRADUS_INLINE N tanh(N x) {
  const N a = min(N::of(detail::is_double<N> ? 20.0 : 10.0), abs(x));
  const N e = detail::expm1_within(a + a);
  return copysign(e / (e + N(2)), x);
}

// Returns 1 / (1 + e^-x).
template <number N>
GRADUS_INLINE N sigmoid(N x) {
  return N(1) / (N(1) + exp(-x));
}

template <number N>
GRADUS_INLINE N erf(N x) {
  const N a = min(N::of(detail::is_double<N> ? 6.0 : 4.0), abs(x));
  const N z = a * a;
  const N near = a * detail::erf_near(z);
  const N q = N(1) / (a + N(3));
  const N far = N(1) - exp(-z) * (detail::erf_far((a - N(2)) * q) * q);
  return copysign(select(a < N(1), near, far), x);
}

namespace detail {
// This keeps a value as a sum of two numbers. pow needs it, because y log x needs ten more bits than its result.
template <class N>
struct twofold {
  N high, low;
};
template <class N>
GRADUS_INLINE twofold<N> exact_sum(N a, N b) {
  const N s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
template <class N>
GRADUS_INLINE twofold<N> exact_product(N a, N b) {
  const N p = a * b;
  if constexpr (N::policy::fuses && simd::has_fma<typename N::value_type>) {
    return {p, fma(a, b, -p)};
  } else {  // Dekker 1971: the halves of the mantissas have exact products
    const N split(format<typename N::value_type>::split);
    const N at = a * split, bt = b * split;
    const N ah = at - (at - a), bh = bt - (bt - b), al = a - ah, bl = b - bh;
    return {p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)};
  }
}
template <class N>
GRADUS_INLINE twofold<N> times(twofold<N> a, twofold<N> b) {
  const auto p = exact_product(a.high, b.high);
  return {p.high, p.low + (a.high * b.low + a.low * b.high)};
}

// Returns log(2^k (1 + f)) as k ln 2 + 2 s + s^3 (2/3 + ...) with s = f / (2 + f); 2 s and 2/3 s^3 are twofold numbers.
template <class N>
GRADUS_INLINE twofold<N> twofold_log(N k, N f) {
  using format = detail::format<typename N::value_type>;
  const N d = N(2) + f, d_low = f - (d - N(2)), sh = f / d;
  const auto back = exact_product(sh, d);
  const twofold<N> s{sh, (((f - back.high) - back.low) - sh * d_low) / d};
  const N two_thirds = N::of(2.0 / 3.0);
  const N rest =
      is_double<N> ? N::of(3.7007434154171884681e-17) : N::of(-1.9868214925130208e-8);  // 2/3 minus its rounded value
  const twofold<N> z = times(s, s), cube = times(times(s, z), twofold<N>{two_thirds, rest});
  const N fifth = sh * z.high * (z.high * log_tail(z.high));
  const auto first = exact_sum(k * N(format::ln2_high), sh + sh);
  const auto second = exact_sum(first.high, cube.high);
  const N low = (first.low + second.low) + (k * N(format::ln2_low) + (s.low + s.low) + cube.low + fifth);
  const N high = second.high + low;
  return {high, low - (high - second.high)};
}
}  // namespace detail

// Returns x to the power y, as C's pow does: a negative x with a fractional y gives NaN; anything to the power 0, and 1
// to any power, is 1.
template <number N>
GRADUS_INLINE N pow(N x, N y) {
  using f = detail::format<typename N::value_type>;
  const N a = abs(x), most = detail::is_double<N> ? N::of(0x1p900) : N::of(0x1p100);
  const detail::split_exponent<N> parts(a);
  const auto l = detail::twofold_log(parts.k, parts.f);
  const N bounded = min(most, max(-most, y));
  const auto p = detail::exact_product(bounded, l.high);
  const N high = min(N(f::exp_most), max(N(f::exp_least), p.high));
  const N low = select(high == p.high, p.low + bounded * l.low, N(0));
  const detail::halved_exponent<N> e(high);
  const N r = e.r + low;
  N value = e.scaled(fma(r * r, detail::exp_tail(r), r) + N(1));
  const N inf = detail::infinity<N>(), undefined = detail::not_a_number<N>();
  value = select(a == N(0), select(y < N(0), inf, N(0)), value);
  value = select(a == inf, select(y < N(0), N(0), inf), value);
  const auto odd = y - floor(y * N::of(0.5)) * N(2) == N(1);
  const N signed_value = select(odd, copysign(value, x), select(floor(y) == y, value, undefined));
  value = select(x < N(0), select(a == inf, select(odd, -value, value), signed_value),
                 select(detail::both(odd, x == N(0)), copysign(value, x), value));
  value = select(x == x, value, x);
  value = select(y == y, value, y);
  return select(detail::either(y == N(0), x == N(1)), N(1), value);
}

// These return the sine and cosine of x turns (2 pi x radians), for |x| <= 2^20; they are exact at the quarters.
template <number N>
GRADUS_INLINE N sin2pi(N x) {
  const N quarters = round(x * N(4)), r = x - quarters * N::of(0.25), z = r * r;
  const N s = r * detail::sin_turn(z), c = fma(z, detail::cos_turn(z), N(1));
  const N half = floor(quarters * N::of(0.5));  // quarters = 2 half + odd
  const auto odd = quarters - half * N(2) > N(0);
  const auto negative = half - floor(half * N::of(0.5)) * N(2) > N(0);
  const N value = select(odd, c, s);
  return select(negative, -value, value);
}
template <number N>
GRADUS_INLINE N cos2pi(N x) {
  return sin2pi(N::of(0.25) - abs(x));
}

}  // namespace gradus
