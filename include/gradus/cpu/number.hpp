// Numbers that formulas are written on, and the sums that have one order everywhere. The rules behind this file are in
// docs/arithmetic.md.
//
// A formula is a template on a number N. `lane<T, A>` is one T; `pack<T, A>` is as many as a vector register holds
// (one, where there is no SIMD). Lane and pack give the same bits for the same formula, whatever the compiler
// optimizes:
//
//   template <class N> N relu(N x) { return max(x, N(0)); }
//
// T is float or double; A is `fast` or `portable`. What a number can do: + - * / and unary -, comparisons (giving a
// mask), and, as functions found by their argument: fma sqrt abs copysign min max select both either round floor.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../base/contract.hpp"
#include "../base/math.hpp"
#include "simd.hpp"

namespace gradus {

// How much the result may depend on the machine. `fast` uses the fused multiply-add where the machine has one;
// `portable` never does, and so gives the same bits on every IEEE 754 machine.
struct fast {
  using policy_for = kind::arithmetic;
  static constexpr bool fuses = true;
};
struct portable {
  using policy_for = kind::arithmetic;
  static constexpr bool fuses = false;
};
// As `fast`, with square roots of float from the machine's estimate and a Newton step (AVX-512: within 1 unit in the
// last place, and Adam in 0.7 of the time; elsewhere exact). Lane and pack agree on one machine; another one may
// differ.
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
}  // namespace detail

template <std::floating_point T, arithmetic A>
struct lane {
  using value_type = T;
  using policy = A;
  using word = typename detail::word_of<T>::type;  // the bits of a T
  using words = word;                              // the bits of a number
  using mask = bool;
  static constexpr std::size_t width = 1;

  T v;

  lane() = default;
  GRADUS_INLINE constexpr lane(T x) : v(x) {}
  // A constant of a formula, given in double.
  static GRADUS_INLINE constexpr lane of(double x) { return lane(static_cast<T>(x)); }
  static GRADUS_INLINE constexpr lane load(const T* p) { return *p; }
  GRADUS_INLINE constexpr void store(T* p) const { *p = v; }
  // The first n of `width`; the others read as `rest`, and are not written.
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
    if constexpr (detail::estimated<T, A>) return simd::estimated_root(a.v);
#endif
    if constexpr (sizeof(T) == sizeof(float))
      return __builtin_sqrtf(a.v);
    else
      return __builtin_sqrt(a.v);
  }
  // a * b + c: one rounding where A is `fast` and the machine fuses, two otherwise.
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
namespace detail {
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
  GRADUS_INLINE vector_pack(T x) : v(x - reg{}) {}  // x - 0 is x, also where it is -0: no operation is left of it
  GRADUS_INLINE vector_pack(reg r) : v(r) {}
  static GRADUS_INLINE vector_pack of(double x) { return vector_pack(static_cast<T>(x)); }
  static GRADUS_INLINE vector_pack load(const T* p) { return reinterpret_cast<const anywhere*>(p)->r; }
  GRADUS_INLINE void store(T* p) const { reinterpret_cast<anywhere*>(p)->r = v; }
  static GRADUS_INLINE vector_pack load_partial(const T* p, std::size_t n, T rest = T(0)) {
    if constexpr (masked::supported) {
      if (n != 1) return reg(masked::load(p, n, rest));
      reg r = vector_pack(rest).v;  // one that was just stored is quicker to read alone
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
  GRADUS_INLINE words bits() const { return words((typename words::vector)v); }
  static GRADUS_INLINE vector_pack from(words w) { return (reg)w.v; }
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
  struct [[gnu::packed, gnu::may_alias]] anywhere {  // in memory, aligned or not
    reg r;
  };
};
}  // namespace detail

template <class T, class A>
using pack = detail::vector_pack<T, A, simd::arch>;

GRADUS_INLINE auto both(const auto& a, const auto& b) { return a && b; }
GRADUS_INLINE auto either(const auto& a, const auto& b) { return a || b; }
#else
template <class T, class A>
using pack = lane<T, A>;

GRADUS_INLINE constexpr bool both(bool a, bool b) { return a && b; }
GRADUS_INLINE constexpr bool either(bool a, bool b) { return a || b; }
#endif

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
// The magnitude of x with the sign of s (a zero or a NaN has a sign too).
template <number N>
GRADUS_INLINE N copysign(N x, N s) {
  using words = typename N::words;
  return N::from((x.bits() & words(~detail::sign_bit<N>)) | (s.bits() & words(detail::sign_bit<N>)));
}
// -1, 0 or 1; a zero and a NaN give themselves.
template <number N>
GRADUS_INLINE N sign(N x) {
  return select(x > N(0), N(1), select(x < N(0), N(-1), x));
}
// To the nearest integer, halves to even; the sign of a zero is kept.
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

// Sixteen lanes that sums run on, whatever the register holds: lane j takes x[j], x[j + 16], ... and the lanes are then
// added in halves: j and j + 8, j and j + 4, j and j + 2, 0 and 1.
template <class N>
struct block {
  static constexpr std::size_t lanes = 16, packs = lanes / N::width;
  static_assert(lanes % N::width == 0, "gradus: a register holds more than 16 numbers; give block more lanes");
  using T = typename N::value_type;

