// This header defines the machine's vector registers, with or without xsimd, and the operations of one vector register
// that formulas need.
//
// Registers are as wide as the compiler's options allow. With GRADUS_XSIMD, xsimd (Debian's 8.1 up to 14) says which
// they are; without it, the compiler's own macros do. They are the same ones. xsimd's functions are not included, which
// saves half a second of every compilation. The operations of registers are written here, as vector arithmetic where
// the compiler has it. So rounding is under our control: xsimd 8.1 has no fused multiply-add for AVX-512, and
// approximates division and square root of float on ARM. min and max mean `a < b ? a : b` and `a > b ? a : b`
// everywhere, as on x86 (ARM's own treat NaN differently).
//
// GRADUS_SIMD is 0, and numbers are then one lane wide (cpu/number.hpp), where no register rounds as IEEE 754 says
// (32-bit NEON flushes subnormals and has no division; Cortex-M has no vector registers; those of RISC-V have no width
// when compiling). Define it as 0 to have one lane elsewhere.
#pragma once

#include "../base/build.hpp"  // GRADUS_SIMD

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#if GRADUS_SIMD && defined(GRADUS_XSIMD)
#include <xsimd/config/xsimd_arch.hpp>
#elif GRADUS_SIMD && defined(__aarch64__)
#include <arm_neon.h>
#elif GRADUS_SIMD && defined(__AVX__)
#include <immintrin.h>
#elif GRADUS_SIMD
#include <emmintrin.h>  // SSE2 alone: the other header costs half as much as the whole standard library
#endif

// Inlining is forced: a formula must become one loop body, and no symbol of one architecture may stand in for
// another's. A build without optimization that has one architecture compiles several times faster with GRADUS_INLINE
// defined as `inline`.
#if !defined(GRADUS_INLINE)
#define GRADUS_INLINE __attribute__((always_inline)) inline
#endif

namespace gradus::inline GRADUS_BUILD::simd {

// This is true where a fused multiply-add is one instruction, for T and for registers of T alike.
template <class T>
inline constexpr bool has_fma =
#if defined(__FMA__) || defined(__aarch64__)
    true;
#elif defined(__x86_64__) || defined(__i386__)
    false;
#elif defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
    true;
#elif defined(__FP_FAST_FMAF)
    sizeof(T) == sizeof(float);
#else
    false;
#endif

#if GRADUS_SIMD

#if defined(GRADUS_XSIMD)
#if defined(__aarch64__)
using arch = xsimd::neon64;
#else
using arch = xsimd::default_arch;
#endif
template <class T, class Arch = arch>
using register_of = typename xsimd::types::simd_register<T, Arch>::register_type;
#else
struct arch {
#if defined(__aarch64__)
  using of_float = float32x4_t;
  using of_double = float64x2_t;
#elif defined(__AVX512F__)
  using of_float = __m512;
  using of_double = __m512d;
#elif defined(__AVX__)
  using of_float = __m256;
  using of_double = __m256d;
#else
  using of_float = __m128;
  using of_double = __m128d;
#endif
};
template <class T, class Arch>
struct register_type;  // as a template argument, a register type would lose its attributes
template <class Arch>
struct register_type<float, Arch> {
  using type = typename Arch::of_float;
};
template <class Arch>
struct register_type<double, Arch> {
  using type = typename Arch::of_double;
};
template <class T, class Arch = arch>
using register_of = typename register_type<T, Arch>::type;
#endif

// This is a vector of unsigned integers, one for each lane of a register of floating-point numbers. (Each type is
// spelled out: g++ 12 loses the attribute where the size depends on a template argument.)
template <class Word, std::size_t Bytes>
struct word_vector;
template <>
struct word_vector<std::uint32_t, 16> {
  typedef std::uint32_t type __attribute__((vector_size(16)));
};
template <>
struct word_vector<std::uint32_t, 32> {
  typedef std::uint32_t type __attribute__((vector_size(32)));
};
template <>
struct word_vector<std::uint32_t, 64> {
  typedef std::uint32_t type __attribute__((vector_size(64)));
};
template <>
struct word_vector<std::uint64_t, 16> {
  typedef std::uint64_t type __attribute__((vector_size(16)));
};
template <>
struct word_vector<std::uint64_t, 32> {
  typedef std::uint64_t type __attribute__((vector_size(32)));
};
template <>
struct word_vector<std::uint64_t, 64> {
  typedef std::uint64_t type __attribute__((vector_size(64)));
};
template <class Word, std::size_t Bytes>
struct words {
  using vector = typename word_vector<Word, Bytes>::type;
  vector v;

