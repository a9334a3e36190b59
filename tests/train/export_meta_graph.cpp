#include <gradus/train/export_meta_graph.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/session/queue_runner.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("a graph's collections in its MetaGraphDef") {
  graph g;
  const value step = create_global_step(g);
  g.variable("w", {2}, {.init = zeros});
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 2, {int64}, {.shapes = {{}}, .name = "q"}));
  const queue_runner runner(q, {q.enqueue({step})});
  add_queue_runner(runner);
  g.add_to("mixed", g.by_name("w")), g.add_to("mixed", g.group({step}, "all"));
  const meta_graph m = export_meta_graph(g);
  CHECK(m.graph.nodes.size() == static_cast<std::size_t>(g.nodes.count));
  CHECK(m.collections.at("variables").messages.size() == 2);
  CHECK(m.collections.at("trainable_variables").messages.size() == 1);
  REQUIRE(m.collections.at("queue_runners").messages.size() == 1);
  CHECK(queue_runner::from_proto(g, m.collections.at("queue_runners").messages[0]).name() == "q");
  CHECK(m.collections.at("global_step").messages.size() == 1);
  CHECK(m.collections.at("mixed").nodes == std::vector<std::string>{"w:0", "all"});
  CHECK(!to_pbtxt(m).empty());
}

TEST_CASE("graph and MetaGraphDef in an event file") {
  testing::temp_dir dir;
  graph g;
  create_global_step(g);
  {
    summary_writer<> to(dir.path());
    add_graphs(to, g);
    to.close();
    summary_iterator all(to.path());
    std::vector<event_kind> kinds;
    for (const auto& e : all) kinds.push_back(e.what);
    CHECK(kinds == std::vector{event_kind::file_version, event_kind::graph_def, event_kind::meta_graph_def});
  }
}
