#include <gradus/graph/graph.hpp>

#include <doctest/doctest.h>

#include "../golden/golden.hpp"
#include "../ops/refusal.hpp"

using namespace gradus;
using refusal_test::check;

// The compiler knows them, to the last digit or the one before.
static_assert(fans_of({}).in == 1 && fans_of({}).out == 1 && fans_of({7}).in == 7 && fans_of({7}).out == 7);
static_assert(fans_of({3, 3, 8, 16}).in == 72 && fans_of({3, 3, 8, 16}).out == 144);
static_assert(uniform_limit(he_uniform, {6, 9}) == 1 && uniform_limit(lecun_uniform, {3, 5}) == 1);
static_assert(uniform_limit(glorot_uniform, {3, 3, 8, 16}) > 0.16666666666666 &&
              uniform_limit(glorot_uniform, {3, 3, 8, 16}) < 0.16666666666667);
static_assert(stddev_before_truncation(variance_scaling(4, initializer::fan_out, initializer::normal), {9, 4}) == 1);
static_assert(stddev_before_truncation(truncated_normal(3, 0.5f), {2}) == 0.5);
static_assert(scaled_variance(variance_scaling(), {0, 5}) == 1);  // never divided by less than 1

TEST_CASE("golden fans, limits and deviations") {
  int seen = 0;
  for (const auto& c : golden::read("losses.json")) {
    if (c["kind"] != "initializer") continue;
    ++seen;
    INFO(c["id"].get<std::string>());
    shape dims;
    for (const auto& d : c["shape"]) dims.push(d.get<int>());
    CHECK(fans_of(dims).in == c["fan_in"].get<double>());
    CHECK(fans_of(dims).out == c["fan_out"].get<double>());
    const auto near = [&](double got, const char* want) {
      CHECK(golden::near(got, golden::number(c["expect"][want]), c["rtol"].get<double>(), c["atol"].get<double>()));
    };
    near(uniform_limit(glorot_uniform, dims), "glorot_uniform_limit");
    near(uniform_limit(he_uniform, dims), "he_uniform_limit");
    near(uniform_limit(lecun_uniform, dims), "lecun_uniform_limit");
    near(stddev_before_truncation(glorot_normal, dims), "glorot_normal_stddev_before_truncation");
    near(stddev_before_truncation(he_normal, dims), "he_normal_stddev_before_truncation");
    near(stddev_before_truncation(lecun_normal, dims), "lecun_normal_stddev_before_truncation");
  }
  CHECK(seen == 3);
}

TEST_CASE("what initializers refuse, where a variable is made") {
  check<[](graph& g) {
    g.variable("w", {2, 3}, {.init = variance_scaling(0)});
  }>("variable \"w\" [2, 3]: variance_scaling needs a scale above 0");
  check<[](graph& g) {
    g.variable("w", {2, 3}, {.init = variance_scaling(-1)});
  }>("variable \"w\" [2, 3]: variance_scaling needs a scale above 0");
  check<[](graph& g) {
    g.variable("w", {2, 3}, {.init = variance_scaling(1, 3)});
  }>("variable \"w\" [2, 3]: variance_scaling knows the modes fan_in, fan_out and fan_average");
  check<[](graph& g) {
    g.variable("w", {2, 3}, {.init = variance_scaling(1, initializer::fan_in, initializer::constant)});
  }>("variable \"w\" [2, 3]: variance_scaling knows the distributions uniform, normal and truncated_normal");
  check<[](graph& g) { g.variable("w", {3}, {.init = orthogonal()}); }>(
      "variable \"w\" [3]: orthogonal needs a shape of rank 2 or more");
  check<[](graph& g) {
    g.variable("w", {3, 2, 2}, {.init = identity_initializer()});
  }>("variable \"w\" [3, 2, 2]: identity_initializer needs a shape of rank 2");
  check<[](graph& g) { g.variable("w", {3}, {.init = {.kind = 99}}); }>(
      "variable \"w\" [3]: there is no initializer of this kind");
}

TEST_CASE("whole numbers and bools begin with 0, and are not drawn") {
  graph g;
  for (const dtype type : {int32, int64, uint8, boolean}) {
    const value v = g.variable("v", {2}, {.type = type});
    const auto a = from_words<variable_attr>(g.ints.first + g.nodes[v.id].attr);
    CHECK(a.kind == initializer::constant);
    CHECK(a.a == 0);
    CHECK_THROWS_AS(g.variable("drawn", {2}, {.init = random_uniform(0, 10), .type = type}), invalid_argument);
    CHECK_THROWS_AS(g.variable("drawn", {2}, {.init = random_normal(5, 2), .type = type}), invalid_argument);
    CHECK_THROWS_AS(g.variable("drawn", {2, 2}, {.init = orthogonal(), .type = type}), invalid_argument);
    CHECK(g.variable("one", {2}, {.init = ones, .type = type}).type() == type);
    CHECK(g.variable("unit", {2, 2}, {.init = identity_initializer(), .type = type}).type() == type);
  }
  CHECK_THROWS_AS(g.variable("half", {2}, {.init = constant_initializer(0.5f), .type = int32}), invalid_argument);
  const value drawn = g.variable("weights", {2, 2});
  CHECK(from_words<variable_attr>(g.ints.first + g.nodes[drawn.id].attr).kind == initializer::variance_scaling);
}

TEST_CASE("a whole number that float32 cannot hold begins no variable of whole numbers") {
  constexpr const char* rounded =
      "variable \"n\" []: an initializer's number is float32, which cannot hold this whole number; give one that it "
      "can, or assign the number, or begin with it as a tensor (variable_from)";
  check<[](graph& g) { g.variable("n", {}, {.init = constant_initializer(16777217), .type = int64}); }>(rounded);
  check<[](graph& g) { g.variable("n", {}, {.init = constant_initializer(-16777217.0), .type = int32}); }>(rounded);
  check<[](graph& g) { g.variable("n", {}, {.init = constant_initializer(16777216.5), .type = int32}); }>(rounded);
  check<[](graph& g) { g.variable("n", {}, {.init = constant_initializer(0.9999999999), .type = int32}); }>(rounded);
  check<[](graph& g) {
    g.variable("n", {}, {.init = constant_initializer((std::int64_t{1} << 53) + 1), .type = int64});
  }>(rounded);
  check<[](graph& g) { g.variable("n", {}, {.init = constant_initializer(2147483647), .type = int32}); }>(rounded);
  graph g;
  const auto start = [&](const auto& number, dtype type) {
    const value v = g.variable("v", {}, {.init = constant_initializer(number), .type = type});
    return from_words<variable_attr>(g.ints.first + g.nodes[v.id].attr).a;
  };
  CHECK(start(16777216, int64) == 16777216.f);
  CHECK(start(-33554436, int32) == -33554436.f);
  CHECK(start(1e10, int64) == 1e10f);
  CHECK(start(std::uint64_t{1} << 40, int64) == 0x1p40f);
  CHECK(start(16777217, float32) == 16777216.f);  // settings are float32, and fractions are rounded too
  CHECK(start(0.1, float64) == 0.1f);
  CHECK(start(7u, uint8) == 7);
}
