#include <gradus/graph/parts.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("the parts of a graph are its own memory") {
  graph g(mode::evaluate);
  const value x = g.placeholder("x", {batch, 2});
  g.add_output(output::prediction, "x", x);
  const graph_parts p = parts_of(g);
  CHECK(p.view.nodes == g.nodes.first);
  CHECK(p.view.size == 1);
  CHECK(p.outputs == g.outputs.first);
  CHECK(p.output_count == 1);
  CHECK(p.gate_count == 0);
  CHECK(p.what == mode::evaluate);
}