  words() = default;
  GRADUS_INLINE words(Word x) : v(vector{} + x) {}
  GRADUS_INLINE explicit words(vector x) : v(x) {}
  friend GRADUS_INLINE words operator+(words a, words b) { return words(a.v + b.v); }
  friend GRADUS_INLINE words operator-(words a, words b) { return words(a.v - b.v); }
  friend GRADUS_INLINE words operator&(words a, words b) { return words(a.v & b.v); }
  friend GRADUS_INLINE words operator|(words a, words b) { return words(a.v | b.v); }
  friend GRADUS_INLINE words operator^(words a, words b) { return words(a.v ^ b.v); }
  friend GRADUS_INLINE words operator<<(words a, int n) { return words(a.v << n); }
  friend GRADUS_INLINE words operator>>(words a, int n) { return words(a.v >> n); }
};

// This mask says in which lanes a comparison of two registers holds. It is words of ones or zeros where comparisons
// give them, else one bit per lane.
template <class Word, std::size_t Bytes>
struct mask {
  using vector = typename word_vector<Word, Bytes>::type;
  vector v;

  friend GRADUS_INLINE mask operator&&(mask a, mask b) { return {a.v & b.v}; }
  friend GRADUS_INLINE mask operator||(mask a, mask b) { return {a.v | b.v}; }
  template <class R>
  static GRADUS_INLINE mask less(R a, R b) {
    return {reinterpret_cast<vector>(a < b)};
  }
  template <class R>
  static GRADUS_INLINE mask at_most(R a, R b) {
    return {reinterpret_cast<vector>(a <= b)};
  }
  template <class R>
  static GRADUS_INLINE mask equal(R a, R b) {
    return {reinterpret_cast<vector>(a == b)};
  }
  template <class R>
  static GRADUS_INLINE mask different(R a, R b) {
    return {reinterpret_cast<vector>(a != b)};
  }
  template <class R>
  static GRADUS_INLINE R select(mask m, R a, R b) {
    return reinterpret_cast<R>((m.v & reinterpret_cast<vector>(a)) | (~m.v & reinterpret_cast<vector>(b)));
  }
};
#if defined(__AVX512F__)
template <>
struct mask<std::uint32_t, 64> {
  __mmask16 v;

  friend GRADUS_INLINE mask operator&&(mask a, mask b) { return {_mm512_kand(a.v, b.v)}; }
  friend GRADUS_INLINE mask operator||(mask a, mask b) { return {_mm512_kor(a.v, b.v)}; }
  static GRADUS_INLINE mask less(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)}; }
  static GRADUS_INLINE mask at_most(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)}; }
  static GRADUS_INLINE mask equal(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)}; }
  static GRADUS_INLINE mask different(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ)}; }
  static GRADUS_INLINE __m512 select(mask m, __m512 a, __m512 b) { return _mm512_mask_blend_ps(m.v, b, a); }
};
template <>
struct mask<std::uint64_t, 64> {
  __mmask8 v;

