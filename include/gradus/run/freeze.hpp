// This header turns a model into constants: the compiler runs the builder and the passes, one constant evaluation each,
// and keeps their results in arrays of exactly the right size.
//
// Compilers limit the steps of one evaluation, not their sum, so each pass is a stage of its own. A pass whose result
// has a known bound runs once, into that bound, and is narrowed; the builder and the differentiation run twice, for the
// size and for the content.
#pragma once
#include "../base/build.hpp"

#include <utility>

#include "../graph/law.hpp"
#include "../ops/model.hpp"
#include "../pass/clean.hpp"
#include "../pass/cut.hpp"
#include "../pass/gate.hpp"
#include "../pass/minimize.hpp"
#include "../pass/mixed_precision.hpp"
#include "../pass/plan.hpp"
#include "../pass/recompute.hpp"
#include "../pass/release.hpp"
#include "refused_model.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A pass that comes with a policy, so that a program that does not name the policy does not compile the pass. (g++ 12
// accepts the address of an object inside a template argument, but not that of a function.)
struct rewriting {
  graph (*run)(const graph_parts&);
  bool knows_gradients = false;  // it must know which nodes are the backward pass, as minimize marks them
};
}  // namespace detail

// The options that a model is compiled for.
struct build_options {
  mode what = mode::train;
  gating gate = gating::op;
  bool needs_norm = false;      // clip_by_global_norm is among the policies
  bool reuse = true;            // with one thread: a tensor's memory is used again after its last reader
  dtype compute = dtype::none;  // the type that products' operands are rounded to (pass/mixed_precision.hpp)
  bool scales_loss = false;     // a loss scale is among the policies
  int recompute = 0;            // segments of the forward pass that are not kept (pass/recompute.hpp)
  bool release = false;         // gradients have slots, and each is used as soon as it is final (pass/release.hpp)
  bool one_by_one = false;      // each call of the step takes one example: ops that need the whole batch are refused
  const detail::rewriting* rewrite = nullptr;  // a policy's own pass, before recomputation and fusion
  constexpr bool operator==(const build_options&) const = default;
};

namespace detail {

struct separate_pools {
  using policy_for = kind::pooling;
  using kernels = op_list<>;
  static constexpr const rewriting* rewrite = nullptr;
};

struct float_activations {
  using policy_for = kind::activations;
  static constexpr const rewriting* rewrite = nullptr;
};
// This is a pass that makes the passes of two policies, one after the other.
template <const rewriting& First, const rewriting& Second>
inline constexpr rewriting both_passes{[](const graph_parts& p) constexpr {
                                         const graph first = First.run(p);
                                         return Second.run(parts_of(first));
                                       },
                                       First.knows_gradients || Second.knows_gradients};
template <class... Policies>
consteval const rewriting* rewriting_among() {
  constexpr const rewriting *pools = policy_of<kind::pooling, separate_pools, Policies...>::rewrite,
                            *stores = policy_of<kind::activations, float_activations, Policies...>::rewrite;
  if constexpr (pools != nullptr && stores != nullptr)
    return &both_passes<*pools, *stores>;
  else
    return pools != nullptr ? pools : stores;
}

struct graph_extents {
  int nodes = 0, edges = 0, ints = 0, names = 0, expressions = 0, outputs = 0, gates = 0, refusal = 0;
};
constexpr graph_extents extents_of(const graph& g) {
  return {g.nodes.count,       g.edges.count,   g.ints.count,  g.names.chars.count,
          g.expressions.count, g.outputs.count, g.gates.count, g.refusal.count};
}
constexpr std::size_t room(int n) { return n != 0 ? static_cast<std::size_t>(n) : 1; }

template <graph_extents E>
struct frozen_graph {
  node nodes[room(E.nodes)];
  int edges[room(E.edges)];
  int ints[room(E.ints)];
  char names[room(E.names)];
  expression expressions[room(E.expressions)];
  output outputs[room(E.outputs)];
  int gates[room(E.gates)];
  char refusal[room(E.refusal)];
  graph_extents size;
  mode what;

