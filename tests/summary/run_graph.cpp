#include "gradus/summary/run_graph.hpp"

#include <doctest/doctest.h>

#include "gradus/ops/layer.hpp"

using namespace gradus;

namespace {
void build(graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto y = dense(x, {.units = 2, .name = "out"});
  g.variable("counter", {}, {.trainable = false});
  reduce_mean(y);
}
}  // namespace

TEST_CASE("run_graph: the graph, and its variables in TensorFlow's two collections") {
  graph g;
  build(g);
  const auto m = to_meta_graph(parts_of(g), g.names.chars.first);
  CHECK(!m.saver);
  CHECK(m.graph.nodes.size() == to_graph_def(g).nodes.size());
  REQUIRE(m.collections.contains("variables"));
  CHECK(m.collections.at("variables").messages.size() == 3);
  CHECK(m.collections.at("trainable_variables").messages.size() == 2);
  const auto text = to_pbtxt(m);
  CHECK(text.find("out/kernel") != std::string::npos);
  CHECK(text.find("saver_def") == std::string::npos);
}
