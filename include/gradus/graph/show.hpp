// This header shows a graph to people: every node has a name, and its operands are given by their names. It returns
// lines of text, and plain structs for other writers (summary/graph.hpp makes TensorFlow's GraphDef of them).
//
// Show the graph as it was built, with its gradients and updates, before nodes are merged and fused. That is the
// picture of the user's program, and TensorBoard's folding by scopes is meant for it:
//
//   const graph built = build_model(model, mode::train);
//   const graph whole = minimize(parts_of(built), {});
//   describe(parts_of(whole), built.names.chars.first);
//
// A graph after fusion can be shown too: a fused node is one node under the name of its last op.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "parts.hpp"

namespace gradus::inline GRADUS_BUILD {

struct shown_node {
  std::string name;  // unique, and in TensorFlow's grammar: [A-Za-z0-9.][A-Za-z0-9_./-]*
  std::string_view op;
  std::vector<std::string> inputs;  // names of operands in order; then control inputs, each with a '^' before it
  std::string_view device;          // empty: none was given
  dtype type = dtype::none;         // none: a node that makes no tensor
  shape dims;
  std::vector<double> constant;  // of a constant: its values, one for all or one each
  const node* source = nullptr;  // in the graph that was described
};

namespace detail {

std::string_view name_in(const char* names, int offset);

// Names in use; one that is taken gets _1, _2, ...
class unique_names {
public:
  std::string take(std::string_view wanted);

private:
  std::unordered_set<std::string> used_;
};

}  // namespace detail

// Returns every node in order. Nodes without a name get TensorFlow's: scope and op, then _1, _2, ...; gradients are
// under "gradients/", the update of variable w under "train/update_w/". `names` is the pool of the graph that was
// built; without it every node is named by its op.
std::vector<shown_node> describe(const graph_parts& p, const char* names);
inline std::vector<shown_node> describe(const graph& g) { return describe(parts_of(g), g.names.chars.first); }

// Returns one line for each node, then one line for each output:
//
//   hidden/MatMul = MatMul(image, hidden/kernel): float32 [batch, 128]
//   loss "loss" = Mean
std::string to_text(const graph_parts& p, const char* names);
inline std::string to_text(const graph& g) { return to_text(parts_of(g), g.names.chars.first); }

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "show.ipp"
#endif
