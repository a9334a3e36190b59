#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/interpret.hpp>
#include <gradus/run/session.hpp>

#include <vector>

namespace {
using namespace gradus;

// Whole numbers, so that every result is exact and the plain formula is the reference.
std::vector<float> whole_numbers(std::int64_t n, std::uint32_t seed) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) seed = seed * 1664525u + 1013904223u, x = static_cast<float>(seed >> 24) - 128;
  return v;
}
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
}  // namespace

TEST_CASE("runs of every length, operands that move along any of the loops") {
  for (int columns : {1, 2, 5, 6, 16, 63, 64, 65, 130})
    for (int rows : {1, 21, 130}) {
      CAPTURE(columns);
      CAPTURE(rows);
      graph g;
      const value x = g.placeholder("x", {batch, 3, columns}), last = g.placeholder("last", {columns}),
                  middle = g.placeholder("middle", {3, 1}), outer = g.placeholder("outer", {batch, 1, columns}),
                  n = g.placeholder("n", {batch, 3, columns}, int32);
      session s{g};
      const auto a = whole_numbers(rows * 3 * columns, 1), b = whole_numbers(columns, 2), c = whole_numbers(3, 3),
                 d = whole_numbers(rows * columns, 4);
      const std::vector<std::int32_t> e(a.rbegin(), a.rend());
      const auto r =
          s.run({x * last + 1.f, x * middle - outer, greater(cast(n, float32) * last, x), cast(x + outer, int32)},
                {{"x", a}, {"last", b}, {"middle", c}, {"outer", d}, {"n", e}});
      for (std::int64_t i = 0, all = 0; i < rows; ++i)
        for (std::int64_t m = 0; m < 3; ++m)
          for (std::int64_t j = 0; j < columns; ++j, ++all) {
            const float up = d[at(i * columns + j)];
            REQUIRE(r[0].as<float>()[at(all)] == a[at(all)] * b[at(j)] + 1.f);
            REQUIRE(r[1].as<float>()[at(all)] == a[at(all)] * c[at(m)] - up);
            REQUIRE(r[2].as<bool>()[at(all)] == (static_cast<float>(e[at(all)]) * b[at(j)] > a[at(all)]));
            REQUIRE(r[3].as<std::int32_t>()[at(all)] == static_cast<std::int32_t>(a[at(all)] + up));
          }
    }
}

TEST_CASE("what does not fit an integer gives the nearest that does") {
  CHECK(detail::to_element<std::int32_t>(3e9f) == 2147483647);
  CHECK(detail::to_element<std::uint8_t>(-1.5) == 0);
  CHECK(detail::to_element<std::uint8_t>(254.9) == 254);
  CHECK(detail::to_element<std::int64_t>(std::numeric_limits<float>::quiet_NaN()) == 0);
}
