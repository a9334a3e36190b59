#include <gradus/ops/layer.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/gate.hpp>
#include <gradus/pass/minimize.hpp>
#include <gradus/pass/plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace gradus;

namespace {

struct numbers {
  std::uint32_t state;
  int operator()(int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 9) % static_cast<std::uint32_t>(below));
  }
};

// A graph of products, sums, sweeps, views and writes over a few shapes, in random order, with random outputs.
graph random_graph(std::uint32_t seed) {
  numbers draw{seed};
  graph g;
  std::vector<value> squares{g.placeholder("x", {batch, 4}), g.placeholder("y", {batch, 4})}, rows;
  const value w = g.variable("w", {4, 4}), b = g.variable("b", {4});
  squares.push_back(g.constant(2, float32, {batch, 4}));
  const auto any = [&](std::vector<value>& v) { return v[static_cast<std::size_t>(draw(static_cast<int>(v.size())))]; };
  for (int i = 0, n = 10 + draw(40); i < n; ++i) {
    const value p = any(squares), q = any(squares);
    switch (draw(9)) {
    case 0: squares.push_back(matmul(p, w)); break;
    case 1: squares.push_back(p + q); break;
    case 2: squares.push_back(tanh(p)); break;
    case 3: rows.push_back(reduce_sum(p, {1})); break;
    case 4: squares.push_back(reshape(reshape(p, {2 * batch, 2}), {batch, 4})); break;
    case 5: squares.push_back(identity(p)); break;
    case 6: squares.push_back(p + b); break;
    case 7: assign_add(b, reduce_mean(p, {0})); break;
    default: squares.push_back(softmax(p)); break;
    }
    if (draw(12) == 0) g.add_output(output::fetch, "o", squares.back());
  }
  g.add_output(output::fetch, "last", squares.back());
  if (!rows.empty()) g.add_output(output::fetch, "row", rows.back());
  return g;
}

// The memory of a node, by its own rules: views and writes have their operand's.
std::vector<int> memories(const graph_view& v) {
  std::vector<int> of(static_cast<std::size_t>(v.size));
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    of[static_cast<std::size_t>(i)] =
        n.op->is(trait::view | trait::writes) ? of[static_cast<std::size_t>(v.edges[n.first])] : i;
  }
  return of;
}
// Where the slots lie for a batch: first the bytes, then the offsets.
constexpr std::int64_t places(const detail::program& p, std::int64_t batch_size, detail::seq<std::size_t>& offsets) {
  const auto size = [&](int k) { return (static_cast<std::size_t>(resolve(p.slots[k], batch_size)) + 7) / 8 * 8; };
  offsets = detail::seq<std::size_t>(p.slots.count, 0);
  detail::seq<int> order(2 * p.slots.count, 0);
  std::size_t at = 0;
  for (int k = 0; k < p.slots.count; ++k)
    if (p.lives[k].always()) offsets[k] = at, at += size(k);
  return static_cast<std::int64_t>(lay_out_slots(p.lives.first, p.slots.count, size, at, offsets.first, order.first));
}
// Whether node i may take over the memory of its operand j: an elementwise result of the same type and size, of which
// place k is made from place k.
bool in_place(const graph_view& v, int i, int j) {
  const node &to = v.nodes[i], &from = v.nodes[j];
  return to.op == &cards::fused && to.type == from.type && count(to.dims) == count(from.dims);
}
// Intervals [made, last use] per memory; two that meet must lie apart, but for a result in its operand's place. Empty
// text if all is well.
std::string clash(const graph_parts& p, const detail::program& plan) {
  const graph_view& v = p.view;
  const auto memory = memories(v);
  const auto at = [](auto& x, int i) -> auto& { return x[static_cast<std::size_t>(i)]; };
  std::vector<int> until(static_cast<std::size_t>(v.size));
  std::iota(until.begin(), until.end(), 0);
  for (int i = 0; i < v.size; ++i)
    for (int k = 0; k < v.nodes[i].inputs; ++k) at(until, at(memory, v.edges[v.nodes[i].first + k])) = i;
  for (int o = 0; o < p.output_count; ++o) at(until, at(memory, p.outputs[o].node)) = v.size;
  detail::seq<std::size_t> offsets;
  const std::int64_t all = places(plan, 7, offsets);
  const auto from = [&](int i) { return static_cast<std::int64_t>(offsets[plan.places[i].index]); };
  const auto to = [&](int i) { return from(i) + resolve(plan.slots[plan.places[i].index], 7); };
  for (int i = 0; i < v.size; ++i) {
    if (v.nodes[i].op->is(trait::control)) continue;
    if (!(plan.places[i] == plan.places[at(memory, i)])) return text("node ", i, " does not lie where its memory is");
    if (at(memory, i) != i || plan.places[i].region != node_place::slot) continue;
    const std::int64_t bytes = count(v.nodes[i].dims) * static_cast<std::int64_t>(size_of(v.nodes[i].type));
    if (plan.slots[plan.places[i].index] != bytes) return text("node ", i, " does not fit its slot");
    if (from(i) % 8 != 0 || to(i) > all) return text("node ", i, " is out of bounds or off its boundary");
    const bool kept = v.nodes[i].op->is(trait::leaf);
    for (int j = 0; j < i; ++j) {
      if (at(memory, j) != j || plan.places[j].region != node_place::slot || from(i) >= to(j) || from(j) >= to(i))
        continue;
      if (kept || v.nodes[j].op->is(trait::leaf)) return text("leaf shares its memory: ", j, " and ", i);
      if (at(until, j) == i && from(i) == from(j) && in_place(v, i, j)) continue;
      if (at(until, j) >= i) return text("node ", i, " is written while ", j, " is still read, by ", at(until, j));
    }
  }
  return "";
}
constexpr std::int64_t total(const detail::program& p, std::int64_t batch_size) {
  detail::seq<std::size_t> offsets;
  return places(p, batch_size, offsets);
}