  friend GRADUS_INLINE mask operator&&(mask a, mask b) { return {static_cast<__mmask8>(a.v & b.v)}; }
  friend GRADUS_INLINE mask operator||(mask a, mask b) { return {static_cast<__mmask8>(a.v | b.v)}; }
  static GRADUS_INLINE mask less(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)}; }
  static GRADUS_INLINE mask at_most(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_LE_OQ)}; }
  static GRADUS_INLINE mask equal(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)}; }
  static GRADUS_INLINE mask different(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ)}; }
  static GRADUS_INLINE __m512d select(mask m, __m512d a, __m512d b) { return _mm512_mask_blend_pd(m.v, b, a); }
};
#endif

// Returns a product that no later sum may be fused with. g++ contracts a * b + c into one rounding even through
// intrinsics; clang does so only within one expression. The empty asm hides the product from g++;
// __builtin_assoc_barrier would say it better, but g++ 12 takes a vector apart, number by number, to pass it through.
template <class R>
GRADUS_INLINE R product(R a, R b) {
#if defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  R r = a * b;
#if defined(__FMA__) || defined(__FMA4__) || defined(__AVX512F__)
#if defined(__AVX512F__)
  asm("" : "+v"(r));
#else
  asm("" : "+x"(r));
#endif
#elif defined(__aarch64__)
  asm("" : "+w"(r));
#endif
  return r;
#endif
}