  constexpr graph_parts parts() const {
    return {{nodes, size.nodes, edges, size.edges, ints, size.ints, expressions, size.expressions},
            outputs,
            size.outputs,
            gates,
            size.gates,
            what};
  }
};

template <class T>
constexpr void copy_n(T* to, const T* from, int n) {
  copy_run(to, from, n);
}
// This is not constexpr, so that reaching it is an error of the compiler.
inline void a_pass_gave_more_than_its_bound() {}

template <graph_extents E>
constexpr frozen_graph<E> freeze(const graph& g) {
  frozen_graph<E> f{};
  f.size = extents_of(g), f.what = g.mode();
  if (f.size.nodes > E.nodes || f.size.edges > E.edges || f.size.ints > E.ints || f.size.expressions > E.expressions ||
      f.size.outputs > E.outputs || f.size.gates > E.gates)
    a_pass_gave_more_than_its_bound();
  copy_n(f.nodes, g.nodes.first, g.nodes.count), copy_n(f.edges, g.edges.first, g.edges.count);
  copy_n(f.ints, g.ints.first, g.ints.count),
      copy_n(f.names, g.names.chars.first, E.names != 0 ? g.names.chars.count : 0);
  copy_n(f.expressions, g.expressions.first, g.expressions.count), copy_n(f.outputs, g.outputs.first, g.outputs.count);
  copy_n(f.gates, g.gates.first, g.gates.count),
      copy_n(f.refusal, g.refusal.first, E.refusal != 0 ? g.refusal.count : 0);
  return f;
}
template <graph_extents E, graph_extents Wide>
constexpr frozen_graph<E> narrow(const frozen_graph<Wide>& w) {
  frozen_graph<E> f{};
  f.size = E, f.what = w.what;
  copy_n(f.nodes, w.nodes, E.nodes), copy_n(f.edges, w.edges, E.edges), copy_n(f.ints, w.ints, E.ints);
  copy_n(f.expressions, w.expressions, E.expressions), copy_n(f.outputs, w.outputs, E.outputs);
  copy_n(f.gates, w.gates, E.gates);
  return f;
}

}  // namespace detail

namespace detail {
constexpr graph minimize_rounded(const graph_parts& p, const build_options& o) {
  graph forward = round_operands(p, o.compute);
  if (o.what != mode::train) return forward;
  graph whole = minimize(parts_of(forward), {o.gate, o.needs_norm, o.scales_loss});
  if (!whole.refusal.empty()) return whole;
  return round_operands(parts_of(whole), o.compute);
}
// Returns the training graph of one example, or a graph with the reason why a batch cannot be computed so.
constexpr graph minimize_one_by_one(const graph_parts& p, const build_options& o) {
  graph g;
  if (o.compute != dtype::none)
    g = minimize_rounded(p, o);
  else
    g = minimize(p, {o.gate, o.needs_norm, o.scales_loss});
  if (!g.refusal.empty()) return g;
  const graph used = remove_dead(parts_of(g));
  if (has_train_op(p)) {
    g.refuse("one_by_one: the model has a train op of its own; leave its updates to the stepper");
  } else if (const int i = find_mixing(p); i >= 0) {
    const node& n = p.view.nodes[i];
    if (is_batched(n.dims))
      g.refuse("one_by_one: ", n.op->name, " ", n.dims,
               " is computed from several examples at once, and the loss of each example must need no other; leave "
               "one_by_one out, or what mixes examples (a batch_norm: use layer_norm)");
    else
      g.refuse("one_by_one: ", n.op->name, " ", n.dims,
               " is computed from several examples at once, and the loss must be their mean; leave one_by_one out, or "
               "use reduce_mean");
  } else if (const uncut u = find_uncut(parts_of(used).view); u.why == uncut::rows) {
    const node& n = used.nodes[u.node];
    g.refuse("one_by_one: the gradient of a variable ", n.dims,
             " comes as rows, whose sum is no array; leave one_by_one out, or use accumulate{}");
  } else if (u.why == uncut::writes) {
    const node& n = used.nodes[u.node];
    g.refuse("one_by_one: the model changes a variable while it computes (", n.op->name, " ", n.dims,
             "), and every example would do it again; leave one_by_one out, or the ", n.op->name);
  }
  return g;
}
// Returns the graph of an evaluation or prediction of one example, or a graph with the reason why the others are
// needed.
constexpr graph forward_one_by_one(const graph_parts& p, const build_options& o) {
  graph g;
  if (o.compute != dtype::none)
    g = minimize_rounded(p, o);
  else
    g = thaw(p);
  if (const int i = find_mixing(p, true); i >= 0) {
    g.refuse("one_by_one: in mode ", name_of(o.what), ", ", p.view.nodes[i].op->name, " ", p.view.nodes[i].dims,
             " is computed from several examples at once; leave one_by_one out, or what mixes examples");
    return g;
  }
  if (o.what != mode::predict) return g;  // an evaluation counts each example
  const graph used = remove_dead(parts_of(g));
  if (const uncut u = find_uncut(parts_of(used).view); u.why == uncut::writes) {
    const node& n = used.nodes[u.node];
    g.refuse("one_by_one: in mode predict the model changes a variable while it computes (", n.op->name, " ", n.dims,
             "), and every example would do it again; leave one_by_one out, or the ", n.op->name);
  }
  return g;
}
// What a model's own train op is computed from is not marked as the backward pass.
constexpr bool cannot_find_gradients(const graph_parts& p, const build_options& o) {
  const bool needed = o.recompute > 0 || (o.rewrite != nullptr && o.rewrite->knows_gradients);
  return needed && o.what == mode::train && has_train_op(p);
}
constexpr graph refuse_own_gradients(const graph_parts& p) {
  graph g = thaw(p);
  g.refuse(
      "the model has a train op of its own, and recompute and activations do not know its backward pass: leave them "
      "out, or leave the gradients to the trainer");
  return g;
}
constexpr graph recompute_and_fuse(const graph_parts& p, const build_options& o) {
  if (o.recompute > 0 && o.what == mode::train) {
    const graph twice = recompute_segments(p, o.recompute);
    return fuse(parts_of(twice));
  }
  return fuse(p);
}
}  // namespace detail

