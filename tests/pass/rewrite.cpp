#include <gradus/ops/elementwise.hpp>
#include <gradus/pass/rewrite.hpp>
#include <gradus/testing/graph_equality.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr graph small() {
  graph g(mode::evaluate);
  const value x = g.placeholder("x", {batch, 2});
  const value y = square(x), z = exp(y);
  g.add_output(output::prediction, "z", z);
  g.gates.push(2), g.gates.push(y.id), g.gates.push(z.id);
  return g;
}
constexpr bool thawed_is_equal() {
  const graph g = small(), h = detail::thaw(parts_of(g));
  return testing::same_graph(parts_of(g), parts_of(h));
}
static_assert(thawed_is_equal());

// Node y is left out, z reads x instead.
constexpr bool emitted_and_carried() {
  const graph g = small();
  const graph_parts p = parts_of(g);
  graph h = detail::like(p);
  detail::seq<int> map(3, -1);
  detail::emit(h, p.view, 0, map.first);
  map[1] = map[0];
  detail::emit(h, p.view, 2, map.first);
  map[1] = -1;
  detail::carry(h, p, map.first);
  return h.nodes.count == 2 && h.edges[h.nodes[1].first] == 0 && h.outputs[0].node == 1 && h.gates.count == 2 &&
         h.gates[0] == 1 && h.gates[1] == 1 && h.mode() == mode::evaluate;
}
static_assert(emitted_and_carried());
static_assert(detail::table_size(0) == 16 && detail::table_size(9) == 32 && detail::table_size(16) == 32);
}  // namespace

TEST_CASE("nodes move to a new graph with their edges renamed; a gate loses members that are gone") {
  CHECK(thawed_is_equal());
  CHECK(emitted_and_carried());
}
