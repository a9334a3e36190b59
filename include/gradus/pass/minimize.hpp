// This pass makes the training graph: it adds gradients of the loss, and one update per variable that has a gradient. A
// model that made its own train op (pass/optimize.hpp) keeps it: then only what the plan needs is added.
#pragma once
#include "../base/contract.hpp"
#include "../ops/state.hpp"
#include "autodiff.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

// When updates may start (tf.train.Optimizer.GATE_*). Gates change the order, never the values.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ reports enumerators of a scoped enum as shadowing the namespace
enum class gating : int { none = 0, op = 1, graph = 2 };
#pragma GCC diagnostic pop
// There is no gate: an update is made as soon as its own gradient is computed.
struct gate_none {
  using policy_for = kind::gate;
  static constexpr gating value = gating::none;
};
// A variable is updated once every op that reads it has computed its gradients.
struct gate_op {  // the default
  using policy_for = kind::gate;
  static constexpr gating value = gating::op;
};
// All gradients are computed before the first update, as clips by the global norm need it.
struct gate_graph {
  using policy_for = kind::gate;
  static constexpr gating value = gating::graph;
};

struct minimize_options {
  gating gate = gating::op;
  bool needs_norm = false;   // a global norm must be computed before any update (clip_by_global_norm)
  bool scales_loss = false;  // gradients are those of the loss times the loss scale; the loss itself does not change
};

namespace detail {
// Makes each dense gradient a node of its own that is no view, because it will be in the gradient arena.
constexpr value materialize(graph& g, value v, seq<char>& taken) {
  const node& n = g.nodes[v.id];
  if (v.id < taken.count && taken[v.id] == 0 && !n.op->is(trait::view | trait::leaf | trait::writes)) {
    taken[v.id] = 1;
    return v;
  }
  return g.add(cards::copy, {v});
}
// Adds an update of (variable, gradient) or (variable, values, rows). It holds its variable's constraint.
constexpr value add_apply(graph& g, const value* operands, int count) {
  const constraint c = constraint_of(g.nodes[operands[0].id], g.ints.first);
  if (!c) return g.add(cards::apply, operands, count);
  if (count == 3)
    g.refuse("Cannot use a constraint function on a sparse variable: the gradient of a constrained variable ",
             operands[0].dims(), " comes as rows; drop the constraint, or look rows up by a product with one_hot");
  const auto words = to_words(c);
  return g.add(cards::apply, operands, count, words.data(), static_cast<int>(words.size()));
}
}  // namespace detail

namespace detail {
// Returns whether the model returned a train op, which is the one update output that has a name.
constexpr bool has_train_op(const graph_parts& p) {
  for (int i = 0; i < p.output_count; ++i)
    if (p.outputs[i].kind == output::update && p.outputs[i].name >= 0) return true;
  return false;
}

// Makes the model's own updates fit for the plan, which puts a dense gradient beside its variable: such a gradient must
// be a node of its own that nothing else reads after the next update of the same variable.
class own_updates {
public:
  constexpr own_updates(const graph_parts& p, const minimize_options& o)
      : p_(p),
        v_(p.view),
        o_(o),
        g_(p.what),
        map_(v_.size, -1),
        readers_(v_.size, 0),
        updates_(v_.size, 0),
        last_(v_.size, -1) {}
  constexpr graph run() {
    g_.nodes.reserve(v_.size * 2 + 16), g_.edges.reserve(v_.edge_count * 2 + 64), g_.ints.reserve(v_.int_count + 16);
    g_.enter_gradient_scope();
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      if (n.op->is(trait::session) && n.op->is(trait::writes) && n.op != &cards::apply) {
        g_.refuse(
            "the train op is a gradus::optimizer's, which needs a session; in a model use gradus::minimize or "
            "gradus::apply_gradients, and give the rule to the trainer");
        return std::move(g_);
      }
      if (n.op != &cards::apply) continue;
      ++updates_[v_.edges[n.first]], ++readers_[v_.edges[n.first + 1]];
    }
    for (int i = 0; i < v_.size; ++i) {
      if (v_.nodes[i].op == &cards::apply)
        update(i);
      else
        emit(g_, v_, i, map_.first);
    }
    carry(g_, p_, map_.first);
    return std::move(g_);
  }

private:
  const graph_parts& p_;
  const graph_view& v_;
  const minimize_options& o_;
  graph g_;
  seq<int> map_, readers_, updates_, last_;
  value norm_;