// ---- the passes, in order; the same list serves the compiler and the program
inline constexpr int last_stage = 6;
template <int Stage>
constexpr graph run_pass(const graph_parts& p, const build_options& o) {
  if constexpr (Stage == 1) {
    if (detail::cannot_find_gradients(p, o)) return detail::refuse_own_gradients(p);
    // Only the compiler builds graphs of one example, so the refusals are in no program.
    if (std::is_constant_evaluated() && o.one_by_one) {
      if (o.what == mode::train) return detail::minimize_one_by_one(p, o);
      return detail::forward_one_by_one(p, o);
    }
    if (o.compute != dtype::none) return detail::minimize_rounded(p, o);
    if (o.what == mode::train) return minimize(p, {o.gate, o.needs_norm, o.scales_loss});
    return detail::thaw(p);  // not with ?:, for which g++ 12 frees the result twice in constant evaluation
  } else if constexpr (Stage == 2)
    return remove_dead(p);
  else if constexpr (Stage == 3)
    return merge_common(p);
  else if constexpr (Stage == 4)
    return remove_dead(p);
  else if constexpr (Stage == 5) {
    if (o.rewrite != nullptr) {
      const graph rewritten = o.rewrite->run(p);
      return detail::recompute_and_fuse(parts_of(rewritten), o);
    }
    return detail::recompute_and_fuse(p, o);
  } else {
    if (o.release && o.what == mode::train) {
      const graph gated = add_gates(p);
      return release_updates(parts_of(gated));
    }
    return add_gates(p);
  }
}

// Runs the passes in the program: returns a graph ready to be planned. Without NDEBUG the laws of graph/law.hpp are
// checked after each pass.
graph run_passes(const graph& built, const build_options& o);
// Runs the first pass alone: the graph with its gradients and updates, for people to look at.
graph run_first_pass(const graph& built, const build_options& o);

// These run the passes in the compiler.
namespace detail {
template <auto Build, build_options O, int Stage>
struct stage;

template <auto Build, build_options O, int Stage>
constexpr graph result_of() {
  if constexpr (Stage == 0)
    return build_model(Build, O.what);
  else
    return run_pass<Stage>(stage<Build, O, Stage - 1>::value.parts(), O);
}
constexpr graph_extents bound_of(const graph_extents& s, int pass, const build_options& o) {
  graph_extents e = s;
  if (pass == 5 && o.recompute > 0) e.nodes *= 2, e.edges *= 2, e.ints *= 2;  // at most everything is there twice
  if (pass == 5 && o.rewrite != nullptr) e.nodes *= 2, e.edges *= 2, e.ints *= 2;
  e.names = e.refusal = 0;
  if (pass == 5) e.expressions = e.nodes < 1024 ? e.nodes : 1024, e.ints = e.ints + 3 * e.nodes;
  if (pass == 6) e.edges = 4 * s.edges + 2 * s.nodes + s.gates, e.gates = 0;
  return e;
}
template <auto Build, build_options O, int Stage>
  requires(Stage <= 1)
struct stage<Build, O, Stage> {
  static constexpr graph_extents size = extents_of(result_of<Build, O, Stage>());
  static constexpr auto value = freeze<size>(result_of<Build, O, Stage>());
};
template <auto Build, build_options O, int Stage>
  requires(Stage > 1)
struct stage<Build, O, Stage> {
  static constexpr auto wide =
      freeze<bound_of(stage<Build, O, Stage - 1>::value.size, Stage, O)>(result_of<Build, O, Stage>());
  static constexpr auto value = narrow<wide.size>(wide);
};
}  // namespace detail

