#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/fuse.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace gradus;

namespace {

// A graph with one of everything that a law speaks of.
constexpr graph build() {
  graph g;
  const value x = g.placeholder("x", {batch, 4});
  const value w = g.variable("w", {4, 3});
  const value y = reduce_mean(square(tanh(matmul(x, w))));
  const value next = assign_add(w, g.constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {4, 3}));
  g.group({y, next}, "both");
  g.add_output(output::loss, "loss", y);
  g.gates.push(2), g.gates.push(y.id), g.gates.push(next.id);
  return g;
}
constexpr graph fused() {
  const graph g = build();
  return fuse(parts_of(g));
}
static_assert(broken_law(parts_of(build())) == nullptr);
static_assert(broken_law(parts_of(fused())) == nullptr);

int of(const graph& g, const card& op) {
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &op) return i;
  return -1;
}

}  // namespace

TEST_CASE("each law is broken by one change, and named") {
  std::set<std::string> seen;
  const auto breaks = [&](const char* law, auto change, graph g = build()) {
    change(g);
    const char* found = broken_law(parts_of(g));
    REQUIRE(found != nullptr);
    CHECK(std::string(found).find(law) != std::string::npos);
    seen.insert(found);
  };
  const graph g = build(), f = fused();
  const int mean = of(g, cards::mean), add = of(g, cards::assign_add), w = of(g, variable_card),
            many = of(g, constant_card), fusion = of(f, cards::fused_reduction);
  breaks("names an op", [&](graph& b) { b.nodes[mean].op = nullptr; });
  breaks("names an op", [&](graph& b) { b.nodes[mean].first = b.edges.count; });
  breaks("names an op", [&](graph& b) { b.nodes[w].attr = -1; });
  breaks("a data edge", [&](graph& b) { b.edges[b.nodes[mean].first] = mean; });
  breaks("a data edge", [&](graph& b) { b.edges[b.nodes[mean].first] = -1; });
  breaks("a control edge", [&](graph& b) { b.edges[b.nodes[b.nodes.count - 1].first] = b.nodes.count - 1; });
  breaks("as many operands", [&](graph& b) { b.nodes[add].inputs = 1, b.nodes[add].controls = 1; });
  breaks("data comes from", [&](graph& b) {
    b.nodes.push(b.nodes[mean]);
    node& n = b.nodes[b.nodes.count - 1];
    n.first = b.edges.count;
    b.edges.push(b.nodes.count - 2);
  });
  breaks("one batch extent", [&](graph& b) { b.nodes[of(b, placeholder_card)].dims = {batch, batch}; });
  breaks("one batch extent", [&](graph& b) { b.nodes[w].dims = {batch, 3}; });
  breaks("can count", [&](graph& b) { b.nodes[w].dims = {4, 1 << 16, 1 << 16}; });
  breaks("can count", [&](graph& b) { b.nodes[w].dims = {1 << 16, 1 << 16}; });  // the product's operand
  breaks("can count", [&](graph& b) { b.nodes[of(b, placeholder_card)].dims = {-2147483647 - 1}; });
  breaks("a constant", [&](graph& b) { b.nodes[many].attrs -= 2; });
  breaks("shape and dtype", [&](graph& b) { b.nodes[mean].dims = {7}; });
  breaks("shape and dtype", [&](graph& b) { b.nodes[of(b, cards::tanh)].type = float64; });
  breaks("shape and dtype", [&](graph& b) {
    b.nodes[w].dims = {5, 3};
  });  // the product's rule refuses it: no exception
  breaks("operand 0", [&](graph& b) {
    b.nodes[w].op = &constant_card;  // nothing else looks at what kind of leaf it is
    b.nodes[w].attrs = 2;
    b.nodes[add].op = &cards::apply, b.nodes[add].inputs = 2;
    static constexpr card writer{"Write", 2, trait::keeps | trait::writes};
    b.nodes[add].op = &writer;
  });
  breaks("a name names", [&](graph& b) { b.nodes[mean].name = b.nodes[w].name; });
  breaks("have names", [&](graph& b) { b.nodes[w].name = -1; });
  breaks("an output", [&](graph& b) { b.outputs[0].node = b.nodes.count; });
  breaks("an output", [&](graph& b) { b.outputs[0].node = w; });
  breaks("a gate", [&](graph& b) { b.gates[0] = 3; });
  breaks("a gate", [&](graph& b) { b.gates[1] = b.nodes.count; });
  breaks(
      "a fused node", [&](graph& b) { b.expressions[0].arg[0][0] = 9; }, f);
  breaks(
      "a fused node", [&](graph& b) { b.expressions[0].op[0] = &cards::mean; }, f);
  breaks(
      "a fused node", [&](graph& b) { b.expressions[0].operand_type[0] = float64; }, f);
  breaks(
      "a fused node", [&](graph& b) { b.expressions[0].steps = 0; }, f);
  breaks(
      "a fused node", [&](graph& b) { b.ints[b.nodes[fusion].attr + b.nodes[fusion].attrs - 1] = 7; }, f);
  CHECK(seen.size() == std::size(laws));  // every law was broken once
}
