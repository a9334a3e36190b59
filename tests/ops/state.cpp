#include <gradus/ops/state.hpp>

#include "refusal.hpp"

#include "compute.hpp"

using namespace gradus;
using refusal_test::check;

TEST_CASE("writes last from run to run; reads see what the program wrote before them") {
  graph g;
  const value v = g.variable("v", {2}, {.init = ones}), x = g.placeholder("x", {2});
  const value before = v * 1.0, added = assign_add(v, x), after = v * 10.0,
              less = assign_sub(v, g.constant(1, float32, {2}));
  session s{g};
  s.initialize();
  const std::vector<float> two{1, 2};
  const auto read = [](const const_tensor_view& t) {
    return std::vector<float>(t.as<float>().begin(), t.as<float>().end());
  };
  const auto all = s.run({before, after, added}, {{x, two}});
  CHECK(read(all[0]) == std::vector<float>{1, 1});
  CHECK(read(all[1]) == std::vector<float>{20, 30});
  CHECK(read(s.run(v)) == std::vector<float>{2, 3});
  CHECK(read(s.run(less)) == std::vector<float>{1, 2});
  CHECK(read(s.run(added, {{x, two}})) == std::vector<float>{2, 4});
}

TEST_CASE("assign gives a variable its first value") {
  graph g;
  const value v = g.variable("v", {2}), set = assign(v, g.constant({4, 5}, {2}));
  session s{g};
  CHECK(s.run(set).as<float>()[1] == 5);
}

TEST_CASE("what writes refuse") {
  check<[](graph& g) { assign(g.placeholder("x", {2}), g.constant(1, float32, {2})); }>(
      "Assign: operand 0 must be a variable (x[2], [2])");
  check<[](graph& g) { assign_add(g.variable("v", {2}), g.constant(1)); }>(
      "AssignAdd: the value must be [2], got [] (v[2], [])");
  check<[](graph& g) { assign_sub(g.variable("v", {2}), g.constant(1, float64, {2})); }>(
      "AssignSub: the value must be float32, got float64 (v[2], [2])");
  // an assigned value is copied; a sum is computed, and in these types nothing is
  check<[](graph& g) {
    const value v = g.variable("v", {2}, {.init = zeros, .type = bfloat16});
    assign(v, g.constant(1, bfloat16, {2}));
    assign_add(v, g.constant(1, bfloat16, {2}));
  }>("AssignAdd: bfloat16 is stored and not computed with; cast to float32, and back (v[2], [2])");
  check<[](graph& g) {
    assign_sub(g.variable("v", {2}, {.init = zeros, .type = float16}), g.constant(1, float16, {2}));
  }>("AssignSub: float16 is stored and not computed with; cast to float32, and back (v[2], [2])");
  check<[](graph& g) {
    const value v = g.variable("v", {2}, {.init = zeros, .type = boolean});
    assign(v, g.constant(1, boolean, {2}));
    assign_add(v, g.constant(1, boolean, {2}));
  }>("AssignAdd: takes numbers, got bool; use cast (v[2], [2])");
}