constexpr graph chain() {
  graph g;
  value x = g.placeholder("x", {batch, 8});
  for (int i = 0; i < 20; ++i) x = softmax(x);
  g.add_output(output::fetch, "y", x);
  return g;
}
// The sum of two tensors that end there lies where one of them lay.
constexpr graph two_and_their_sum() {
  graph g;
  const value a = softmax(g.placeholder("x", {batch, 8})), b = softmax(a);
  g.add_output(output::fetch, "y", (a + b) * 2.0f);
  return fuse(parts_of(g));
}
static_assert([] {
  const graph g = two_and_their_sum();
  return total(detail::plan(parts_of(g), true), 5) == 3 * 5 * 32 + 8 &&
         total(detail::plan(parts_of(g), false), 5) == 4 * 5 * 32 + 8;
}());
// Twenty in a row need the memory of two beside the placeholder's.
static_assert([] {
  const graph g = chain();
  return total(detail::plan(parts_of(g), true), 5) == 3 * 5 * 32 &&
         total(detail::plan(parts_of(g), false), 5) == 21 * 5 * 32 && detail::plan(parts_of(g)).signatures.count == 1;
}());

}  // namespace

TEST_CASE("random graphs: tensors that are alive together never share memory") {
  int smaller = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const graph g = random_graph(seed), f = fuse(parts_of(g));
    for (const graph* each : {&g, &f}) {
      const detail::program shared = detail::plan(parts_of(*each), true), apart = detail::plan(parts_of(*each), false);
      CHECK(clash(parts_of(*each), shared) == "");
      CHECK(clash(parts_of(*each), apart) == "");
      CHECK(total(shared, 7) <= total(apart, 7));
      smaller += total(shared, 7) < total(apart, 7);
    }
  }
  CHECK(smaller > 200);
}

