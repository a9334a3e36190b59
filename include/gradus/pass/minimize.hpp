// The training graph: gradients of the loss, and one update per variable that has one.
#pragma once
#include "../base/contract.hpp"
#include "../ops/state.hpp"
#include "autodiff.hpp"
#include "rewrite.hpp"

namespace gradus {

// When updates may start (tf.train.Optimizer.GATE_*). Gates change order, never values.
enum class gating : int { none = 0, op = 1, graph = 2 };
struct gate_none {
  using policy_for = kind::gate;
  static constexpr gating value = gating::none;
};
struct gate_op {  // the default
  using policy_for = kind::gate;
  static constexpr gating value = gating::op;
};
struct gate_graph {
  using policy_for = kind::gate;
  static constexpr gating value = gating::graph;
};

struct minimize_options {
  gating gate = gating::op;
  bool needs_norm = false;  // a global norm is known before any update (clip_by_global_norm)
};

namespace detail {
// Each dense gradient becomes a node of its own that is no view: it will lie in the gradient arena.
constexpr value materialize(graph& g, value v, seq<char>& taken) {
  const node& n = g.nodes[v.id];
  if (v.id < taken.count && taken[v.id] == 0 && !n.op->is(trait::view | trait::leaf | trait::writes)) {
    taken[v.id] = 1;
    return v;
  }
  return g.add(cards::copy, {v});
}
}  // namespace detail

// Adds gradients of output::loss with respect to every trainable variable, then an `apply` node for each.
constexpr graph minimize(const graph_parts& p, const minimize_options& o) {
  graph g = detail::thaw(p);
  g.enter_gradient_scope();
  int loss = -1;
  for (int i = 0; i < p.output_count; ++i)
    if (p.outputs[i].kind == output::loss) loss = p.outputs[i].node;
  if (loss < 0) {
    g.refuse("the model has no loss: return model_spec{.loss = ...}");
    return g;
  }
  seq<value> variables;
  for (int i = 0; i < p.view.size; ++i) {
    const node& n = p.view.nodes[i];
    if (n.op == &variable_card && from_words<variable_attr>(p.view.ints + n.attr).trainable != 0)
      variables.push({&g, i});
  }
  if (variables.empty()) {
    g.refuse("the model has no trainable variables");
    return g;
  }
  const value y{&g, loss};
  gradients_options options;
  options.gate_gradients = o.gate == gating::op;
  detail::differentiation d(
      g, std::span(&y, 1), std::span<const value>(variables.first, static_cast<std::size_t>(variables.count)), options);
  seq<gradient_value> grads;
  seq<value> norm_of;
  bool any = false;
  for (const value& v : variables) grads.push(d.of(v));
  seq<char> taken(g.nodes.count, 0);
  for (gradient_value& v : grads) {
    any = any || v;
    if (v.dense) v.dense = detail::materialize(g, v.dense, taken);
    if (v) norm_of.push(v.sparse() ? v.values : v.dense);
  }
  if (!any) {
    g.refuse("no gradients provided for any variable: the loss does not depend on them");
    return g;
  }
  value all;  // what every update waits for
  if (o.needs_norm) {
    all = g.add(cards::global_norm, norm_of.first, norm_of.count);
    g.outputs.push({output::norm, -1, all.id});
  } else if (o.gate == gating::graph) {
    all = g.add(no_op_card, nullptr, 0);
    for (const value& v : norm_of) g.depend(all, v);
  }
  for (int i = 0; i < variables.count; ++i) {
    const gradient_value& v = grads[i];
    if (!v) continue;
    const value operands[3] = {variables[i], v.sparse() ? v.values : v.dense, v.indices};
    const value update = g.add(cards::apply, operands, v.sparse() ? 3 : 2);
    if (all) g.depend(update, all);
    g.outputs.push({output::update, -1, update.id});
  }
  return g;
}

}  // namespace gradus
