// This header has the interface of tf.train.Optimizer (1.15) on graphs: gradients, their processing, and updates.
//
//   auto list = compute_gradients(loss, {.gate_gradients = gating::graph});
//   for (auto& [gradient, variable] : list)
//     if (gradient.dense) gradient.dense = minimum(gradient.dense, 1.0);
//   return model_spec{.loss = loss, .train_op = apply_gradients(list)};
//
// These functions do not know the rule: an update is an `Apply` node, and what runs the graph applies its own rule
// there. A model for a trainer or a stepper returns the train op in its model_spec; the trainer's policies make the
// update. The compiler runs these functions as well as the program. A graph for a session takes the same steps through
// gradus::optimizer (run/optimizer.hpp), which contains its rule.
//
// They raise invalid_argument where TensorFlow raises ValueError or TypeError, unimplemented where it raises
// NotImplementedError; in constant evaluation the message is kept, like every refusal of a graph.
#pragma once
#include "../base/build.hpp"

#include <string>

#include "minimize.hpp"

namespace gradus::inline GRADUS_BUILD {

// A pair (gradient, variable); the gradient is empty where TensorFlow has None.
struct gradient_and_variable {
  gradient_value gradient = {};
  value variable = {};

  constexpr gradient_and_variable() = default;
  constexpr gradient_and_variable(const gradient_value& d, value v) : gradient(d), variable(v) {}
  constexpr gradient_and_variable(value dense, value v) : gradient{.dense = dense}, variable(v) {}
};

// The variables to differentiate by, in this order. If not given, they are all trainable variables of the graph. Lists
// may hold lists.
class variable_list {
public:
  constexpr variable_list() = default;
  constexpr variable_list(value v) : given_(true) { list_.push(v); }
  constexpr variable_list(std::initializer_list<value> list) : given_(true) {
    list_.append(list.begin(), static_cast<int>(list.size()));
  }
  constexpr variable_list(std::initializer_list<variable_list> lists) : given_(true) {
    for (const variable_list& l : lists) list_.append(l.list_.first, l.list_.count);
  }
  template <class List>
    requires requires(const List& l) {
      { l.data() } -> std::convertible_to<const value*>;
      l.size();
    }
  constexpr variable_list(const List& list) : given_(true) {
    list_.append(list.data(), static_cast<int>(list.size()));
  }
  constexpr bool given() const { return given_; }
  constexpr const detail::seq<value>& values() const { return list_; }
  // It is a range too, as TensorFlow's list is: for (value v : trainable_variables(g, "gen/")).
  constexpr const value* begin() const { return list_.first; }
  constexpr const value* end() const { return list_.first + list_.count; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(list_.count); }
  constexpr value operator[](std::size_t i) const { return list_.first[i]; }

private:
  detail::seq<value> list_;
  bool given_ = false;
};

// Returns the trainable variables whose names begin with `scope`, in the order in which they were made
// (tf.trainable_variables, where the scope is a regular expression). An empty list cannot be optimized.
constexpr variable_list trainable_variables(graph& g, std::string_view scope = {}) {
  detail::seq<value> found;
  g.for_each_in(collection::trainable_variables, [&](value v) {
    if (g.name_of(v.id).starts_with(scope)) found.push(v);
  });
  return variable_list(found);
}

struct compute_gradients_options {
  variable_list var_list = {};         // variables, or plain tensors; the result is in this order
  gating gate_gradients = gating::op;  // what is there before what is used: TensorFlow's GATE_NONE, GATE_OP, GATE_GRAPH
  aggregation aggregation_method = aggregation::add_n;
  bool colocate_gradients_with_ops = false;
  value grad_loss = {};  // of the shape of the loss; used in place of ones
};
struct apply_gradients_options {
  value global_step = {};      // a variable that is incremented by 1 after all updates
  std::string_view name = {};  // of the train op and the scope of the updates
  bool counts_step = true;     // false: global_step is read and not incremented; code that joins train ops counts
};
struct optimize_options {
  value global_step = {};
  variable_list var_list = {};
  gating gate_gradients = gating::op;
  aggregation aggregation_method = aggregation::add_n;
  bool colocate_gradients_with_ops = false;
  std::string_view name = {};
  value grad_loss = {};
};

namespace detail {

// Refuses with a kind other than invalid_argument.
template <class... Pieces>
[[gnu::cold]] constexpr void refuse_as(graph& g, status kind, const Pieces&... pieces) {
  if (!std::is_constant_evaluated() && !g.keeps_refusal) {
    graph sentence;
    sentence.keeps_refusal = true;
    sentence.refuse(pieces...);
    raise(kind, std::string(sentence.refusal.first, static_cast<std::size_t>(sentence.refusal.count)));
  }
  g.refuse(pieces...);
}
constexpr bool is_variable(value v) { return v.g->nodes[v.id].op == &variable_card; }
constexpr bool is_tensor_of(const graph& g, value v) {
  return v.g == &g && v.id >= 0 && v.id < g.nodes.count && !g.nodes[v.id].op->is(trait::control);
}
// The names of values as text, "\"w\", \"b\"": at most five.
class name_text {
public:
  constexpr void add(value v) {
    if (++many_ > 5) return;
    const std::string_view name = v.g->name_of(v.id);
    put(many_ == 1 ? "\"" : ", \""), put(name.empty() ? v.g->nodes[v.id].op->name : name), put("\"");
    if (many_ == 5) put(", ...");
  }
  constexpr std::string_view text() const { return {out_.first, static_cast<std::size_t>(out_.count)}; }

private:
  seq<char> out_;
  int many_ = 0;
  constexpr void put(std::string_view s) { out_.append(s.data(), static_cast<int>(s.size())); }
};

// Replaces every gradient by an identity that waits until all of them exist (tf.tuple). Row numbers do not wait.
constexpr void gate_all(graph& g, seq<gradient_and_variable>& list) {
  seq<int> makers;
  for (const auto& [d, v] : list)
    if (d) makers.push(d.sparse() ? d.values.id : d.dense.id);
  if (makers.empty())
    return g.refuse("compute_gradients: gating::graph needs at least one gradient, and none of the variables has one");
  const value gate = g.add(no_op_card, nullptr, 0);
  for (int i = 0; i < makers.count; ++i) {
    bool again = false;
    for (int k = 0; k < i; ++k) again = again || makers[k] == makers[i];
    if (!again) g.depend(gate, {&g, makers[i]});
  }
  for (auto& [d, v] : list) {
    if (!d) continue;
    value& gated = d.sparse() ? d.values : d.dense;
    gated = identity(gated);
    g.depend(gated, gate);
  }
}

// Returns whether apply_gradients can take the list; refuses it otherwise.
constexpr bool may_apply(graph& g, std::span<const gradient_and_variable> list) {
  bool any = false;
  name_text names;
  for (const auto& [d, v] : list) {
    if (v.g != &g || v.id < 0 || v.id >= g.nodes.count || g.nodes[v.id].op->is(trait::control)) {
      refuse_as(g, status::unimplemented, "apply_gradients: trying to optimize what is no variable of this graph");
      return false;
    }
    names.add(v);
    any = any || d;
  }
  if (!any) {
    g.refuse("No gradients provided for any variable: ", names.text());
    return false;
  }
  for (const auto& [d, v] : list) {
    if (!d) continue;
    const std::string_view name = g.name_of(v.id);
    if (!is_tensor_of(g, d.sparse() ? d.values : d.dense) || (d.sparse() && !is_tensor_of(g, d.indices))) {
      g.refuse("apply_gradients: the gradient of \"", name, "\" is no tensor of this graph");
      return false;
    }
    if (!is_variable(v)) {
      refuse_as(g, status::unimplemented, "Trying to update a Tensor: \"", name.empty() ? g.nodes[v.id].op->name : name,
                "\" is no variable");
      return false;
    }
    if (!is_float(v.type())) {
      g.refuse("Invalid type ", v.type(), " of variable \"", name, "\"; expected float32 or float64");
      return false;
    }
    if (d.sparse() && constraint_of(g.nodes[v.id], g.ints.first)) {
      refuse_as(g, status::failed_precondition,
                "Cannot use a constraint function on a sparse variable: the gradient of \"", name,
                "\" comes as rows; drop its constraint, or give a dense gradient");
      return false;
    }
    const value given = d.sparse() ? d.values : d.dense;
    const shape dims = v.dims(), got = given.dims();
    if (given.type() != v.type()) {
      g.refuse("apply_gradients: the gradient of \"", name, "\" is ", given.type(), ", the variable ", v.type());
      return false;
    }
    bool fits = got == dims;
    if (d.sparse()) {
      const shape at = d.indices.dims();
      fits = is_index(d.indices.type()) && dims.rank > 0 && at.rank == 1 && got.rank == dims.rank &&
             at.dims[0] == got.dims[0];
      for (int i = 1; fits && i < dims.rank; ++i) fits = got.dims[i] == dims.dims[i];
    }
    if (!fits) {
      if (d.sparse())
        g.refuse("apply_gradients: values ", got, " at ", d.indices.type(), " rows ", d.indices.dims(),
                 " do not fit variable \"", name, "\" ", dims);
      else
        g.refuse("apply_gradients: the gradient of \"", name, "\" is ", got, ", the variable ", dims);
      return false;
    }
  }
  return true;
}
// Returns whether this can be a global step, or is empty.
constexpr bool can_count(graph& g, value global_step) {
  if (!global_step) return true;
  if (!is_tensor_of(g, global_step) || !is_variable(global_step)) {
    g.refuse("apply_gradients: global_step must be a variable of this graph");
    return false;
  }
  if (global_step.dims().rank == 0 && global_step.type() != boolean) return true;
  g.refuse("apply_gradients: global_step must be a scalar number, got ", global_step.type(), " ", global_step.dims());
  return false;
}
// Returns the train op: `done`, which waits for all updates, or the increment of the global step, which waits for
// `done`.
constexpr value count_step(graph& g, value done, value global_step) {
  if (!global_step) return done;
  const value one = g.constant(1, global_step.type()), operands[2] = {global_step, one};
  const value step = g.add(cards::assign_add, operands, 2);
  g.depend(step, done);
  g.nodes[step.id].device = g.nodes[global_step.id].device;
  return step;
}
// Gives `op`, the result of its scope, the name of the scope that `inside` is in (tf.name_scope(name) as name).
constexpr void name_as_scope(graph& g, value op, int inside) {
  const std::string_view scope = g.text_at(g.nodes[inside].scope);
  seq<char> name;
  name.append(scope.data(), static_cast<int>(scope.size()) - 1);
  g.nodes[op.id].name = g.intern({name.first, static_cast<std::size_t>(name.count)});
}
constexpr graph& graph_of(std::span<const gradient_and_variable> list) {
  if (list.empty()) raise(status::invalid_argument, "No variables provided: the list of gradients is empty");
  for (const auto& [d, v] : list)
    if (v.g != nullptr) return *v.g;
  raise(status::unimplemented, "apply_gradients: trying to optimize what is no variable of a graph");
}
constexpr compute_gradients_options gradients_part(const optimize_options& o) {
  return {o.var_list, o.gate_gradients, o.aggregation_method, o.colocate_gradients_with_ops, o.grad_loss};
}
constexpr bool some_gradient(const seq<gradient_and_variable>& list, value loss) {
  name_text names;
  for (const auto& [d, v] : list) {
    if (d) return true;
    names.add(v);
  }
  name_text of;
  of.add(loss);
  loss.g->refuse(
      "No gradients provided for any variable, check your graph for ops that do not support gradients, "
      "between variables ",
      names.text(), " and loss ", of.text());
  return false;
}
}  // namespace detail

// Returns (gradient, variable) for each of var_list. The loss may have any shape: its sum is differentiated. If there
// is no gradient at all, this function refuses a GATE_GRAPH; with other gates apply_gradients refuses.
constexpr detail::seq<gradient_and_variable> compute_gradients(value loss, const compute_gradients_options& o = {}) {
  if (loss.g == nullptr) raise(status::invalid_argument, "compute_gradients: the loss is empty");
  graph& g = *loss.g;
  detail::seq<gradient_and_variable> list;
  const int gate = static_cast<int>(o.gate_gradients);
  if (gate < 0 || gate > 2) {
    g.refuse("gate_gradients must be one of none, op and graph, got ", gate);
    return list;
  }
  for (const value& v : {loss, o.grad_loss}) {
    if (v.g != nullptr && !is_float(v.type())) {
      g.refuse("Invalid type ", v.type(), " of the ", v.id == loss.id ? "loss" : "grad_loss",
               "; expected float32 or float64");
      return list;
    }
  }
  detail::seq<value> xs;
  if (o.var_list.given())
    xs.append(o.var_list.values().first, o.var_list.values().count);
  else
    g.for_each_in(collection::trainable_variables, [&](value v) { xs.push(v); });
  for (const value& x : xs) {
    if (detail::is_tensor_of(g, x)) continue;
    detail::refuse_as(g, status::unimplemented,
                      "Trying to optimize unsupported type: an entry of var_list is no tensor of the loss's graph");
    return list;
  }
  if (xs.empty()) {
    g.refuse("No variables to optimize");
    return list;
  }
  gradients_options options;
  options.gate_gradients = o.gate_gradients == gating::op;
  options.aggregation_method = o.aggregation_method;
  options.colocate_gradients_with_ops = o.colocate_gradients_with_ops;
  if (o.grad_loss) options.grad_ys = std::span(&o.grad_loss, 1);
  const detail::seq<gradient_value> found =
      gradients(g, std::span(&loss, 1), std::span<const value>(xs.first, static_cast<std::size_t>(xs.count)), options);
  if (found.count != xs.count) return list;  // refused
  for (int i = 0; i < xs.count; ++i) list.push({found[i], xs[i]});
  if (o.gate_gradients == gating::graph) detail::gate_all(g, list);
  for (const auto& [d, v] : list) {
    if (!d || is_float(v.type())) continue;
    g.refuse("Invalid type ", v.type(), " of \"", g.name_of(v.id), "\"; expected float32 or float64");
    break;
  }
  return list;
}

// Updates every variable that has a gradient; the updates are not ordered among each other, but a variable listed twice
// is updated twice. Returns the train op: with a global step its new value, else an op that waits for all updates. In a
// trainer or a stepper a variable must be trainable.
constexpr value apply_gradients(std::span<const gradient_and_variable> list, const apply_gradients_options& o = {}) {
  graph& g = detail::graph_of(list);
  if (!detail::may_apply(g, list) || !detail::can_count(g, o.global_step)) return {&g, 0};
  for (const auto& [d, v] : list) {
    if (!d || from_words<variable_attr>(g.ints.first + g.nodes[v.id].attr).trainable != 0) continue;
    g.refuse("apply_gradients: variable \"", g.name_of(v.id),
             "\" is not trainable, so a trainer keeps no slots for it; declare it with .trainable = true");
    return {&g, 0};
  }
  const std::string_view name = o.name.empty() ? "train" : o.name;
  detail::seq<value> updates;
  {
    const auto scope = g.name_scope(name);
    for (const auto& [d, v] : list) {
      if (!d) continue;
      const value operands[3] = {v, d.sparse() ? d.values : d.dense, d.indices};
      updates.push(detail::add_apply(g, operands, d.sparse() ? 3 : 2));
      g.nodes[updates[updates.count - 1].id].device = g.nodes[v.id].device;
    }
  }
  const value done = g.add(no_op_card, nullptr, 0);
  for (const value& u : updates) g.depend(done, u);
  const value op = detail::count_step(g, done, o.counts_step ? o.global_step : value{});
  detail::name_as_scope(g, op, updates[0].id);
  g.add_to(collection::train_op, op);
  return op;
}
constexpr value apply_gradients(const detail::seq<gradient_and_variable>& list, const apply_gradients_options& o = {}) {
  return apply_gradients(std::span<const gradient_and_variable>(list.first, static_cast<std::size_t>(list.count)), o);
}
constexpr value apply_gradients(std::initializer_list<gradient_and_variable> list,
                                const apply_gradients_options& o = {}) {
  return apply_gradients(std::span<const gradient_and_variable>(list.begin(), list.size()), o);
}

// Calls compute_gradients and apply_gradients.
constexpr value minimize(value loss, const optimize_options& o = {}) {
  const detail::seq<gradient_and_variable> list = compute_gradients(loss, detail::gradients_part(o));
  if (list.empty() || !detail::some_gradient(list, loss)) return {loss.g, 0};
  return apply_gradients(list, {o.global_step, o.name});
}

}  // namespace gradus
