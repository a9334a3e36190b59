#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/gate.hpp>
#include <gradus/pass/minimize.hpp>
#include <gradus/pass/plan.hpp>
#include <gradus/pass/release.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr void three_layers(graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  const value a = tanh(matmul(x, g.variable("first", {4, 3}))), b = tanh(matmul(a, g.variable("second", {3, 3})));
  g.add_output(output::loss, "loss", reduce_mean(square(matmul(b, g.variable("third", {3, 2})))));
}
constexpr graph gated(gating gate, void (*build)(graph&) = three_layers) {
  graph g;
  build(g);
  const graph m = minimize(parts_of(g), {gate, false});
  const graph d = remove_dead(parts_of(m));
  return add_gates(parts_of(d));
}
constexpr graph released(gating gate, void (*build)(graph&) = three_layers) {
  const graph g = gated(gate, build);
  return release_updates(parts_of(g));
}
// The nodes between the last that an update waits for and the update; -1 if it stands before one that it waits for.
constexpr int longest_wait(const graph& g) {
  int longest = 0, updates = 0;
  for (int i = 0; i < g.nodes.count; ++i) {
    const node& n = g.nodes[i];
    if (n.op != &cards::apply) continue;
    ++updates;
    int last = 0;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) {
      if (g.edges[e] < 0 || g.edges[e] >= i) return -1;
      last = g.edges[e] > last ? g.edges[e] : last;
    }
    longest = i - last > longest ? i - last : longest;
  }
  return updates == 0 ? -1 : longest;
}
constexpr int count_of(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
// Two updates that wait for the same node stand behind it one after the other.
constexpr void two_at_once(graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  g.add_output(output::loss, "loss", reduce_mean(square(matmul(x, g.variable("w", {4, 3})) + g.variable("b", {3}))));
}
// The second operand's gradient reads the first, a variable, whose own gradient is there before.
constexpr void read_late(graph& g) {
  const value h = tanh(matmul(g.placeholder("x", {batch, 4}), g.variable("v", {4, 3})));
  g.add_output(output::loss, "loss", reduce_mean(square(g.variable("w", {3}) * h)));
}
}  // namespace

// Each update comes right behind what it waits for; without the pass all come at the end. Nothing is lost.
static_assert([] {
  for (const gating gate : {gating::none, gating::op}) {
    const graph before = gated(gate), after = released(gate);
    if (broken_law(parts_of(after)) != nullptr || longest_wait(after) != 1 || longest_wait(before) <= 1) return false;
    if (after.nodes.count != before.nodes.count || after.edges.count != before.edges.count) return false;
    if (count_of(after, cards::apply) != 3 || after.outputs.count != before.outputs.count) return false;
  }
  return true;
}());
static_assert([] {
  const graph g = released(gating::op, two_at_once);
  const int wait = longest_wait(g);
  return broken_law(parts_of(g)) == nullptr && (wait == 1 || wait == 2);
}());

// An update waits for who still reads its variable, not for its gradient alone.
static_assert([] {
  const graph g = released(gating::none, read_late);
  return broken_law(parts_of(g)) == nullptr && longest_wait(g) == 1;
}());

TEST_CASE("a released gradient has a slot from the node that makes it to its update") {
  const graph g = released(gating::op);
  const detail::program kept = detail::plan(parts_of(g)), free = detail::plan(parts_of(g), true, true);
  for (int i = 0; i < g.nodes.count; ++i) {
    if (g.nodes[i].op != &cards::apply) continue;
    const int gradient = g.edges[g.nodes[i].first + 1];
    CHECK(kept.places[gradient].region == node_place::gradient);
    REQUIRE(free.places[gradient].region == node_place::slot);
    const slot_lifetime life = free.lives[free.places[gradient].index];
    CHECK(life.first == gradient);
    CHECK(life.last == i);
  }
  CHECK(free.slots.count == kept.slots.count + 3);
}
