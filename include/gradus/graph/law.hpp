// The laws of a graph hold for the builder and for every pass, and every runner relies on them. They are in a table, so
// that a law is one line to read, to add and to break in a test.
//
//   static_assert(broken_law(parts_of(fuse(p))) == nullptr);      // by the compiler
//   if (const char* law = broken_law(parts_of(g))) ...            // by the program
#pragma once
#include "parts.hpp"

namespace gradus::inline GRADUS_BUILD {

// The text states the law. A law may rely on those above it.
struct law {
  const char* text;
  bool (*holds)(const graph_parts&);
};

namespace detail {

template <class Holds>
constexpr bool every_node(const graph_parts& p, Holds holds) {
  for (int i = 0; i < p.view.size; ++i)
    if (!holds(p.view.nodes[i], i)) return false;
  return true;
}
constexpr bool in_pool(int first, int count, int size) { return first >= 0 && count >= 0 && first <= size - count; }

constexpr bool pools_hold(const graph_parts& p) {
  return every_node(p, [&](const node& n, int) {
    return n.op != nullptr && n.inputs >= 0 && n.controls >= 0 &&
           in_pool(n.first, n.inputs + n.controls, p.view.edge_count) && in_pool(n.attr, n.attrs, p.view.int_count);
  });
}
constexpr bool edges_point_back(const graph_parts& p, int from_input, bool controls) {
  return every_node(p, [&](const node& n, int i) {
    const int first = controls ? n.first + n.inputs : n.first + from_input;
    for (int e = first, end = n.first + n.inputs + (controls ? n.controls : 0); e < end; ++e)
      if (p.view.edges[e] < 0 || p.view.edges[e] >= i) return false;
    return true;
  });
}
constexpr bool data_holds(const graph_parts& p) { return edges_point_back(p, 0, false); }
constexpr bool controls_hold(const graph_parts& p) { return edges_point_back(p, 0, true); }
constexpr bool counts_hold(const graph_parts& p) {
  return every_node(p, [](const node& n, int) { return n.op->operands < 0 || n.op->operands == n.inputs; });
}
constexpr bool data_carries_numbers(const graph_parts& p) {
  return every_node(p, [&](const node& n, int) {
    for (int k = 0; k < n.inputs; ++k)
      if (p.view.nodes[p.view.edges[n.first + k]].op->is(trait::control)) return false;
    if (n.op->is(trait::control)) return n.type == dtype::none && n.inputs == 0;
    if (n.op->is(trait::at_session) && n.type == dtype::none) return true;
    return size_of(n.type) != 0 && !is_for_files(n.type);
  });
}
constexpr bool one_batch_extent(const graph_parts& p) {
  return every_node(p, [](const node& n, int) {
    return n.dims.rank >= 0 && n.dims.rank <= max_rank && batch_extents(n.dims) <= (n.op == &variable_card ? 0 : 1);
  });
}
constexpr bool sizes_hold(const graph_parts& p) {
  return every_node(p, [&](const node& n, int) {
    bool fit = takes(*n.op, n.dims);
    for (int k = 0; fit && k < n.inputs; ++k) fit = takes(*n.op, p.view.nodes[p.view.edges[n.first + k]].dims);
    return fit;
  });
}
constexpr bool constants_hold(const graph_parts& p) {
  return every_node(p, [](const node& n, int) {
    if (n.op != &constant_card) return true;
    return n.attrs == 2 || (n.attrs % 2 == 0 && n.attrs / 2 == count(n.dims));
  });
}
// Calls every card's shape rule again.
constexpr bool rules_hold(const graph_parts& p) {
  graph g(p.what);
  g.keeps_refusal = true;
  g.nodes.append(p.view.nodes, p.view.size);
  for (node& n : g.nodes) n.name = -1;  // the texts of refusals name nodes; here the names are not available
  seq<value> operands;
  for (int i = 0; i < p.view.size; ++i) {
    const node& n = p.view.nodes[i];
    if (n.op->infer == nullptr) continue;
    operands.count = 0;
    for (int k = 0; k < n.inputs; ++k) operands.push({&g, p.view.edges[n.first + k]});
    inference rule{g, *n.op, operands.first, n.inputs, p.view.ints + n.attr, n.attrs};
    n.op->infer(rule);
    if (!g.refusal.empty() || rule.type != n.type || !(rule.dims == n.dims)) return false;
  }
  return true;
}
constexpr bool writes_hold(const graph_parts& p) {
  return every_node(p, [&](const node& n, int) {
    return !n.op->is(trait::writes) || (n.inputs > 0 && p.view.nodes[p.view.edges[n.first]].op == &variable_card);
  });
}
// Names are offsets of interned text, so equal texts have equal offsets.
constexpr bool names_differ(const graph_parts& p) {
  int capacity = 16;
  while (capacity < 2 * p.view.size) capacity *= 2;
  seq<int> table(capacity, -1);
  return every_node(p, [&](const node& n, int) {
    if (n.name < 0) return true;
    int at = static_cast<int>(static_cast<unsigned>(n.name) * 2654435761u >> 7) & (capacity - 1);
    for (; table[at] >= 0; at = (at + 1) & (capacity - 1))
      if (table[at] == n.name) return false;
    table[at] = n.name;
    return true;
  });
}
constexpr bool interface_is_named(const graph_parts& p) {
  return every_node(
      p, [](const node& n, int) { return n.name >= 0 || !n.op->is(trait::leaf) || !n.op->is(trait::keeps); });
}
constexpr bool outputs_hold(const graph_parts& p) {
  for (int i = 0; i < p.output_count; ++i) {
    const output& o = p.outputs[i];
    if (o.node < 0 || o.node >= p.view.size || o.kind < output::loss || o.kind > output::audio) return false;
    const node& n = p.view.nodes[o.node];
    if ((o.kind == output::loss || o.kind == output::summary) && n.dims.rank != 0) return false;
  }
  return true;
}
constexpr bool gates_hold(const graph_parts& p) {
  for (int i = 0; i < p.gate_count;) {
    const int n = p.gates[i++];
    if (!in_pool(i, n, p.gate_count)) return false;
    for (int k = 0; k < n; ++k, ++i)
      if (p.gates[i] < 0 || p.gates[i] >= p.view.size) return false;
  }
  return true;
}
constexpr bool is_well_formed(const expression& x) {
  if (x.inputs < 0 || x.inputs > max_operands || x.steps < 1 || x.steps > max_steps || x.loops < 1 ||
      x.loops > max_loops)
    return false;
  if (x.extent[0] != 0 || size_of(x.type) == 0) return false;
  for (int k = 0; k < x.inputs; ++k)
    if (x.varies[k] >> x.loops != 0) return false;
  for (int s = 0; s < x.steps; ++s) {
    if (x.op[s] == nullptr || !x.op[s]->is(trait::elementwise) || x.op[s]->operands < 1 || x.op[s]->operands > 3)
      return false;
    for (int a = 0; a < x.op[s]->operands; ++a)
      if (x.arg[s][a] >= x.inputs + s) return false;
  }
  return true;
}
constexpr bool expressions_hold(const graph_parts& p) {
  return every_node(p, [&](const node& n, int) {
    if (!n.op->is(trait::expression)) return true;
    if (n.attrs < 1 || !in_pool(expression_of(n, p.view.ints), 1, p.view.expression_count)) return false;
    const expression& x = p.view.expressions[expression_of(n, p.view.ints)];
    const int made = n.inputs == x.inputs + 1;  // the node makes the expression's first operand, from two
    if (!is_well_formed(x) || x.inputs + made != n.inputs || x.result_type != n.type) return false;
    for (int k = made; k < x.inputs; ++k)
      if (p.view.nodes[p.view.edges[n.first + k + made]].type != x.operand_type[k]) return false;
    if (n.attrs != 1) return x.loops == 2;  // this is a matrix, whose extents the node's own attributes give
    std::int64_t inner = 1, many = count(n.dims);
    for (int l = 1; l < x.loops; ++l) inner *= x.extent[l];
    return inner == 0 ? many == 0 : many % inner == 0;
  });
}

}  // namespace detail

inline constexpr law laws[] = {
    {"a node names an op, and its edges and attributes lie in the graph's pools", detail::pools_hold},
    {"a data edge points to an older node", detail::data_holds},
    {"a control edge points to an older node", detail::controls_hold},
    {"a node has as many operands as its op takes", detail::counts_hold},
    {"data comes from nodes that make a tensor; a node that only waits has no dtype and no operands",
     detail::data_carries_numbers},
    {"a shape has at most one batch extent, a variable's none", detail::one_batch_extent},
    {"an op can count the elements of its operands and of its result", detail::sizes_hold},
    {"a constant holds one value, or as many as its shape", detail::constants_hold},
    {"shape and dtype are what the op's rule says", detail::rules_hold},
    {"operand 0 of an op that writes is a variable", detail::writes_hold},
    {"a name names one node", detail::names_differ},
    {"placeholders and variables have names", detail::interface_is_named},
    {"an output is a node of the graph; a loss and a summary are scalars", detail::outputs_hold},
    {"a gate is a count and as many nodes of the graph", detail::gates_hold},
    {"a fused node's expression is well formed and fits its operands and its shape", detail::expressions_hold},
};

// Returns the text of the first law that does not hold; nullptr if all hold. Linear in nodes and edges.
constexpr const char* broken_law(const graph_parts& p) {
  for (const law& l : laws)
    if (!l.holds(p)) return l.text;
  return nullptr;
}

}  // namespace gradus
