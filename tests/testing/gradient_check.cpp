#include "../golden/golden.hpp"

#include <gradus/cpu/host.hpp>
#include <gradus/ops/arrange.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/testing/gradient_check.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;
using testing::check_options;

namespace {
void squares(std::span<double> y, std::span<const double> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * x[i];
}
void wrong_gradient(std::span<double> dx, std::span<const double> dy, std::span<const double> x) {  // forgets the 2
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] * x[i];
}
}  // namespace
template <>
struct gradus::op_kernel<&gradus::host_op<&squares, &wrong_gradient>> : gradus::host_kernel<&squares> {};
template <>
struct gradus::op_kernel<&gradus::host_op<&wrong_gradient>> : gradus::host_kernel<&wrong_gradient> {};

TEST_CASE("golden Jacobians, a wrong gradient among them") {
  int known = 0;
  for (const auto& c : golden::read("gradients.json")) {
    if (c["kind"] != "gradient_checker") continue;
    ++known;
    const auto function = c["function"].get<std::string>();
    INFO(function);
    graph g;
    const value x = g.placeholder("x", {c["x_shape"][0].get<int>(), c["x_shape"][1].get<int>()}, float64);
    value y;
    if (function == "square") y = square(x);
    if (function == "cube") y = x * square(x);
    if (function == "gather") y = gather(x, g.constant({1, 0, 1}, {3}, int32));
    if (function == "wrong") y = host_call<&squares, &wrong_gradient>({x});
    check_options o{.x_init_values = {golden::numbers<double>(c["x"])}, .delta = c["delta"].get<double>()};
    std::vector<double> w;
    if (function == "matmul") {
      w = golden::numbers<double>(c["extra"]["w"]);
      const value weights = g.placeholder("w", {3, 2}, float64);
      y = matmul(x, weights);
      o.extra_feeds.emplace_back(weights, w);
    }
    REQUIRE(y);
    shape y_shape;
    for (const auto& n : c["y_shape"]) y_shape.push(n.get<int>());
    using user = ops<&host_op<&squares, &wrong_gradient>, &host_op<&wrong_gradient>>;
    const auto j = testing::compute_gradient(x, x.dims(), y, y_shape, o, user{});
    const double rtol = c["rtol"].get<double>(), atol = std::max(c["atol"].get<double>(), 1e-11);
    const auto same = [&](const std::vector<double>& got, const std::vector<double>& want) {
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(golden::near(got[i], want[i], rtol, atol));
    };
    CHECK(j.x_size == 6);
    CHECK(j.y_size * 6 == j.numeric.size());
    same(j.theoretical, golden::numbers<double>(c["expect_theoretical"]));
    same(j.numeric, golden::numbers<double>(c["expect_numeric"]));
    const double error = testing::largest_error({&j, 1}), expected = c["expect_error"].get<double>();
    CHECK(std::fabs(error - expected) < 1e-9);
  }
  CHECK(known == 6);
}
TEST_CASE("shapes in numbers: what batch is, and what does not fit") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), y = reduce_sum(square(x), {1});
  const auto j = testing::compute_gradient(x, {3, 2}, y, {3});
  CHECK(j.x_size == 6);
  CHECK(j.y_size == 3);
  CHECK(testing::compute_gradient_error(x, {3, 2}, y, {3}, {.delta = 1e-2}) < 1e-3);
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(x, {3, 2}, y, {2}),
                       "the shape of y is [2]; in the graph it is [batch]", invalid_argument);
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(x, {3, 1}, y, {3}),
                       "the shape of x 0 is [3, 1]; in the graph it is [batch, 2]", invalid_argument);
  const value both[] = {x, x};
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(both, {{3, 2}}, y, {3}),
                       "expected 2 x_shapes and one y_shape, got 1 and 1", invalid_argument);
}
TEST_CASE("NaN shows; rows that are taken twice add up") {
  graph g;
  const value x = g.placeholder("x", {2}, float64), table = g.variable("table", {2, 1}, {.type = float64});
  CHECK(std::isnan(testing::compute_gradient_error(g, x, sqrt(x), {.x_init_values = {{-1, 1}}})));
  const value y = reshape(gather(table, g.constant({1, 1}, {2}, int32)), {2});
  const auto j = testing::compute_gradient(g, table, reduce_sum(y) + y * 0.0, {.x_init_values = {{3, 4}}});
  CHECK(j.theoretical == std::vector<double>{0, 0, 2, 2});
  CHECK(testing::largest_error({&j, 1}) < 1e-9);
}

TEST_CASE("variables, several xs, init targets, float32") {
  graph g;
  const value a = g.variable("a", {2}, {.init = ones}), b = g.placeholder("b", {batch, 2});
  const value c = g.variable("c", {}, {.init = zeros, .trainable = false});
  const value set = assign(c, g.constant(3));
  const value y = a * b * c, xs[] = {a, b};
  const check_options o{.x_init_values = {{2, 3}, {5, 6, 7, 8}}, .delta = 1e-2, .init_targets = {set}, .batch_size = 2};
  const auto j = testing::compute_gradient(g, xs, y, o);
  REQUIRE(j.size() == 2);
  CHECK(j[0].theoretical == std::vector<double>{15, 0, 21, 0, 0, 18, 0, 24});
  CHECK(j[1].theoretical == std::vector<double>{6, 0, 0, 0, 0, 9, 0, 0, 0, 0, 6, 0, 0, 0, 0, 9});
  CHECK(testing::largest_error(j) < 1e-2);
  CHECK(testing::largest_error({}) == 0);
  testing::jacobians broken = j[0];
  broken.numeric[1] = std::nan("");
  CHECK(std::isnan(testing::largest_error({&broken, 1})));
}

TEST_CASE("what a check refuses") {
  graph g;
  const value x = g.placeholder("x", {2}, float64), z = g.placeholder("z", {2}, float64);
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(g, x, square(z)),
                       "y does not depend on x 0, or no gradient passes", invalid_argument);
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(g, x, square(x), {.x_init_values = {{1, 2, 3}}}),
                       "the init value of x 0 has 3 elements, expected 2", invalid_argument);
  CHECK_THROWS_WITH_AS((void)testing::compute_gradient(g, x, square(x), {.x_init_values = {{1, 2}, {1, 2}}}),
                       "expected 1 x_init_values, got 2", invalid_argument);
}

TEST_CASE("no elements of y: nothing to compare, and the gradient is all zero") {
  graph g;
  const value x = g.placeholder("x", {2, 3}, float64);
  CHECK(testing::compute_gradient_error(g, x, slice(x, {0, 1}, {-1, 0})) == 0);
}