// ---- the plan as constants
namespace detail {
struct program_extents {
  int calls = 0, signatures = 0, args = 0, places = 0, slots = 0, variables = 0;
};
template <program_extents E>
struct frozen_program {
  static constexpr int capacity = E.slots;  // of slots
  call calls[room(E.calls)];
  signature signatures[room(E.signatures)];
  int args[room(E.args)];
  node_place places[room(E.places)];
  std::int64_t slots[room(E.slots)];
  slot_lifetime lives[room(E.slots)];
  int variables[room(E.variables)];
  int trainable;
  program_extents size;

  constexpr program_view view() const {
    return {calls, size.calls, signatures, size.signatures, args,           size.args, places,
            slots, lives,      size.slots, variables,       size.variables, trainable};
  }
};
template <program_extents E>
constexpr frozen_program<E> freeze(const program& p) {
  frozen_program<E> f{};
  f.size = {p.calls.count, p.signatures.count, p.args.count, p.places.count, p.slots.count, p.variables.count};
  if (f.size.signatures > E.signatures) a_pass_gave_more_than_its_bound();
  copy_n(f.calls, p.calls.first, p.calls.count), copy_n(f.signatures, p.signatures.first, p.signatures.count);
  copy_n(f.args, p.args.first, p.args.count), copy_n(f.places, p.places.first, p.places.count);
  copy_n(f.slots, p.slots.first, p.slots.count), copy_n(f.lives, p.lives.first, p.slots.count);
  copy_n(f.variables, p.variables.first, p.variables.count);
  f.trainable = p.trainable;
  return f;
}
template <program_extents E, program_extents Wide>
constexpr frozen_program<E> narrow(const frozen_program<Wide>& w) {
  frozen_program<E> f{};
  f.size = E, f.trainable = w.trainable;
  copy_n(f.calls, w.calls, E.calls), copy_n(f.signatures, w.signatures, E.signatures), copy_n(f.args, w.args, E.args);
  copy_n(f.places, w.places, E.places), copy_n(f.slots, w.slots, E.slots);
  copy_n(f.lives, w.lives, E.slots), copy_n(f.variables, w.variables, E.variables);
  return f;
}
constexpr program_extents bound_of(const graph_extents& g) {
  return {g.nodes, g.nodes < 1024 ? g.nodes : 1024, g.nodes + g.edges, g.nodes, g.nodes, g.nodes};
}
}  // namespace detail

namespace detail {
// Returns true if the compiler can run the builder. A function needs the keyword constexpr; a lambda is constexpr when
// it can be, which it cannot if it calls a function that is not. The model is built once more for this.
template <auto Build>
constexpr bool is_built() {
  (void)build_model(Build, mode::train);
  return true;
}
template <auto Build>
concept built_by_compiler = requires { typename std::bool_constant<is_built<Build>()>; };
template <class Model>
struct never_built {
  static constexpr bool value = false;
  static_assert(sizeof(Model) == 0,
                "gradus: the compiler cannot run this model function; declare it `constexpr`, a lambda behind its "
                "parameters, and the compiler names the call that is not; or let the program run it, as the first "
                "argument of make_trainer, make_supervisor or make_predictor instead of a template argument.");
};
}  // namespace detail

// True if a model is valid; its `page` prints why it is not. A refused model is not differentiated, because one refusal
// is enough. The check itself prints nothing, since clang no longer treats a value as a constant expression after a
// failed assertion in its evaluation.
template <auto Build, build_options O>
struct model_fits {
  static constexpr bool value = false;
  using page = detail::never_built<model_fits>;
};
template <auto Build, build_options O>
  requires detail::built_by_compiler<Build>
struct model_fits<Build, O> {
  using examined = detail::stage<Build, O, detail::stage<Build, O, 0>::value.size.refusal == 0 ? 1 : 0>;
  static constexpr bool value = examined::value.size.refusal == 0;
  using page = detail::accepted<examined>;
};

// A compiled model: its graph and its plan are constants.
template <auto Build, build_options O>
struct frozen_model {
  using built = detail::stage<Build, O, 0>;
  static_assert(model_fits<Build, O>::page::value);
  using final_stage = detail::stage<Build, O, model_fits<Build, O>::value ? last_stage : 0>;
  static constexpr const auto& graph = final_stage::value;
  static constexpr auto wide =
      detail::freeze<detail::bound_of(graph.size)>(detail::plan(graph.parts(), O.reuse, O.release));
  static constexpr auto program = detail::narrow<wide.size>(wide);
  static constexpr const char* names = built::value.names;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "freeze.ipp"
#endif
