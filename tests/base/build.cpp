#include "gradus/base/build.hpp"

#include <string_view>
#include <type_traits>

#include "doctest/doctest.h"
#include "gradus/base/error.hpp"
#include "gradus/cpu/simd.hpp"

#define NAME_OF(x) NAME_OF_IT(x)
#define NAME_OF_IT(x) #x

TEST_CASE("the build's name says what the compiler was told") {
  const std::string_view name = NAME_OF(GRADUS_BUILD);
  const auto says = [&](std::string_view part) { return name.find(part) != name.npos; };
#if !GRADUS_SIMD
  CHECK(name.starts_with("scalar"));
#elif defined(__AVX512DQ__)
  CHECK(name.starts_with("avx512dq"));
#elif defined(__AVX512F__)
  CHECK((name.starts_with("avx512") && !name.starts_with("avx512dq")));
#elif defined(__AVX2__)
  CHECK(name.starts_with("avx2"));
#elif defined(__aarch64__)
  CHECK(name.starts_with("neon"));
#endif
#if defined(__aarch64__)
  CHECK_FALSE(says("_fma"));
#elif !defined(__FMA4__)
  CHECK(says("_fma") == (gradus::simd::has_fma<float> || gradus::simd::has_fma<double>));
  CHECK(says("_fmaf") == (gradus::simd::has_fma<float> && !gradus::simd::has_fma<double>));
#endif
#if defined(GRADUS_COMPILED)
  CHECK(says("_compiled"));
#else
  CHECK_FALSE(says("_compiled"));
#endif
#if defined(GRADUS_ZLIB)
  CHECK(says("_zlib"));
#else
  CHECK_FALSE(says("_zlib"));
#endif
  CHECK_FALSE(says("_noexceptions"));
}

// A program neither writes nor sees the name: it finds everything in gradus, and may open gradus itself.
namespace gradus::detail {
template <class T>
struct of_the_program : std::is_same<T, status> {};
}  // namespace gradus::detail
using item = gradus::detail::message_piece;
static_assert(std::is_same_v<item, gradus::GRADUS_BUILD::detail::message_piece>);
static_assert(gradus::detail::of_the_program<gradus::status>::value);
