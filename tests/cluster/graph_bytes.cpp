// Graphs as bytes: they come back as they were, and bytes that are none are refused.
#include <gradus/cluster/graph_bytes.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/graph/law.hpp>
#include <gradus/graph/show.hpp>
#include <gradus/ops/frozen.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
const card* known(std::string_view name) {
  const card* const own = card_of_sessions(name);
  return own != nullptr ? own : default_device::registry<>::named(name);
}
void build(graph& g) {
  const auto scope = g.name_scope("net");
  const auto on = g.device("/job:ps/task:1");
  const value x = g.placeholder("x", {batch, 8, 8, 1}), y = g.placeholder("y", {batch}, int32);
  const value h = dropout(relu(conv2d(x, {.filters = 3, .kernel_size = 3, .name = "c"})), 0.25f);
  const value logits = dense(flatten(h), {.units = 4, .name = "logits"});
  const value loss = reduce_mean(sparse_softmax_cross_entropy(logits, y));
  g.summary_scalar("loss", loss);
  g.add_output(output::loss, "loss", loss);
}
}  // namespace

TEST_CASE("a graph comes back as it was: nodes, names, devices, collections, outputs") {
  graph g;
  build(g);
  unknown_ops unknown;
  const graph same = graph_from_bytes(graph_to_bytes(g), known, unknown);
  CHECK(unknown.empty());
  CHECK(to_text(same) == to_text(g));
  CHECK(same.nodes.count == g.nodes.count);
  for (int i = 0; i < g.nodes.count; ++i) {
    CHECK(same.name_of(i) == g.name_of(i));
    CHECK(same.nodes.first[i].op == g.nodes.first[i].op);
    CHECK(same.text_at(same.nodes.first[i].device) == g.text_at(g.nodes.first[i].device));
  }
  CHECK(same.outputs.count == g.outputs.count);
  CHECK(same.members.count == g.members.count);
  CHECK(std::equal(g.ints.begin(), g.ints.end(), same.ints.begin()));
}

TEST_CASE("an op without a card is kept, and named where a node needs it") {
  static constexpr card mine{"Mine", 1, 0, [](inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }};
  graph g;
  const value x = g.placeholder("x", {2}), y = g.add(mine, {x}), z = relu(x);
  unknown_ops unknown;
  const graph same = graph_from_bytes(graph_to_bytes(g), known, unknown);
  CHECK(unknown_for(same, std::vector{y.id}, unknown) == "Mine");
  CHECK(unknown_for(same, std::vector{z.id}, unknown) == "");
  CHECK(same.nodes.first[y.id].dims == shape{2});
}

TEST_CASE("bytes that are no graph are refused, and what is taken keeps every law") {
  graph g;
  build(g);
  const std::vector<std::byte> good = graph_to_bytes(g);
  std::minstd_rand draw(7);
  int refused = 0, taken = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> bad = good;
    for (auto n = 1 + draw() % 3; n > 0; --n)
      bad[draw() % bad.size()] = static_cast<std::byte>(draw() % 3 == 0 ? draw() % 256 : draw() % 4);
    if (i % 5 == 0) bad.resize(draw() % bad.size());
    unknown_ops unknown;
    try {
      const graph made = graph_from_bytes(bad, known, unknown);
      CHECK(broken_law(parts_of(made)) == nullptr);
      ++taken;
    } catch (const error& e) {
      CHECK(e.kind() == status::data_loss);
      ++refused;
    }
  }
  CHECK(refused > 1500);
  CHECK(taken > 100);  // a name's letter, a seed
}

TEST_CASE("a graph that passes have fused is refused") {
  graph g;
  const value x = g.placeholder("x", {2});
  node n = g.nodes[x.id];
  n.op = &cards::fused, n.inputs = 0, n.attr = 0, n.attrs = 0, n.name = -1;
  g.nodes.push(n);
  CHECK(says(message_of(status::unimplemented, [&] { graph_to_bytes(g); }), "send the graph as it was built"));
}

TEST_CASE("a graph with frozen layers is refused: two of them have one name, and a receiver has other weights") {
  static frozen_dense_weights<2, 2> w{};
  graph g;
  frozen_dense<w>(g.placeholder("x", {batch, 2}));
  CHECK(message_of(status::unimplemented, [&] { graph_to_bytes(g); }) ==
        "FrozenMatMul cannot be sent: its weights are constants of this program, and the receiver has its own; send a "
        "graph with layers of float32");
}
