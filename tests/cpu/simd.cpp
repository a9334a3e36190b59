// compiled with: -O3 -march=native
#include <gradus/cpu/simd.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace gradus;

#if GRADUS_SIMD
namespace {
// A register filled from and read back into memory.
template <class T>
struct filled {
  using reg = simd::register_of<T>;
  static constexpr std::size_t width = sizeof(reg) / sizeof(T);
  T at[width];
  reg all() const {
    reg r;
    std::memcpy(&r, at, sizeof r);
    return r;
  }
  explicit filled(reg r) { std::memcpy(at, &r, sizeof r); }
  template <class F>
    requires std::is_invocable_r_v<T, F, std::size_t>
  explicit filled(F f) {
    for (std::size_t i = 0; i < width; ++i) at[i] = f(i);
  }
};
template <class T>
void check() {
  const filled<T> a([](std::size_t i) { return static_cast<T>(1.1 * static_cast<double>(i + 1)); });
  const filled<T> b([](std::size_t i) {
    return i % 3 == 2 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(4) - static_cast<T>(i);
  });
  const filled<T> roots(simd::root(a.all())), products(simd::product(a.all(), a.all())),
      low(simd::least(a.all(), b.all())), high(simd::most(a.all(), b.all()));
  for (std::size_t i = 0; i < a.width; ++i) {
    CHECK(roots.at[i] == std::sqrt(a.at[i]));
    CHECK(products.at[i] == a.at[i] * a.at[i]);
    const T least = a.at[i] < b.at[i] ? a.at[i] : b.at[i], most = a.at[i] > b.at[i] ? a.at[i] : b.at[i];
    CHECK((low.at[i] == least || (std::isnan(low.at[i]) && std::isnan(least))));
    CHECK((high.at[i] == most || (std::isnan(high.at[i]) && std::isnan(most))));
  }
  if constexpr (simd::has_fma<T>) {
    const filled<T> f(simd::fused(a.all(), a.all(), a.all()));
    for (std::size_t i = 0; i < a.width; ++i) CHECK(f.at[i] == std::fma(a.at[i], a.at[i], a.at[i]));
  }
}
}  // namespace

TEST_CASE("the register's own operations round as IEEE 754 says") {
  check<float>();
  check<double>();
}
TEST_CASE("integer lanes wrap and shift") {
  using words = simd::words<std::uint32_t, 16>;
  const words w = ((words(0xf0000001u) + words(0x20000000u)) >> 4 | words(1)) << 1;
  CHECK(w.v[3] == ((0x10000001u >> 4 | 1u) << 1));
  CHECK((words(3) - words(4)).v[0] == 0xffffffffu);
  CHECK(((words(12) & words(10)) ^ words(1)).v[2] == 9);
}
#else
TEST_CASE("without SIMD there is nothing here") { CHECK(GRADUS_SIMD == 0); }
#endif
