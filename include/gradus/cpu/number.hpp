// This header defines the numbers that formulas are written on. docs/arithmetic.md states the rules behind it.
//
// A formula is a template on a number N. `lane<T, A>` is one T; `pack<T, A>` is as many as a vector register holds (one
// where there is no SIMD). Lane and pack give the same bits for the same formula, whatever the compiler optimizes:
//
//   template <class N> N relu(N x) { return max(x, N(0)); }
//
// T is float or double; A is `fast`, `portable` or `approximate`. A number supports + - * / and unary -, comparisons
// (which give a mask), and, as functions found by their argument: fma sqrt abs copysign min max select round floor.
// detail::both and detail::either join two masks.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cfloat>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../base/contract.hpp"
#include "../base/math.hpp"
#include "simd.hpp"

namespace gradus::inline GRADUS_BUILD {

// An arithmetic says how much the result may depend on the machine.
//
// `fast` uses fused multiply-add where the processor has it, so the last bits may differ between machines.
struct fast {
  using policy_for = kind::arithmetic;
  static constexpr bool fuses = true;
};
// `portable` gives the same bits on every machine with IEEE 754 numbers: products are not fused with sums.
struct portable {
  using policy_for = kind::arithmetic;
  static constexpr bool fuses = false;
};
namespace detail {
// These say whether this build computes as IEEE 754 says, with each operation rounded once to its type, which
// `portable` needs.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
inline constexpr bool reorders_arithmetic = true;
#else
inline constexpr bool reorders_arithmetic = false;
#endif
inline constexpr bool rounds_to_its_type = FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16;  // 16: with a 16-bit float

template <class A>
struct arithmetic_fits {
  static_assert(!std::is_same_v<A, portable> || !reorders_arithmetic,
                "gradus: `portable` promises the same bits on every machine, and this build lets the compiler change "
                "arithmetic (-ffast-math or a part of it). Compile without that option, or use `fast`.");
  static_assert(
      !std::is_same_v<A, portable> || rounds_to_its_type,
      "gradus: `portable` promises the same bits on every machine, and this build rounds to other widths than "
      "the numbers have (x87). Compile with -msse2 -mfpmath=sse, or use `fast`.");
  static constexpr bool value = true;
};
}  // namespace detail

// This is `fast` with square roots of float from the machine's estimate and a Newton step (with AVX-512 they are within
// 1 unit in the last place, and Adam takes 0.7 of the time; elsewhere they are exact). Lane and pack agree on one
// machine; another machine may differ.
struct approximate {
  using policy_for = kind::arithmetic;
  static constexpr bool fuses = true, estimates = true;
};

template <class A>
concept arithmetic = requires {
  { A::fuses } -> std::convertible_to<bool>;
};

namespace detail {
template <class T>
struct word_of;
template <>
struct word_of<float> {
  using type = std::uint32_t;
};
template <>
struct word_of<double> {
  using type = std::uint64_t;
};
}  // namespace detail

namespace detail {
template <class T, class A>
concept estimated = GRADUS_ESTIMATES != 0 && sizeof(T) == sizeof(float) && requires { requires A::estimates; };
template <std::floating_point T, arithmetic A>
struct lane {
  using value_type = T;
  using policy = A;
  using word = typename word_of<T>::type;  // the bits of a T
  using words = word;                      // the bits of a number
  using mask = bool;
  static constexpr std::size_t width = 1;

  T v;

  lane() = default;
  GRADUS_INLINE constexpr lane(T x) : v(x) {}
  // Returns a constant of a formula, given in double.
  static GRADUS_INLINE constexpr lane of(double x) { return lane(static_cast<T>(x)); }
  static GRADUS_INLINE constexpr lane load(const T* p) { return *p; }
  GRADUS_INLINE constexpr void store(T* p) const { *p = v; }
  // These load and store the first n of `width` numbers; the others read as `rest`, and are not written.
  static GRADUS_INLINE constexpr lane load_partial(const T* p, std::size_t n, T rest = T(0)) {
    return n != 0 ? *p : rest;
  }
  GRADUS_INLINE constexpr void store_partial(T* p, std::size_t n) const {
    if (n != 0) *p = v;
  }
  GRADUS_INLINE constexpr T operator[](std::size_t) const { return v; }
  GRADUS_INLINE constexpr words bits() const { return std::bit_cast<words>(v); }
  static GRADUS_INLINE constexpr lane from(words w) { return std::bit_cast<T>(w); }

