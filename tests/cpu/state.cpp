#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/state.hpp>
#include <gradus/run/session.hpp>

#include <vector>

using namespace gradus;

TEST_CASE("assign, assign_add and assign_sub change the variable, and reads keep the order of the program") {
  graph g;
  const value w = g.variable("w", {19}, {.init = ones, .trainable = false});
  const value x = g.placeholder("x", {19});
  const value before = w * 2.0;
  const value added = assign_add(w, x);
  const value between = w * 2.0;
  const value subtracted = assign_sub(w, x * 3.0);
  const value after = w * 2.0;
  session s{g};
  s.initialize();
  const auto r = s.run({before, added, between, subtracted, after}, {{"x", std::vector<float>(19, 5.f)}});
  for (std::size_t i = 0; i < 19; ++i) {
    CHECK(r[0].as<float>()[i] == 2.f);
    CHECK(r[2].as<float>()[i] == 12.f);
    CHECK(r[4].as<float>()[i] == -18.f);
    CHECK(s.variable("w").as<float>()[i] == -9.f);
  }
  const value set = assign(w, x);
  session again{g};
  again.run(set, {{"x", std::vector<float>(19, 7.f)}});
  CHECK(again.variable("w").as<float>()[18] == 7.f);
}

TEST_CASE("a write takes a variable and a value of its shape and type") {
  graph g;
  const value w = g.variable("w", {2}), x = g.placeholder("x", {3}), k = g.placeholder("k", {2}, int32);
  CHECK_THROWS_WITH_AS(assign(x, x), doctest::Contains("operand 0 must be a variable"), invalid_argument);
  CHECK_THROWS_WITH_AS(assign(w, x), doctest::Contains("the value must be [2], got [3]"), invalid_argument);
  CHECK_THROWS_WITH_AS(assign_add(w, k), doctest::Contains("the value must be float32, got int32"), invalid_argument);
}
