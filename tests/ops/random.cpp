#include "refusal.hpp"

#include <gradus/ops/random.hpp>

using namespace gradus;
using refusal_test::check;

// One seed and one step for a graph; a stream for each op, the same whoever builds.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 5});
  const auto scope = g.name_scope("deep");
  const value a = dropout(x, 0.5), b = dropout(x, 0.5), u = random_uniform(g, {batch, 2}, -1, 1, float64);
  int seeds = 0, steps = 0, variables = 0, trainable = 0;
  g.for_each_in(collection::random_seed, [&](value v) { seeds += v.type() == int64 && v.dims().rank == 0; });
  g.for_each_in(collection::random_step, [&](value v) { steps += v.type() == int64 && v.dims().rank == 0; });
  g.for_each_in(collection::global_variables, [&](value) { ++variables; });
  g.for_each_in(collection::trainable_variables, [&](value) { ++trainable; });
  const auto operand = [&](value v, int i) { return g.edges[g.nodes[v.id].first + i]; };
  return g.find("random_seed") >= 0 && g.find("random_step") >= 0 && seeds == 1 && steps == 1 && variables == 2 &&
         trainable == 0 && operand(a, 2) == operand(b, 2) && operand(a, 4) != operand(b, 4) && u.type() == float64 &&
         u.dims() == shape{batch, 2} && g.refusal.empty();
}());

// Dropout is there in training only, and only if it drops.
static_assert([] {
  for (const mode m : {mode::train, mode::evaluate, mode::predict}) {
    graph g(m);
    const value x = g.placeholder("x", {batch, 5});
    if ((dropout(x, 0.5).id == x.id) != (m != mode::train) || dropout(x, 0).id != x.id) return false;
  }
  return true;
}());

TEST_CASE("what drawing refuses") {
  check<[](graph& g) { dropout(g.placeholder("x", {batch, 5}), 1); }>("dropout: the rate must be in [0, 1), got 100%");
  check<[](graph& g) {
    dropout(g.placeholder("x", {batch, 5}), -0.5);
  }>("dropout: the rate must be in [0, 1), got -50%");
  check<[](graph& g) {
    dropout(g.placeholder("x", {batch, 5}, int32), 0.5);
  }>("Dropout: takes float32 or float64, got int32 (x[batch, 5], [], random_seed[])");
  check<[](graph& g) { random_uniform(g, {3}, 0, 1, int32); }>(
      "RandomUniform: draws float32 or float64, not int32 (random_seed[], random_step[], [])");
}
