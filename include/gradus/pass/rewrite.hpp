// This header has what passes share: a pass reads a view and writes a new graph, node by node, in order. Names stay
// where the graph was built; nodes keep their offsets. Every pass is linear in nodes and edges, and is run by the
// compiler or by the program.
#pragma once
#include "../graph/parts.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Returns a graph to add nodes to, without names.
constexpr graph thaw(const graph_parts& p) {
  graph g(p.what);
  const graph_view& v = p.view;
  g.nodes.reserve(v.size * 4 + 64);
  g.edges.reserve(v.edge_count * 4 + 64);
  g.ints.reserve(v.int_count * 2 + 64);
  g.nodes.append(v.nodes, v.size);
  g.edges.append(v.edges, v.edge_count);
  g.ints.append(v.ints, v.int_count);
  g.expressions.append(v.expressions, v.expression_count);
  g.outputs.append(p.outputs, p.output_count);
  g.gates.append(p.gates, p.gate_count);
  return g;
}

// Writes node i of the old graph to the new one, with its edges renamed.
constexpr void emit(graph& g, const graph_view& v, int i, int* map) {
  node n = v.nodes[i];
  const int from = n.first, words = n.attr;
  n.first = g.edges.count;
  for (int e = from, end = e + n.inputs + n.controls; e < end; ++e) g.edges.push(map[v.edges[e]]);
  n.attr = g.ints.count;
  g.ints.append(v.ints + words, n.attrs);
  g.nodes.push(n);
  map[i] = g.nodes.count - 1;
}

constexpr graph like(const graph_parts& p) {
  graph g(p.what);
  g.nodes.reserve(p.view.size + 1);
  g.edges.reserve(p.view.edge_count + 1);
  g.ints.reserve(p.view.int_count + 1);
  g.expressions.append(p.view.expressions, p.view.expression_count);
  return g;
}

// Writes outputs and gates, once all nodes are written. Members of a gate that do not exist any more are left out.
constexpr void carry(graph& g, const graph_parts& p, const int* map) {
  for (int i = 0; i < p.output_count; ++i) {
    output o = p.outputs[i];
    o.node = map[o.node];
    g.outputs.push(o);
  }
  for (int i = 0; i < p.gate_count;) {
    const int n = p.gates[i++], at = g.gates.count;
    g.gates.push(0);
    for (int k = 0; k < n; ++k, ++i)
      if (map[p.gates[i]] >= 0) g.gates.push(map[p.gates[i]]), ++g.gates[at];
  }
}

constexpr unsigned mix(unsigned h, unsigned x) { return (h ^ x) * 2654435761u ^ (h >> 15); }
constexpr int table_size(int n) {
  int capacity = 16;
  while (capacity < 2 * n) capacity *= 2;
  return capacity;
}

}  // namespace detail
}  // namespace gradus