  friend GRADUS_INLINE constexpr lane operator+(lane a, lane b) { return a.v + b.v; }
  friend GRADUS_INLINE constexpr lane operator-(lane a, lane b) { return a.v - b.v; }
  friend GRADUS_INLINE constexpr lane operator*(lane a, lane b) { return portable_math::product(a.v, b.v); }
  friend GRADUS_INLINE constexpr lane operator/(lane a, lane b) { return a.v / b.v; }
  friend GRADUS_INLINE constexpr lane operator-(lane a) { return -a.v; }
  friend GRADUS_INLINE constexpr mask operator<(lane a, lane b) { return a.v < b.v; }
  friend GRADUS_INLINE constexpr mask operator<=(lane a, lane b) { return a.v <= b.v; }
  friend GRADUS_INLINE constexpr mask operator>(lane a, lane b) { return a.v > b.v; }
  friend GRADUS_INLINE constexpr mask operator>=(lane a, lane b) { return a.v >= b.v; }
  friend GRADUS_INLINE constexpr mask operator==(lane a, lane b) { return a.v == b.v; }
  friend GRADUS_INLINE constexpr mask operator!=(lane a, lane b) { return a.v != b.v; }
  friend GRADUS_INLINE constexpr lane select(mask m, lane a, lane b) { return m ? a : b; }
  friend GRADUS_INLINE constexpr lane min(lane a, lane b) { return a.v < b.v ? a : b; }
  friend GRADUS_INLINE constexpr lane max(lane a, lane b) { return a.v > b.v ? a : b; }
  friend GRADUS_INLINE lane sqrt(lane a) {
#if GRADUS_ESTIMATES
    if constexpr (estimated<T, A>) return simd::estimated_root(a.v);
#endif
    if constexpr (sizeof(T) == sizeof(float))
      return portable_math::sqrt(a.v);
    else
      return __builtin_sqrt(a.v);
  }
  // Returns a * b + c, with one rounding where A fuses (as `fast` does) and the machine can, with two otherwise.
  friend GRADUS_INLINE constexpr lane fma(lane a, lane b, lane c) {
    if constexpr (A::fuses && simd::has_fma<T>) {
      if constexpr (sizeof(T) == sizeof(float))
        return __builtin_fmaf(a.v, b.v, c.v);
      else
        return __builtin_fma(a.v, b.v, c.v);
    } else {
      return a * b + c;
    }
  }
};

#if GRADUS_SIMD
template <std::floating_point T, arithmetic A, class Arch>
struct vector_pack {
  using value_type = T;
  using policy = A;
  using word = typename word_of<T>::type;
  using reg = simd::register_of<T, Arch>;
  using batch = reg;
  using words = simd::words<word, sizeof(reg)>;
  using mask = simd::mask<word, sizeof(reg)>;
  using masked = simd::masked<T, sizeof(reg)>;
  static constexpr std::size_t width = sizeof(reg) / sizeof(T);

  reg v;

  vector_pack() = default;
  GRADUS_INLINE vector_pack(T x) : v(x - reg{}) {}  // x - 0 is x, also for -0, so no operation remains
  GRADUS_INLINE vector_pack(reg r) : v(r) {}
  static GRADUS_INLINE vector_pack of(double x) { return vector_pack(static_cast<T>(x)); }
  static GRADUS_INLINE vector_pack load(const T* p) { return reinterpret_cast<const anywhere*>(p)->r; }
  GRADUS_INLINE void store(T* p) const { reinterpret_cast<anywhere*>(p)->r = v; }
  static GRADUS_INLINE vector_pack load_partial(const T* p, std::size_t n, T rest = T(0)) {
    if constexpr (masked::supported) {
      if (n != 1) return reg(masked::load(p, n, rest));
      reg r = vector_pack(rest).v;  // a number that was just stored is quicker to read alone
      r[0] = *p;
      return r;
    } else {
      alignas(64) T padded[width];
      for (std::size_t i = 0; i < width; ++i) padded[i] = i < n ? p[i] : rest;
      return load(padded);
    }
  }
  GRADUS_INLINE void store_partial(T* p, std::size_t n) const {
    if constexpr (masked::supported) {
      if (n == 1)
        *p = first();  // a masked store is slow to read back
      else
        masked::store(p, n, v);
    } else {
      alignas(64) T padded[width];
      store(padded);
      for (std::size_t i = 0; i < n && i < width; ++i) p[i] = padded[i];
    }
  }
  GRADUS_INLINE T first() const { return v[0]; }
  GRADUS_INLINE T operator[](std::size_t i) const { return v[i]; }
  GRADUS_INLINE words bits() const { return words(reinterpret_cast<typename words::vector>(v)); }
  static GRADUS_INLINE vector_pack from(words w) { return reinterpret_cast<reg>(w.v); }
  GRADUS_INLINE reg raw() const { return v; }

