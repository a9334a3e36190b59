#include "../ops/refusal.hpp"

#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr int many(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
template <auto Build>
constexpr graph trained(bool norm = false) {
  graph g;
  decltype(Build){}(g);  // a copy: see ops/refusal.hpp
  return minimize(parts_of(g), {gating::none, norm});
}
constexpr auto one_layer = [](graph& g) {
  const value x = g.placeholder("x", {batch, 3});
  g.variable("frozen", {3}, {.trainable = false});
  g.variable("unused", {3});
  g.add_output(output::loss, "loss", reduce_mean(square(dense(x, {.units = 2}))));
};
// before: two trainable variables that the loss depends on, one that it does not, one that is not trainable.
// after: two updates, of the right variables, each an output.
static_assert([] {
  const graph g = trained<one_layer>();
  int updates = 0;
  for (int i = 0; i < g.outputs.count; ++i) updates += g.outputs[i].kind == output::update;
  bool fits = true;
  for (int i = 0; i < g.nodes.count; ++i) {
    const node& n = g.nodes[i];
    if (n.op != &cards::apply) continue;
    const node &variable = g.nodes[g.edges[n.first]], &gradient = g.nodes[g.edges[n.first + 1]];
    fits = fits && variable.op == &variable_card && variable.dims == gradient.dims && variable.type == gradient.type &&
           n.inputs == 2 && n.scope == graph::gradient_scope &&
           !gradient.op->is(trait::view | trait::leaf | trait::writes);
  }
  return fits && updates == 2 && many(g, cards::apply) == 2 && many(g, cards::global_norm) == 0 &&
         broken_law(parts_of(g)) == nullptr;
}());
static_assert([] {
  const graph g = trained<one_layer>(true);
  int norms = 0;
  for (int i = 0; i < g.outputs.count; ++i) norms += g.outputs[i].kind == output::norm;
  return norms == 1 && many(g, cards::global_norm) == 1 && broken_law(parts_of(g)) == nullptr;
}());
// What was built stays in front, unchanged.
static_assert([] {
  graph built;
  one_layer(built);
  const graph g = minimize(parts_of(built), {});
  for (int i = 0; i < built.nodes.count; ++i)
    if (g.nodes[i].op != built.nodes[i].op || g.nodes[i].name != built.nodes[i].name) return false;
  return true;
}());

// Gradients that are views, or one node for two variables, become nodes of their own: each will lie in its place.
constexpr auto shared_gradient = [](graph& g) {
  const value a = g.variable("a", {4}), b = g.variable("b", {4}), c = g.variable("c", {2, 2});
  const value sum = a + b;
  g.add_output(output::loss, "loss", reduce_sum(square(sum + reshape(c, {4}))));
};
static_assert([] {
  const graph g = trained<shared_gradient>();
  detail::seq<int> gradients;
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::apply) gradients.push(g.edges[g.nodes[i].first + 1]);
  for (int i = 0; i < gradients.count; ++i)
    for (int j = 0; j < i; ++j)
      if (gradients[i] == gradients[j]) return false;
  return gradients.count == 3 && many(g, cards::copy) == 2 && broken_law(parts_of(g)) == nullptr;
}());
constexpr auto embedded = [](graph& g) {
  const value ids = g.placeholder("ids", {batch}, int32);
  g.add_output(output::loss, "loss", reduce_sum(square(embedding(ids, {.input_dim = 7, .output_dim = 3}))));
};
static_assert([] {
  const graph g = trained<embedded>();
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::apply)
      return g.nodes[i].inputs == 3 && g.nodes[g.edges[g.nodes[i].first + 2]].type == int32;
  return false;
}());

constexpr auto no_loss = [](graph& g) {
  g.variable("w", {});
  const graph m = minimize(parts_of(g), {});
  if (!m.refusal.empty()) g.refuse(std::string_view(m.refusal.first, static_cast<std::size_t>(m.refusal.count)));
};
constexpr auto no_variables = [](graph& g) {
  g.add_output(output::loss, "loss", g.placeholder("x", {}));
  const graph m = minimize(parts_of(g), {});
  if (!m.refusal.empty()) g.refuse(std::string_view(m.refusal.first, static_cast<std::size_t>(m.refusal.count)));
};
constexpr auto no_gradients = [](graph& g) {
  g.variable("w", {});
  g.add_output(output::loss, "loss", g.placeholder("x", {}));
  const graph m = minimize(parts_of(g), {});
  if (!m.refusal.empty()) g.refuse(std::string_view(m.refusal.first, static_cast<std::size_t>(m.refusal.count)));
};
}  // namespace

TEST_CASE("refusals") {
  refusal_test::check<no_loss>("the model has no loss: return model_spec{.loss = ...}");
  refusal_test::check<no_variables>("the model has no trainable variables");
  refusal_test::check<no_gradients>(
      "no gradients provided for any variable: the loss does not depend on them, or only through labels, integers or "
      "stop_gradient");
}
TEST_CASE("the same at run time") {
  CHECK(many(trained<one_layer>(), cards::apply) == 2);
  CHECK(many(trained<shared_gradient>(), cards::copy) == 2);
  CHECK(name_of(mode::train) == "train");
  CHECK(gate_op::value == gating::op);
}
