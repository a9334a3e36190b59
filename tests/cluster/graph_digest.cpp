// A graph's number: equal for equal graphs, another for every difference that computes something else.
#include <gradus/cluster/graph_digest.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include <gradus/ops/frozen.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/pass/optimize.hpp>

using namespace gradus;

namespace {
std::uint64_t digest(const std::function<value(graph&, const value&)>& build) {
  graph g;
  const value x = g.placeholder("x", {batch, 8});
  build(g, x);
  return detail::digest_of(g.view());
}
}  // namespace

TEST_CASE("a difference in an op, a shape, a type, an edge or an attribute is another number") {
  const auto first = [](graph&, const value& x) { return relu(dense(x, {.units = 4})) + dense(x, {.units = 4}); };
  std::set<std::uint64_t> seen{digest(first)};
  CHECK(digest(first) == *seen.begin());
  const auto differs = [&](const std::function<value(graph&, const value&)>& build) {
    CHECK(seen.insert(digest(build)).second);
  };
  differs([](graph&, const value& x) { return tanh(dense(x, {.units = 4})) + dense(x, {.units = 4}); });
  differs([](graph&, const value& x) { return relu(dense(x, {.units = 5})) + dense(x, {.units = 5}); });
  differs([](graph&, const value& x) { return relu(dense(x, {.units = 4}) + dense(x, {.units = 4})); });
  differs([](graph&, const value& x) {
    const value h = dense(x, {.units = 3}), k = dense(x, {.units = 3});
    return relu(h) + k;
  });
  differs([](graph&, const value& x) {
    const value h = dense(x, {.units = 3}), k = dense(x, {.units = 3});
    return relu(k) + h;
  });
  differs([](graph&, const value& x) { return dropout(x, 0.5); });
  differs([](graph&, const value& x) { return dropout(x, 0.25); });
  differs([](graph&, const value& x) { return reduce_sum(x, {0}); });
  differs([](graph&, const value& x) { return reduce_sum(x, {1}); });
  differs([](graph&, const value& x) { return cast(x, float64); });
}

TEST_CASE("the weights of a frozen layer are part of it") {
  static frozen_dense_weights<8, 2> w{};
  const auto number = [] { return digest([](graph&, const value& x) { return frozen_dense<w>(x); }); };
  std::set<std::uint64_t> seen{number()};
  CHECK(number() == *seen.begin());
  w.codes[15] = 1;
  CHECK(seen.insert(number()).second);
  w.scales[1] = 0.5f;
  CHECK(seen.insert(number()).second);
  w.bias[1] = 0.5f;
  CHECK(seen.insert(number()).second);
}

TEST_CASE("names are not part of it") {
  const auto named = [](const char* name) {
    return digest([name](graph&, const value& x) { return dense(x, {.units = 4, .name = name}); });
  };
  CHECK(named("a") == named("b"));
}
