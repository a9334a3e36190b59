// What a train op asks a session to start, and with which numbers. How it runs: optimizer.cpp.
#include <gradus/cpu/device.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/running_update.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

using namespace gradus;

namespace {
std::vector<std::string> names(const graph_update& u) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < u.variables(); ++i)
    all.push_back(std::string(u.variable(i).name) + " of " + std::string(u.variable(i).beside));
  return all;
}
template <class T>
T started(const graph_update& u, std::size_t i, T beside = {}) {
  T to{};
  u.start(i, reinterpret_cast<std::byte*>(&to), reinterpret_cast<const std::byte*>(&beside));
  return to;
}
}  // namespace

TEST_CASE("slots start in the variable's own precision, averages as the variable, own state as the rule says") {
  graph g;
  const value w = g.variable("w", {}, {.type = float64}), x = g.variable("x", {2});
  optimizer opt{adagrad{.rate = 1}, exponential_moving_average{}};
  const value train = opt.apply_gradients({{g.constant(1, float64), w}, {g.constant(1, float32, {2}), x}});
  std::vector<std::unique_ptr<graph_update>> runs;
  opt.run_in(g, runs);
  REQUIRE(runs.size() == 1);
  const graph_update& u = *runs[0];
  CHECK(u.train_op() < train.id);
  CHECK(g.nodes[u.train_op()].op == &cards::begin_updates);
  CHECK(names(u) == std::vector<std::string>{"w/Adagrad of w", "w/ExponentialMovingAverage of w", "x/Adagrad of x",
                                             "x/ExponentialMovingAverage of x", "Adagrad/steps of "});
  CHECK(started<double>(u, 0) == 0.1);
  CHECK(started<double>(u, 1, 7.0) == 7.0);
  CHECK(started<std::array<float, 2>>(u, 2) == std::array{0.1f, 0.1f});
  CHECK(started<std::array<float, 2>>(u, 3, {1, 2}) == std::array{1.0f, 2.0f});
  CHECK(started<std::int64_t>(u, 4, 9) == 0);
}
TEST_CASE("one for each train op of the graph") {
  graph g, other;
  const value w = g.variable("w", {}), v = other.variable("v", {});
  optimizer opt{adam{.beta1 = 0.8}};
  opt.apply_gradients({{g.constant(1), w}});
  opt.apply_gradients({{g.constant(1), w}});
  opt.apply_gradients({{other.constant(1), v}});
  std::vector<std::unique_ptr<graph_update>> runs;
  opt.run_in(g, runs);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]->train_op() != runs[1]->train_op());
  CHECK(names(*runs[0]) == names(*runs[1]));
  CHECK(names(*runs[0]) == std::vector<std::string>{"w/Adam of w", "w/Adam_1 of w", "beta1_power of ",
                                                    "beta2_power of ", "Adam/steps of "});
  CHECK(started<double>(*runs[0], 2) == 0.8);
}
