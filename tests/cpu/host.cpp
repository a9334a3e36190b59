#include "run_graph.hpp"

#include <gradus/cpu/host.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
// A user's op from outside: y = x^2 + n of any length, with its gradient.
void square_and_add(std::span<double> y, std::span<const double> x, std::span<const std::int64_t> n) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * x[i] + static_cast<double>(n[0]);
}
void first_two(std::span<float> y, std::span<const float> x) {
  if (x.size() < 2) raise(status::out_of_range, text("first_two: expected 2 elements, got ", x.size()));
  y[0] = x[0], y[1] = x[1];
}
}  // namespace
template <>
struct gradus::op_kernel<&gradus::host_op<&square_and_add>> : gradus::host_kernel<&square_and_add> {};
template <>
struct gradus::op_kernel<&gradus::host_op<&first_two>> : gradus::host_kernel<&first_two> {};

namespace {
using user_ops = op_list<&host_op<&square_and_add>, &host_op<&first_two>>;
}

TEST_CASE("a host function sees its operands whole, of any batch") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}, float64), n = g.placeholder("n", {}, int64);
  const value y = host_call<&square_and_add>({x, n});
  CHECK(kernel_test::from_bytes<double>(kernel_test::run(
            user_ops{}, g, y, 2,
            {{x.id, kernel_test::to_bytes<double>({1, 2, 3, 4})}, {n.id, kernel_test::to_bytes<std::int64_t>({7})}})) ==
        std::vector<double>{8, 11, 16, 23});
  const value v = g.placeholder("v", {batch}), two = host_call<&first_two>({v}, {2});
  const auto first = [&](std::vector<float> all) {
    std::map<int, kernel_test::bytes> feeds{{v.id, kernel_test::to_bytes(all)}};
    feeds[x.id] = {}, feeds[n.id] = kernel_test::to_bytes<std::int64_t>({0});
    feeds[x.id].resize(all.size() * 16);
    return kernel_test::from_bytes<float>(
        kernel_test::run(user_ops{}, g, two, static_cast<std::int64_t>(all.size()), feeds));
  };
  CHECK(first({5, 6, 7}) == std::vector<float>{5, 6});
  CHECK_THROWS_WITH_AS(first({5}), "first_two: expected 2 elements, got 1", out_of_range);
}

TEST_CASE("check_between passes numbers on and names the one outside") {
  graph g;
  const value x = g.placeholder("x", {batch}), y = check_between(x, 0, 1);
  const auto run = [&](std::vector<float> v) {
    return kernel_test::from_bytes<float>(
        kernel_test::run(host_ops{}, g, y, static_cast<std::int64_t>(v.size()), {{x.id, kernel_test::to_bytes(v)}}));
  };
  CHECK(run({0, 0.5f, 1}) == std::vector<float>{0, 0.5f, 1});
  CHECK(run({}).empty());
  CHECK_THROWS_WITH_AS(run({0, 1.5f}),
                       "CheckBetween: element 1 is 1.5, expected [0, 1]: a metric such as auc takes probabilities, as "
                       "sigmoid gives them, and a NaN comes from the data or from a model that diverged",
                       invalid_argument);
  CHECK_THROWS_AS(run({std::numeric_limits<float>::quiet_NaN()}), invalid_argument);
}
