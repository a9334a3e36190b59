#include <gradus/update/noise.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::near, steps::vec;

namespace {
// What is added to zeros in step `step`.
vec drawn(std::size_t n, std::int64_t step, std::string_view name = "w",
          const gradient_noise& noise = {.variance = 1}) {
  vec g(n);
  noise.add<double>(g, subject{name, {static_cast<std::int64_t>(n)}, n}, step);
  return g;
}
}  // namespace

TEST_CASE("normal numbers, of the variance that the step has") {
  for (const std::int64_t step : {0, 9}) {
    const auto x = drawn(200000, step);
    double mean = 0, square = 0, cube = 0, fourth = 0;
    for (const double v : x) mean += v, square += v * v, cube += v * v * v, fourth += v * v * v * v;
    const auto n = static_cast<double>(x.size());
    const double variance = 1 / std::pow(1 + static_cast<double>(step), 0.55);
    CHECK(std::fabs(mean / n) < 5 * std::sqrt(variance / n));
    CHECK(std::fabs(square / n / variance - 1) < 5 * std::sqrt(2 / n));
    CHECK(std::fabs(cube / n / std::pow(variance, 1.5)) < 5 * std::sqrt(15 / n));
    CHECK(std::fabs(fourth / n / (variance * variance) - 3) < 5 * std::sqrt(96 / n));
  }
}
TEST_CASE("drawn from seed, name, step and element, nothing else") {
  const auto x = drawn(7, 3);
  CHECK(drawn(7, 3) == x);
  const auto longer = drawn(8, 3);
  CHECK(vec(longer.begin(), longer.begin() + 7) == x);
  CHECK(drawn(7, 4) != x);
  CHECK(drawn(7, 3, "v") != x);
  CHECK(drawn(7, 3, "w", {.variance = 1, .seed = 1}) != x);
}
TEST_CASE("added after the clip beside the rule, before the rule") {
  const gradient_noise noise{.variance = 1, .seed = 5};
  const auto x = drawn(2, 0, "w", noise);
  near(steps::after({0.0, 0.0}, {{3.0, 4.0}}, noise, clip_by_global_norm{1}, gradient_descent{.rate = 1}),
       {-0.6 - x[0], -0.8 - x[1]});
}
TEST_CASE("rows are made dense: every row gets noise") {
  const gradient_noise noise{.variance = 1};
  steps::updater<gradient_noise, gradient_descent> u{noise, gradient_descent{.rate = 1}};
  vec w(3);
  u.track("w", w);
  const std::vector<std::int32_t> rows{1};
  u.apply({{"w", indexed_slices{rows, vec{2.0}}}});
  const auto x = drawn(3, 0, "w", noise);
  near(w, {-x[0], -2 - x[1], -x[2]});
}
TEST_CASE("a variance below 0 is refused") {
  steps::refused([] { steps::after({0.0}, {}, gradient_noise{.variance = -1}, gradient_descent{.rate = 1}); },
                 "`variance` >= 0, found -1");
}