TEST_CASE("a training graph: gradients lie in the gradient arena at their variable's place") {
  graph g;
  const value x = g.placeholder("x", {batch, 6});
  g.variable("frozen", {2}, {.trainable = false});
  value y = x;
  for (int i = 0; i < 4; ++i) y = dense(y, {.units = 6, .activation = tanh});
  g.add_output(output::loss, "loss", reduce_mean(square(y)));
  const graph m = minimize(parts_of(g), {});
  const graph d = remove_dead(parts_of(m)), c = merge_common(parts_of(d)), f = fuse(parts_of(c)),
              ready = add_gates(parts_of(f));
  const detail::program p = detail::plan(parts_of(ready), true);
  CHECK(clash(parts_of(ready), p) == "");
  CHECK(p.trainable == 8);
  CHECK(p.variables.count == 9);  // the one that is not trained comes last
  CHECK(ready.nodes[p.variables[8]].dims == shape{2});
  int updates = 0;
  for (int i = 0; i < ready.nodes.count; ++i) {
    const node& n = ready.nodes[i];
    if (n.op != &cards::apply) continue;
    ++updates;
    const node_place variable = p.places[ready.edges[n.first]], gradient = p.places[ready.edges[n.first + 1]];
    CHECK(variable.region == node_place::variable);
    CHECK(gradient == node_place{node_place::gradient, variable.index});
  }
  CHECK(updates == 8);
  CHECK(p.calls.count < ready.nodes.count);
  CHECK(p.signatures.count < p.calls.count);  // equal layers share kernels
  int previous = -1;
  for (const detail::call& k : p.calls) {  // calls in the graph's order; args are the result and the operands
    CHECK(k.node > previous);
    CHECK(p.args[k.first] == k.node);
    CHECK(k.count == ready.nodes[k.node].inputs + 1);
    previous = k.node;
  }
}

TEST_CASE("slots of several sizes fit between each other: the worst moment's bytes, where that can be") {
  // a: 0-2, b: 1-3, c: 3-4 where a was, d: 4-5 where b was, e: 3-3 in what is left of a's place
  const slot_lifetime lives[] = {{0, 2}, {1, 3}, {3, 4}, {4, 5}, {3, 3}, {}};
  const std::size_t sizes[] = {64, 32, 48, 32, 16, 8};
  std::size_t offsets[6] = {};
  int order[12] = {};
  CHECK(lay_out_slots(
            lives, 6, [&](int k) { return sizes[k]; }, 8, offsets, order) == 8 + 64 + 32);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < i; ++j)
      if (lives[i].meets(lives[j])) CHECK((offsets[i] >= offsets[j] + sizes[j] || offsets[j] >= offsets[i] + sizes[i]));
  CHECK(offsets[5] == 0);
  CHECK(lay_out_slots(
            lives, 0, [&](int k) { return sizes[k]; }, 8, offsets, order) == 8);
}

TEST_CASE("random lifetimes: nothing that is alive together overlaps, and little is wasted") {
  numbers draw{5};
  double used = 0, needed = 0;
  for (int trial = 0; trial < 100; ++trial) {
    constexpr int n = 60;
    slot_lifetime lives[n];
    std::size_t sizes[n], offsets[n] = {}, worst = 0;
    int order[2 * n];
    for (int k = 0; k < n; ++k) lives[k] = {k, k + draw(20)}, sizes[k] = static_cast<std::size_t>(64 * draw(30));
    const std::size_t end = lay_out_slots(
        lives, n, [&](int k) { return sizes[k]; }, 0, offsets, order);
    for (int i = 0; i < n; ++i) {
      std::size_t alive = 0;
      for (int j = 0; j < n; ++j) {
        if (lives[j].first <= i && i <= lives[j].last) alive += sizes[j];
        if (j < i && lives[i].meets(lives[j]) && offsets[i] < offsets[j] + sizes[j])
          CHECK(offsets[j] >= offsets[i] + sizes[i]);
      }
      worst = std::max(worst, alive);
      CHECK(offsets[i] + sizes[i] <= end);
    }
    used += static_cast<double>(end), needed += static_cast<double>(worst);
  }
  CHECK(used < 1.15 * needed);
}