  N at[packs];

  static GRADUS_INLINE block fill(T x) {
    block b;
    for (std::size_t i = 0; i < packs; ++i) b.at[i] = N(x);
    return b;
  }
  static GRADUS_INLINE block load(const T* p) {
    block b;
    for (std::size_t i = 0; i < packs; ++i) b.at[i] = N::load(p + i * N::width);
    return b;
  }
  static GRADUS_INLINE block load_partial(const T* p, std::size_t n, T rest = T(0)) {
    block b;
    for (std::size_t i = 0; i < packs; ++i)
      b.at[i] = i * N::width < n ? N::load_partial(p + i * N::width, n - i * N::width, rest) : N(rest);
    return b;
  }
  // The tree over the lanes with any operation on two numbers.
  template <class Operation>
  GRADUS_INLINE T fold(Operation op) const {
    N half[packs];
    for (std::size_t i = 0; i < packs; ++i) half[i] = at[i];
    std::size_t left = packs;
    for (; left > 1; left /= 2)
      for (std::size_t i = 0; i < left / 2; ++i) half[i] = op(half[i], half[i + left / 2]);
#if GRADUS_SIMD && GRADUS_SHUFFLES
    if constexpr (N::width > 1) return halve<N::width / 2>(half[0], op).first();
#endif
    alignas(64) T last[N::width];
    half[0].store(last);
    using one = lane<T, typename N::policy>;
    for (std::size_t n = N::width / 2; n >= 1; n /= 2)
      for (std::size_t i = 0; i < n; ++i) last[i] = op(one(last[i]), one(last[i + n])).v;
    return last[0];
  }

private:
#if GRADUS_SIMD && GRADUS_SHUFFLES
  template <std::size_t Left, class Operation>
  static GRADUS_INLINE N halve(N x, Operation op) {
    const N y = op(x, N(typename N::batch(simd::rotated<Left>(x.raw(), std::make_index_sequence<N::width>{}))));
    if constexpr (Left > 1)
      return halve<Left / 2>(y, op);
    else
      return y;
  }
#endif
};

// A reduction over n places: `step(accumulator, place, n)` adds 16 places (or fewer at the end) into a block, and the
// blocks of 4096 places each are combined in order. So the tree depends on n alone.
inline constexpr std::size_t reduction_chunk = 4096;

template <class N, class Step, class Operation>
GRADUS_INLINE typename N::value_type reduce(std::size_t n, typename N::value_type zero, Step step, Operation op) {
  using one = lane<typename N::value_type, typename N::policy>;
  one total(zero);
  std::size_t i = 0;
  do {
    auto acc = block<N>::fill(zero);
    const std::size_t end = n - i < reduction_chunk ? n : i + reduction_chunk;
    for (; i + 16 <= end; i += 16) acc = step(acc, i, std::size_t{16});
    if (i < end) acc = step(acc, i, end - i);
    i = end;
    const one part(acc.fold(op));
    total = i <= reduction_chunk ? part : op(total, part);
  } while (i < n);
  return total.v;
}

namespace detail {
template <class N, class T>
GRADUS_INLINE block<N> sixteen(const T* x, std::size_t n, T rest = T(0)) {
  return n == 16 ? block<N>::load(x) : block<N>::load_partial(x, n, rest);
}
struct plus {
  GRADUS_INLINE auto operator()(auto a, auto b) const { return a + b; }
};
struct larger {
  GRADUS_INLINE auto operator()(auto a, auto b) const { return max(a, b); }
};
}  // namespace detail

template <class A, class T, class N = pack<T, A>>
T sum(const T* x, std::size_t n) {
  return reduce<N>(
      n, T(0),
      [x](block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = acc.at[j] + b.at[j];
        return acc;
      },
      detail::plus{});
}
template <class A, class T, class N = pack<T, A>>
T dot(const T* x, const T* y, std::size_t n) {
  return reduce<N>(
      n, T(0),
      [x, y](block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k), c = detail::sixteen<N>(y + i, k);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = fma(b.at[j], c.at[j], acc.at[j]);
        return acc;
      },
      detail::plus{});
}
template <class A, class T, class N = pack<T, A>>
T sum_of_squares(const T* x, std::size_t n) {
  return dot<A, T, N>(x, x, n);
}
// -inf for none. A NaN is passed over or kept depending on its place; the place alone decides.
template <class A, class T, class N = pack<T, A>>
T maximum(const T* x, std::size_t n) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  return reduce<N>(
      n, none,
      [x](block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k, none);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = max(acc.at[j], b.at[j]);
        return acc;
      },
      detail::larger{});
}

}  // namespace gradus