  friend GRADUS_INLINE vector_pack operator+(vector_pack a, vector_pack b) { return reg(a.v + b.v); }
  friend GRADUS_INLINE vector_pack operator-(vector_pack a, vector_pack b) { return reg(a.v - b.v); }
  friend GRADUS_INLINE vector_pack operator*(vector_pack a, vector_pack b) { return simd::product(a.v, b.v); }
  friend GRADUS_INLINE vector_pack operator/(vector_pack a, vector_pack b) { return reg(a.v / b.v); }
  friend GRADUS_INLINE vector_pack operator-(vector_pack a) { return reg(-a.v); }
  friend GRADUS_INLINE mask operator<(vector_pack a, vector_pack b) { return mask::less(a.v, b.v); }
  friend GRADUS_INLINE mask operator<=(vector_pack a, vector_pack b) { return mask::at_most(a.v, b.v); }
  friend GRADUS_INLINE mask operator>(vector_pack a, vector_pack b) { return mask::less(b.v, a.v); }
  friend GRADUS_INLINE mask operator>=(vector_pack a, vector_pack b) { return mask::at_most(b.v, a.v); }
  friend GRADUS_INLINE mask operator==(vector_pack a, vector_pack b) { return mask::equal(a.v, b.v); }
  friend GRADUS_INLINE mask operator!=(vector_pack a, vector_pack b) { return mask::different(a.v, b.v); }
  friend GRADUS_INLINE vector_pack select(mask m, vector_pack a, vector_pack b) { return mask::select(m, a.v, b.v); }
  friend GRADUS_INLINE vector_pack min(vector_pack a, vector_pack b) { return simd::least(a.v, b.v); }
  friend GRADUS_INLINE vector_pack max(vector_pack a, vector_pack b) { return simd::most(a.v, b.v); }
  friend GRADUS_INLINE vector_pack sqrt(vector_pack a) {
#if GRADUS_ESTIMATES
    if constexpr (estimated<T, A>) return simd::estimated_root(a.v);
#endif
    return simd::root(a.v);
  }
  friend GRADUS_INLINE vector_pack fma(vector_pack a, vector_pack b, vector_pack c) {
    if constexpr (A::fuses && simd::has_fma<T>)
      return simd::fused(a.v, b.v, c.v);
    else
      return a * b + c;
  }

private:
  struct [[gnu::packed, gnu::may_alias]] anywhere {  // a register in memory, aligned or not
    reg r;
  };
};

template <class T, class A>
using pack = vector_pack<T, A, simd::arch>;

GRADUS_INLINE auto both(const auto& a, const auto& b) { return a && b; }
GRADUS_INLINE auto either(const auto& a, const auto& b) { return a || b; }
#else
template <class T, class A>
using pack = lane<T, A>;

GRADUS_INLINE constexpr bool both(bool a, bool b) { return a && b; }
GRADUS_INLINE constexpr bool either(bool a, bool b) { return a || b; }
#endif
}  // namespace detail

template <class N>
concept number = requires(N x, typename N::value_type* p) {
  typename N::words;
  { N::width } -> std::convertible_to<std::size_t>;
  { fma(x, x, x) } -> std::same_as<N>;
  { select(x < x, x, x) } -> std::same_as<N>;
  { N::load(p) } -> std::same_as<N>;
};

namespace detail {
template <number N>
inline constexpr bool is_double = sizeof(typename N::value_type) == 8;
template <number N>
inline constexpr typename N::word sign_bit = typename N::word{1} << (sizeof(typename N::value_type) * 8 - 1);
}  // namespace detail

template <number N>
GRADUS_INLINE N abs(N x) {
  return N::from(x.bits() & typename N::words(~detail::sign_bit<N>));
}
// Returns the magnitude of x with the sign of s (a zero or a NaN has a sign too).
template <number N>
GRADUS_INLINE N copysign(N x, N s) {
  using words = typename N::words;
  return N::from((x.bits() & words(~detail::sign_bit<N>)) | (s.bits() & words(detail::sign_bit<N>)));
}
// Returns -1, 0 or 1; a zero and a NaN give themselves.
template <number N>
GRADUS_INLINE N sign(N x) {
  return select(x > N(0), N(1), select(x < N(0), N(-1), x));
}
// Rounds to the nearest integer, halves to even; the sign of a zero is kept.
template <number N>
GRADUS_INLINE N round(N x) {
  const N magic(detail::is_double<N> ? typename N::value_type(0x1p52) : typename N::value_type(0x1p23));
  const N a = abs(x);
  return select(a < magic, copysign((a + magic) - magic, x), x);
}
template <number N>
GRADUS_INLINE N floor(N x) {
  const N r = round(x);
  return copysign(select(r > x, r - N(1), r), x);
}

}  // namespace gradus
