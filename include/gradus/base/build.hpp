// This header gives the build of the library a name, made of the options that change the meaning of the code.
// Everything is in an inline namespace of that name (`gradus::inline GRADUS_BUILD`), which a program does not write:
// `gradus::adam` finds it. Files that were compiled with different options have different types, so they may be linked
// into one program. A function that passes an object from one such file to another does not link, and the name of the
// missing symbol shows why. Only the errors (base/error.hpp) are the same types in every build, so one part of a
// program catches the errors of another.
//
//   undefined reference to `train(gradus::avx2_fma_zlib_v0_6_0::trainer<...>&)'
//
// is the symbol that the caller needs; the callee defines it with gradus::sse2_v0_6_0.
//
// So set the options below for a whole build, not on one target alone; gradus::compiled has the flags of the build.
//
// The name is made of
//   sse2, sse42, avx, avx2, avx512, avx512dq, neon, scalar   registers (cpu/simd.hpp describes scalar)
//   _fma, _fmaf, _fma4   products and sums are fused: of all numbers, of float alone, by AMD's instructions; on a
//   64-bit
//                    ARM they always are, so that the name does not say it
//   _fastmath        -ffast-math or a part of it
//   _noexceptions    -fno-exceptions
//   _zlib, _pb, _stb, _xsimd   optional libraries (base/optional_library.hpp)
//   _compiled        the bodies come from gradus::compiled (base/body.hpp)
//   _v0_6_0          the version, since parts of a program may use different versions
#pragma once

#include "foreign_macros.hpp"
#include "version.hpp"

#if defined(GRADUS_ONE_FILE)
#error \
    "gradus: the library in one file and a header of the folder gradus/ are in one source file; include only one of them"
#include <gradus: the error above says why nothing more is compiled>
#endif

// -DGRADUS_ZLIB=0 counts as not defined.
#if defined(GRADUS_ZLIB) && (1 - GRADUS_ZLIB - 1) == 0
#undef GRADUS_ZLIB
#endif
#if defined(GRADUS_PROTOZERO) && (1 - GRADUS_PROTOZERO - 1) == 0
#undef GRADUS_PROTOZERO
#endif
#if defined(GRADUS_STB) && (1 - GRADUS_STB - 1) == 0
#undef GRADUS_STB
#endif
#if defined(GRADUS_XSIMD) && (1 - GRADUS_XSIMD - 1) == 0
#undef GRADUS_XSIMD
#endif

// 1 if kernels compute with whole registers, 0 if with one number at a time (cpu/simd.hpp).
#if !defined(GRADUS_SIMD)
#if defined(__SSE2__) || defined(__aarch64__)
#define GRADUS_SIMD 1
#else
#define GRADUS_SIMD 0
#endif
#endif

#if !GRADUS_SIMD
#define GRADUS_BUILD_WIDTH scalar
#elif defined(__aarch64__)
#define GRADUS_BUILD_WIDTH neon
#elif defined(__AVX512F__) && defined(__AVX512DQ__)
#define GRADUS_BUILD_WIDTH avx512dq
#elif defined(__AVX512F__)
#define GRADUS_BUILD_WIDTH avx512
#elif defined(__AVX2__)
#define GRADUS_BUILD_WIDTH avx2
#elif defined(__AVX__)
#define GRADUS_BUILD_WIDTH avx
#elif defined(__SSE4_2__)
#define GRADUS_BUILD_WIDTH sse42
#else
#define GRADUS_BUILD_WIDTH sse2
#endif
// What simd::has_fma says: on other machines than these, one type of number may have it and the other not.
#if defined(__aarch64__)
#define GRADUS_BUILD_FMA
#elif defined(__x86_64__) || defined(__i386__)
#if defined(__FMA__)
#define GRADUS_BUILD_FMA _fma
#elif defined(__FMA4__)
#define GRADUS_BUILD_FMA _fma4
#else
#define GRADUS_BUILD_FMA
#endif
#elif defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
#define GRADUS_BUILD_FMA _fma
#elif defined(__FP_FAST_FMAF)
#define GRADUS_BUILD_FMA _fmaf
#else
#define GRADUS_BUILD_FMA
#endif
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#define GRADUS_BUILD_MATH _fastmath
#else
#define GRADUS_BUILD_MATH
#endif
#if defined(__cpp_exceptions)
#define GRADUS_BUILD_EXCEPTIONS
#else
#define GRADUS_BUILD_EXCEPTIONS _noexceptions
#endif
#if defined(GRADUS_ZLIB)
#define GRADUS_BUILD_ZLIB _zlib
#else
#define GRADUS_BUILD_ZLIB
#endif
#if defined(GRADUS_PROTOZERO)
#define GRADUS_BUILD_PROTOZERO _pb
#else
#define GRADUS_BUILD_PROTOZERO
#endif
#if defined(GRADUS_STB)
#define GRADUS_BUILD_STB _stb
#else
#define GRADUS_BUILD_STB
#endif
#if defined(GRADUS_XSIMD)
#define GRADUS_BUILD_XSIMD _xsimd
#else
#define GRADUS_BUILD_XSIMD
#endif
#if defined(GRADUS_COMPILED)
#define GRADUS_BUILD_FORM _compiled
#else
#define GRADUS_BUILD_FORM
#endif
#define GRADUS_BUILD_JOIN_THEM(a, b, c, d, e, f, g, h, i, x, y, z) a##b##c##d##e##f##g##h##i##_v##x##_##y##_##z
#define GRADUS_BUILD_JOIN(...) GRADUS_BUILD_JOIN_THEM(__VA_ARGS__)
#define GRADUS_BUILD                                                                                  \
  GRADUS_BUILD_JOIN(GRADUS_BUILD_WIDTH, GRADUS_BUILD_FMA, GRADUS_BUILD_MATH, GRADUS_BUILD_EXCEPTIONS, \
                    GRADUS_BUILD_ZLIB, GRADUS_BUILD_PROTOZERO, GRADUS_BUILD_STB, GRADUS_BUILD_XSIMD,  \
                    GRADUS_BUILD_FORM, GRADUS_VERSION_MAJOR, GRADUS_VERSION_MINOR, GRADUS_VERSION_PATCH)

// If a file of a program leaves the bodies to gradus::compiled, it needs a gradus::compiled of the same build. Without
// one, the linker misses all functions that the file uses, and this symbol, whose name gives the reason.
#if defined(GRADUS_COMPILED)
namespace gradus::inline GRADUS_BUILD {
namespace detail {
extern const char this_file_needs_gradus_compiled_with_the_same_flags_and_macros;
[[gnu::used]] static const char* const compiled_with_the_same =
    &this_file_needs_gradus_compiled_with_the_same_flags_and_macros;
}  // namespace detail
}  // namespace gradus::inline GRADUS_BUILD
#endif