#if defined(__aarch64__)
GRADUS_INLINE float32x4_t fused(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
GRADUS_INLINE float64x2_t fused(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmaq_f64(c, a, b); }
GRADUS_INLINE float32x4_t root(float32x4_t a) { return vsqrtq_f32(a); }
GRADUS_INLINE float64x2_t root(float64x2_t a) { return vsqrtq_f64(a); }
GRADUS_INLINE float32x4_t least(float32x4_t a, float32x4_t b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
GRADUS_INLINE float64x2_t least(float64x2_t a, float64x2_t b) { return vbslq_f64(vcltq_f64(a, b), a, b); }
GRADUS_INLINE float32x4_t most(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
GRADUS_INLINE float64x2_t most(float64x2_t a, float64x2_t b) { return vbslq_f64(vcgtq_f64(a, b), a, b); }
#else
GRADUS_INLINE __m128 root(__m128 a) { return _mm_sqrt_ps(a); }
GRADUS_INLINE __m128d root(__m128d a) { return _mm_sqrt_pd(a); }
GRADUS_INLINE __m128 least(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
GRADUS_INLINE __m128d least(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
GRADUS_INLINE __m128 most(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
GRADUS_INLINE __m128d most(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
#if defined(__AVX__)
GRADUS_INLINE __m256 root(__m256 a) { return _mm256_sqrt_ps(a); }
GRADUS_INLINE __m256d root(__m256d a) { return _mm256_sqrt_pd(a); }
GRADUS_INLINE __m256 least(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
GRADUS_INLINE __m256d least(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
GRADUS_INLINE __m256 most(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
GRADUS_INLINE __m256d most(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
#endif
#if defined(__AVX512F__)
// These are the masked forms, because g++ 12 warns of an uninitialized register inside the plain ones.
GRADUS_INLINE __m512 root(__m512 a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
GRADUS_INLINE __m512d root(__m512d a) { return _mm512_maskz_sqrt_pd(0xff, a); }
GRADUS_INLINE __m512 least(__m512 a, __m512 b) { return _mm512_maskz_min_ps(0xffff, a, b); }
GRADUS_INLINE __m512d least(__m512d a, __m512d b) { return _mm512_maskz_min_pd(0xff, a, b); }
GRADUS_INLINE __m512 most(__m512 a, __m512 b) { return _mm512_maskz_max_ps(0xffff, a, b); }
GRADUS_INLINE __m512d most(__m512d a, __m512d b) { return _mm512_maskz_max_pd(0xff, a, b); }
#endif
#if defined(__FMA__)
GRADUS_INLINE __m128 fused(__m128 a, __m128 b, __m128 c) { return _mm_fmadd_ps(a, b, c); }
GRADUS_INLINE __m128d fused(__m128d a, __m128d b, __m128d c) { return _mm_fmadd_pd(a, b, c); }
GRADUS_INLINE __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
GRADUS_INLINE __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#if defined(__AVX512F__)
GRADUS_INLINE __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
GRADUS_INLINE __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#endif
#else
// This is never called, because has_fma is false.
template <class R>
R fused(R a, R b, R c) = delete;
#endif
#endif

// This loads the first n numbers from memory (all of a register where n is larger), with the other lanes as given or 0,
// and stores the first n back. `supported` is true where the machine masks memory accesses; elsewhere they go through a
// padded copy (cpu/number.hpp).
template <class T, std::size_t Bytes>
struct masked {
  static constexpr bool supported = false;
};
#if defined(__AVX512F__)
template <>
struct masked<float, 64> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __mmask16 first(std::size_t n) {
    return n >= 16 ? __mmask16(0xffff) : static_cast<__mmask16>((1u << n) - 1u);
  }
  static GRADUS_INLINE __m512 load(const float* p, std::size_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static GRADUS_INLINE __m512 load(const float* p, std::size_t n, float rest) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(rest), first(n), p);
  }
  static GRADUS_INLINE void store(float* p, std::size_t n, __m512 r) { _mm512_mask_storeu_ps(p, first(n), r); }
};
template <>
struct masked<double, 64> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __mmask8 first(std::size_t n) {
    return n >= 8 ? __mmask8(0xff) : static_cast<__mmask8>((1u << n) - 1u);
  }
  static GRADUS_INLINE __m512d load(const double* p, std::size_t n) { return _mm512_maskz_loadu_pd(first(n), p); }
  static GRADUS_INLINE __m512d load(const double* p, std::size_t n, double rest) {
    return _mm512_mask_loadu_pd(_mm512_set1_pd(rest), first(n), p);
  }
  static GRADUS_INLINE void store(double* p, std::size_t n, __m512d r) { _mm512_mask_storeu_pd(p, first(n), r); }
};
#endif
#if defined(__AVX__)
// A mask of n lanes of ones is read from the middle of these ones and zeros.
inline constexpr std::int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
template <>
struct masked<float, 32> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __m256i first(std::size_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones_then_zeros + 8 - (n < 8 ? n : 8)));
  }
  static GRADUS_INLINE __m256 load(const float* p, std::size_t n) { return _mm256_maskload_ps(p, first(n)); }
  static GRADUS_INLINE __m256 load(const float* p, std::size_t n, float rest) {
    const __m256i m = first(n);
    return _mm256_blendv_ps(_mm256_set1_ps(rest), _mm256_maskload_ps(p, m), _mm256_castsi256_ps(m));
  }
  // AMD's processors up to Zen 4 take a dozen cycles for a masked store of this width.
  static GRADUS_INLINE void store(float* p, std::size_t n, __m256 r) {
    if (n >= 8) return _mm256_storeu_ps(p, r);
    __m128 part = _mm256_castps256_ps128(r);
    if ((n & 4) != 0) _mm_storeu_ps(p, part), part = _mm256_extractf128_ps(r, 1), p += 4;
    if ((n & 2) != 0) _mm_storel_pi(reinterpret_cast<__m64*>(p), part), part = _mm_movehl_ps(part, part), p += 2;
    if ((n & 1) != 0) _mm_store_ss(p, part);
  }
};
template <>
struct masked<double, 32> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __m256i first(std::size_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones_then_zeros + 8 - 2 * (n < 4 ? n : 4)));
  }
  static GRADUS_INLINE __m256d load(const double* p, std::size_t n) { return _mm256_maskload_pd(p, first(n)); }
  static GRADUS_INLINE __m256d load(const double* p, std::size_t n, double rest) {
    const __m256i m = first(n);
    return _mm256_blendv_pd(_mm256_set1_pd(rest), _mm256_maskload_pd(p, m), _mm256_castsi256_pd(m));
  }
  static GRADUS_INLINE void store(double* p, std::size_t n, __m256d r) {
    if (n >= 4) return _mm256_storeu_pd(p, r);
    __m128d part = _mm256_castpd256_pd128(r);
    if ((n & 2) != 0) _mm_storeu_pd(p, part), part = _mm256_extractf128_pd(r, 1), p += 2;
    if ((n & 1) != 0) _mm_store_sd(p, part);
  }
};
#endif

// This returns a register whose lane j is lane i[j] of r; it is `supported` where that is one instruction.
template <class T, std::size_t Bytes>
struct picked {
  static constexpr bool supported = false;
};
#if defined(__AVX512F__)
template <>
struct picked<float, 64> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __m512 from(__m512 r, words<std::uint32_t, 64> i) {
    return _mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(i.v), r);
  }
};
template <>
struct picked<double, 64> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __m512d from(__m512d r, words<std::uint64_t, 64> i) {
    return _mm512_maskz_permutexvar_pd(0xff, reinterpret_cast<__m512i>(i.v), r);
  }
};
#endif
#if defined(__AVX2__)
template <>
struct picked<float, 32> {
  static constexpr bool supported = true;
  static GRADUS_INLINE __m256 from(__m256 r, words<std::uint32_t, 32> i) {
    return _mm256_permutevar8x32_ps(r, reinterpret_cast<__m256i>(i.v));
  }
};
#endif