  constexpr int input(int i, int k) const { return v_.edges[v_.nodes[i].first + k]; }
  // Adds the global norm of all gradients, which is computed before the first update.
  constexpr void add_norm(int first) {
    seq<value> of;
    for (int i = first; i < v_.size; ++i) {
      if (v_.nodes[i].op != &cards::apply) continue;
      if (map_[input(i, 1)] < 0)
        return g_.refuse(
            "clip_by_global_norm needs all gradients before the first update, and this model computes some "
            "after it: give all to one apply_gradients, or clip them in the model");
      of.push({&g_, map_[input(i, 1)]});
    }
    norm_ = g_.add(cards::global_norm, of.first, of.count);
    for (int i = 0; i < p_.output_count; ++i)  // code that reads the norm may read the loss
      if (p_.outputs[i].kind == output::loss && map_[p_.outputs[i].node] >= 0)
        g_.depend(norm_, {&g_, map_[p_.outputs[i].node]});
    g_.outputs.push({output::norm, -1, norm_.id});
  }
  constexpr void update(int i) {
    if (o_.needs_norm && !norm_) add_norm(i);
    const node& n = v_.nodes[i];
    const int variable = input(i, 0);
    int grad = input(i, 1);
    seq<int> waits;
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e) waits.push(map_[v_.edges[e]]);
    if (norm_) waits.push(norm_.id);
    // A gate of all gradients returned this, so the update itself waits.
    for (const node* d = v_.nodes + grad; d->op == &cards::identity && d->controls != 0; d = v_.nodes + grad) {
      for (int e = d->first + d->inputs, end = e + d->controls; e < end; ++e) waits.push(map_[v_.edges[e]]);
      if (++readers_[v_.edges[d->first]] > 1 || n.inputs != 2) break;
      grad = v_.edges[d->first];
    }
    value given{&g_, map_[grad]};
    const node& d = v_.nodes[grad];
    if (n.inputs == 2 &&
        (d.op->is(trait::view | trait::leaf | trait::writes) || readers_[grad] > 1 || updates_[variable] > 1)) {
      given = g_.add(cards::copy, {given});
      if (last_[variable] >= 0) g_.depend(given, {&g_, last_[variable]});  // its memory is that of the last gradient
    }
    const value operands[3] = {{&g_, map_[variable]}, given, {&g_, n.inputs == 3 ? map_[input(i, 2)] : -1}};
    const value done = add_apply(g_, operands, n.inputs);
    g_.nodes[done.id].device = n.device;
    for (int k = 0; k < waits.count; ++k) g_.depend(done, {&g_, waits[k]});
    map_[i] = last_[variable] = done.id;
    g_.outputs.push({output::update, -1, done.id});
  }
};
}  // namespace detail

// Adds gradients of output::loss with respect to every trainable variable, then an `apply` node for each; a model with
// a train op of its own gets none of these.
constexpr graph minimize(const graph_parts& p, const minimize_options& o) {
  if (detail::has_train_op(p) && !o.scales_loss) return detail::own_updates(p, o).run();
  graph g = detail::thaw(p);
  g.enter_gradient_scope();
  if (detail::has_train_op(p)) {
    g.refuse(
        "the model has a train op of its own, so a loss scale cannot reach its gradients: leave the loss scale out, or "
        "leave the gradients to the trainer");
    return g;
  }
  int loss = -1;
  for (int i = 0; i < p.output_count; ++i)
    if (p.outputs[i].kind == output::loss) loss = p.outputs[i].node;
  if (loss < 0) {
    g.refuse("the model has no loss: return model_spec{.loss = ...}");
    return g;
  }
  detail::seq<value> variables;
  for (int i = 0; i < p.view.size; ++i) {
    const node& n = p.view.nodes[i];
    if (n.op == &variable_card && from_words<variable_attr>(p.view.ints + n.attr).trainable != 0)
      variables.push({&g, i});
  }
  if (variables.empty()) {
    g.refuse("the model has no trainable variables");
    return g;
  }
  const value y{&g, loss}, *const first_variable = variables.first;
  gradients_options options;
  options.gate_gradients = o.gate == gating::op;
  value scale;
  if (o.scales_loss) {
    scale = g.add_with(cards::loss_scale, {}, detail::loss_scale_attr{static_cast<int>(y.type())});
    options.grad_ys = std::span<const value>(&std::as_const(scale), 1);
  }
  detail::differentiation d(g, std::span<const value>(&y, 1),
                            std::span<const value>(first_variable, static_cast<std::size_t>(variables.count)), options);
  detail::seq<gradient_value> grads;
  detail::seq<value> norm_of;
  bool any = false;
  for (const value& v : variables) grads.push(d.of(v));
  detail::seq<char> taken(g.nodes.count, 0);
  for (gradient_value& v : grads) {
    any = any || v;
    if (v.dense) v.dense = detail::materialize(g, v.dense, taken);
    if (v) norm_of.push(v.sparse() ? v.values : v.dense);
  }
  if (!any) {
    g.refuse(
        "no gradients provided for any variable: the loss does not depend on them, or only through labels, integers or "
        "stop_gradient");
    return g;
  }
  value all;  // every update waits for this
  if (o.needs_norm) {
    all = g.add(cards::global_norm, norm_of.first, norm_of.count);
    g.depend(all, y);  // code that reads the norm may read the loss
    g.outputs.push({output::norm, -1, all.id});
  } else if (o.gate == gating::graph) {
    all = g.add(no_op_card, nullptr, 0);
    for (const value& v : norm_of) g.depend(all, v);
  }
  for (int i = 0; i < variables.count; ++i) {
    const gradient_value& v = grads[i];
    if (!v) continue;
    const value operands[3] = {variables[i], v.sparse() ? v.values : v.dense, v.indices};
    const value update = detail::add_apply(g, operands, v.sparse() ? 3 : 2);
    if (all) g.depend(update, all);
    g.outputs.push({output::update, -1, update.id});
  }
  return g;
}

}  // namespace gradus
