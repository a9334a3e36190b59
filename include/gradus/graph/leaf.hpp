// The leaves of a graph: what placeholders, variables and constants are made of, and the outputs at its other end.
#pragma once
#include "../base/build.hpp"

#include <string_view>

#include "constraint.hpp"
#include "initializer.hpp"
#include "node.hpp"

namespace gradus::inline GRADUS_BUILD {

struct variable_options {
  initializer init = glorot_uniform;
  bool trainable = true;
  bool local = false;  // not in checkpoints; reset when an evaluation starts (metrics), but if only predictions have it
  dtype type = float32;
  gradus::constraint constraint = {};  // applied after each of its updates
};

// The attributes of the leaves. Those of a variable with a constraint are followed by the constraint's.
struct variable_attr {
  int trainable, local, kind;
  float a, b;
  int fan, distribution;
};
struct constant_attr {
  int low, high;  // the bits of one double; more values follow as further pairs
};

// Returns the constraint of a variable's node, or that of an update's node (ops/state.hpp), which holds the variable's.
constexpr constraint constraint_of(const node& n, const int* ints) {
  return last_words<constraint>(ints + n.attr, n.attrs, n.inputs == 0 ? words_of<variable_attr> : 0);
}

inline constexpr card placeholder_card{.name = "Placeholder", .operands = 0, .traits = trait::leaf | trait::keeps};
inline constexpr card variable_card{.name = "VariableV2", .operands = 0, .traits = trait::leaf | trait::keeps};
inline constexpr card constant_card{.name = "Const", .operands = 0, .traits = trait::leaf};
inline constexpr card no_op_card{
    .name = "NoOp", .operands = 0, .traits = trait::keeps | trait::control | trait::blocks};

// Returns whether a node is a leaf, or a view of one: its memory is not computed anew in each run.
constexpr bool is_of_leaf(const graph_view& v, int id) {
  while (v.nodes[id].op->is(trait::view)) id = v.edges[v.nodes[id].first];
  return v.nodes[id].op->is(trait::leaf);
}

// This is a named result: a metric, a prediction, a scalar or another summary for TensorBoard.
struct output {
  enum kinds : int { loss, metric, prediction, summary, update, norm, fetch, histogram, image, audio };
  int kind, name, node;
  constexpr bool is_summary() const { return kind == summary || kind >= histogram; }
};

}  // namespace gradus
