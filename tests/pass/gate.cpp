#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/gate.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

// Whether node a waits for node b, by a path of data and control edges.
constexpr bool waits_for(const graph& g, int a, int b) {
  detail::seq<char> reached(g.nodes.count, 0);
  reached[a] = 1;
  for (int i = a; i > b; --i) {
    if (reached[i] == 0) continue;
    const node& n = g.nodes[i];
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) reached[g.edges[e]] = 1;
  }
  return reached[b] != 0;
}
// The update of the k-th variable that is updated, in order of the graph; -1 for none.
constexpr int update_of(const graph& g, int k) {
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::apply && k-- == 0) return i;
  return -1;
}
constexpr int gradient_of(const graph& g, int k) { return g.edges[g.nodes[update_of(g, k)].first + 1]; }
constexpr int only(const graph& g, const card& op) {
  int at = -1;
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &op) at = i;
  return at;
}

constexpr void two_layers(graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  const value hidden = tanh(matmul(x, g.variable("first", {4, 3})));
  g.add_output(output::loss, "loss", reduce_mean(square(matmul(hidden, g.variable("second", {3, 2})))));
}
constexpr graph gated(gating gate, bool norm = false, void (*build)(graph&) = two_layers) {
  graph g;
  build(g);
  const graph m = minimize(parts_of(g), {gate, norm});
  const graph d = remove_dead(parts_of(m));
  return add_gates(parts_of(d));
}
// The operand's gradient of the second product: what tanh's gradient reads.
constexpr int hidden_gradient(const graph& g) { return g.edges[g.nodes[only(g, cards::tanh_grad)].first]; }
constexpr bool lawful(const graph& g) { return broken_law(parts_of(g)) == nullptr && g.gates.empty(); }

// gate_none: the second layer's update waits for its own gradient, and for nothing of the first layer's. It can start
// before the last gradient is computed. Its variable is read by the gradient of its operand: that comes before.
static_assert([] {
  const graph g = gated(gating::none);
  return lawful(g) && !waits_for(g, update_of(g, 1), gradient_of(g, 0)) &&
         !waits_for(g, update_of(g, 0), gradient_of(g, 1)) && waits_for(g, update_of(g, 1), gradient_of(g, 1)) &&
         waits_for(g, update_of(g, 1), hidden_gradient(g));
}());
// Nor are the two gradients of one op held together.
static_assert([] {
  const graph g = gated(gating::none);
  return !waits_for(g, only(g, cards::tanh_grad), gradient_of(g, 1));
}());
// gate_op: both gradients of the product exist before either is used; later layers are not waited for.
static_assert([] {
  const graph g = gated(gating::op);
  return lawful(g) && waits_for(g, only(g, cards::tanh_grad), gradient_of(g, 1)) &&
         waits_for(g, update_of(g, 1), hidden_gradient(g)) && !waits_for(g, update_of(g, 1), gradient_of(g, 0));
}());
// gate_graph: every gradient before any update; but not the gates of gate_op.
static_assert([] {
  const graph g = gated(gating::graph);
  return lawful(g) && waits_for(g, update_of(g, 1), gradient_of(g, 0)) &&
         waits_for(g, update_of(g, 0), gradient_of(g, 1)) &&
         !waits_for(g, only(g, cards::tanh_grad), gradient_of(g, 1));
}());
// A global norm is known before any update, whatever the gate.
static_assert([] {
  const graph g = gated(gating::none, true);
  return lawful(g) && waits_for(g, update_of(g, 1), gradient_of(g, 0)) &&
         waits_for(g, update_of(g, 0), only(g, cards::global_norm));
}());
// Gates are control edges only: data edges are the same ones.
static_assert([] {
  graph built;
  two_layers(built);
  const graph m = minimize(parts_of(built), {gating::op, false});
  const graph g = add_gates(parts_of(m));
  if (g.nodes.count != m.nodes.count) return false;
  for (int i = 0; i < g.nodes.count; ++i)
    for (int k = 0; k < g.nodes[i].inputs; ++k)
      if (g.edges[g.nodes[i].first + k] != m.edges[m.nodes[i].first + k]) return false;
  return true;
}());

// A sparse gradient: its values wait, its indices do not.
constexpr void lookup(graph& g) {
  const value ids = g.placeholder("ids", {batch}, int32);
  const value rows = gather(g.variable("table", {5, 3}), ids);
  g.add_output(output::loss, "loss", reduce_mean(square(matmul(rows, g.variable("w", {3, 2})))));
}
static_assert([] {
  const graph g = gated(gating::graph, false, lookup);
  const node& sparse = g.nodes[update_of(g, 0)];
  const int indices = g.edges[sparse.first + 2], values = g.edges[sparse.first + 1];
  return lawful(g) && sparse.inputs == 3 && waits_for(g, update_of(g, 1), values) &&
         waits_for(g, update_of(g, 0), gradient_of(g, 1)) && !waits_for(g, indices, values);
}());
// An op with one gradient has no gate.
constexpr void one_variable(graph& g) { g.add_output(output::loss, "loss", reduce_mean(square(g.variable("w", {3})))); }
static_assert([] {
  graph g;
  one_variable(g);
  return minimize(parts_of(g), {gating::op, false}).gates.empty();
}());

// Program order of reads and writes: a write waits for the reads before it, a read for the write before it; through
// views and results of writes too. Reads do not wait for each other.
constexpr graph ordered() {
  graph g;
  const value w = g.variable("w", {2});
  const value view = reshape(w, {1, 2});
  const value a = exp(w), b = exp(view);                          // 2, 3
  const value next = assign_add(w, g.constant(1, float32, {2}));  // 5
  const value c = log(w), d = log(view), e = sqrt(next);          // 6, 7, 8
  assign(w, g.constant(2, float32, {2}));                         // 10
  for (value v : {a, b, c, d, e}) g.add_output(output::fetch, "v", v);
  return add_gates(parts_of(g));
}
static_assert([] {
  const graph g = ordered();
  if (g.nodes[5].op != &cards::assign_add || g.nodes[10].op != &cards::assign || broken_law(parts_of(g)) != nullptr)
    return false;
  for (int before : {2, 3})
    if (!waits_for(g, 5, before)) return false;
  for (int after : {6, 7, 8})
    if (!waits_for(g, after, 5) || !waits_for(g, 10, after)) return false;
  return !waits_for(g, 3, 2) && !waits_for(g, 7, 6) && waits_for(g, 10, 5);
}());
}  // namespace

TEST_CASE("the same at run time") {
  for (gating gate : {gating::none, gating::op, gating::graph}) {
    const graph g = gated(gate);
    CHECK(lawful(g));
    CHECK(waits_for(g, update_of(g, 1), gradient_of(g, 0)) == (gate == gating::graph));
  }
  CHECK(broken_law(parts_of(ordered())) == nullptr);
}
