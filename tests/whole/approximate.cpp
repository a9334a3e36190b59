// compiled with: -O2 -march=native
#include <gradus/cpu/number.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <gradus/base/random.hpp>
#include <limits>

using namespace gradus;

namespace {
// Distance from the exact value in units of the last place of a float of its size.
double ulps(float found, double exact) {
  const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::abs(static_cast<double>(found) - exact) / unit;
}
float any_float(random_stream& r, int least, int most) {
  const float m = 1 + static_cast<float>(r.uniform());
  const auto range = static_cast<std::uint32_t>(most - least);
  return std::ldexp(r.below(2) == 0 ? m : -m, least + static_cast<int>(r.below(range)));
}
bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
}  // namespace

TEST_CASE("estimated roots are within 1 unit in the last place; lane and pack agree") {
  using one = detail::lane<float, approximate>;
  using many = detail::pack<float, approximate>;
  random_stream r{11, 0};
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = std::abs(any_float(r, -126, 127));
    const float root = sqrt(one(x)).v;
    worst = std::max(worst, ulps(root, std::sqrt(static_cast<double>(x))));
    REQUIRE(same(sqrt(many(x))[0], root));
    REQUIRE(same(sqrt(many(x))[many::width - 1], root));
  }
  CHECK(worst <= 1);
  CHECK((GRADUS_ESTIMATES == 0) == (worst <= 0.5));
}

TEST_CASE("zeros, infinities and NaN are as in the exact arithmetic") {
  using estimate = detail::lane<float, approximate>;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float a : {0.0f, -0.0f, 1.0f, 4.0f, inf, -inf, -1.0f, nan}) {
    const float exact = std::sqrt(a), found = sqrt(estimate(a)).v;
    CHECK((std::isnan(exact) ? std::isnan(found) : same(exact, found)));
  }
}

TEST_CASE("double and division stay exact") {
  CHECK(sqrt(detail::pack<double, approximate>(2.0))[0] == std::sqrt(2.0));
  CHECK((detail::pack<float, approximate>(1.0f) / detail::pack<float, approximate>(3.0f))[0] == 1.0f / 3.0f);
}
