#include <gradus/cpu/device.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_norm.hpp>
#include <gradus/run/static_step.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;

namespace {
// The gradient of sum(w * x) is the mean of x over the batch; there are two variables, of different sizes.
constexpr auto weighted = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 2});
  const auto a = g.variable("a", {3}, {.init = zeros}), b = g.variable("b", {2}, {.init = zeros});
  return model_spec{.loss = reduce_mean(reduce_sum(x * a, {1}) + reduce_sum(y * b, {1}))};
};
template <class... More>
void check_norm(More... more) {
  auto s = make_static_stepper<weighted>(static_batch<2>{}, gradient_descent{.rate = 1}, clip_by_global_norm{0.5},
                                         portable{}, more...);
  s.initialize(1);
  const float x[] = {1, -2, 3, 3, 4, 0.5f}, y[] = {0.25f, 8, -1, 2};
  std::copy_n(x, 6, s.template input<"x">().begin()), std::copy_n(y, 4, s.template input<"y">().begin());
  s.step();
  double g[5], norm = 0;
  for (int i = 0; i < 3; ++i) g[i] = (static_cast<double>(x[i]) + static_cast<double>(x[3 + i])) / 2;
  for (int i = 0; i < 2; ++i) g[3 + i] = (static_cast<double>(y[i]) + static_cast<double>(y[2 + i])) / 2;
  for (const double v : g) norm += v * v;
  norm = std::sqrt(norm);
  for (int i = 0; i < 5; ++i) {
    const float w = i < 3 ? s.template variable<"a">()[static_cast<std::size_t>(i)]
                          : s.template variable<"b">()[static_cast<std::size_t>(i - 3)];
    CHECK(static_cast<double>(w) == doctest::Approx(-g[i] * 0.5 / norm).epsilon(1e-6));
  }
}
}  // namespace

TEST_CASE("static_norm: the norm is over all variables, of the whole batch and of sums over examples") {
  check_norm();
  check_norm(one_by_one{});
}

TEST_CASE("static_norm: the norm is over gradients of both types") {
  static constexpr auto two = [](graph& g) {
    const value w = g.variable("w", {}, {.init = zeros}), v = g.variable("v", {}, {.init = zeros, .type = float64});
    return model_spec{.loss = square(w - 1.5) + cast(square(v - 2.0), float32)};
  };
  auto s =
      make_static_stepper<two>(static_batch<1>{}, gradient_descent{.rate = 1}, clip_by_global_norm{0.5}, portable{});
  s.initialize(1);
  s.step();  // of -3 and -4
  CHECK(s.variable<"w">()[0] == doctest::Approx(0.3));
  CHECK(s.variable<"v">()[0] == doctest::Approx(0.4));
}