// These functions move lanes within and between registers of W numbers.
#if __has_builtin(__builtin_shufflevector)
#define GRADUS_SHUFFLES 1
// Returns r rotated: lane i + By, counted around the end, comes to lane i.
template <std::size_t By, class R, std::size_t... I>
GRADUS_INLINE R rotated(R r, std::index_sequence<I...>) {
  return __builtin_shufflevector(r, r, ((I + By) % sizeof...(I))...);
}
// Transposes rows to columns: exchanges the off-diagonal quadrants, then those of each quadrant.
template <std::size_t H, class R, std::size_t... I>
GRADUS_INLINE void transpose(R (&r)[sizeof...(I)], std::index_sequence<I...> places) {
  constexpr std::size_t W = sizeof...(I);
  for (std::size_t i = 0; i < W; ++i)
    if ((i & H) == 0) {
      const R a = r[i], b = r[i + H];
      r[i] = __builtin_shufflevector(a, b, ((I & H) != 0 ? W + I - H : I)...);
      r[i + H] = __builtin_shufflevector(a, b, ((I & H) != 0 ? W + I : I + H)...);
    }
  if constexpr (H > 1) transpose<H / 2>(r, places);
}
#else
#define GRADUS_SHUFFLES 0
#endif

// These compute square roots from the machine's 14-bit estimate and one Newton step, for the arithmetic `approximate`:
// within 1 unit in the last place, with zeros, infinities and NaN as IEEE 754 has them. A register and one number of it
// have the same result.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define GRADUS_ESTIMATES 1
GRADUS_INLINE __m512 estimated_root(__m512 x) {
  const __m512 y = _mm512_maskz_rsqrt14_ps(0xffff, x), half = _mm512_set1_ps(0.5f);
  const __m512 s = product(x, y), error = _mm512_fnmadd_ps(s, product(y, half), half);
  return _mm512_mask_blend_ps(_mm512_fpclass_ps_mask(x, 0x0e), _mm512_fmadd_ps(s, error, s), x);  // 0, -0, inf
}
GRADUS_INLINE float estimated_root(float x) { return estimated_root(_mm512_set1_ps(x))[0]; }
#else
#define GRADUS_ESTIMATES 0
#endif

#else
#define GRADUS_ESTIMATES 0
#endif  // GRADUS_SIMD

}  // namespace gradus::simd
