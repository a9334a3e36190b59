// This pass writes order as edges. The executor follows only edges; this pass decides what they mean.
//
// In every graph a write to a variable waits for the reads made before it, and later reads wait for the write. So an
// update waits for its own gradient, by its data edge, and for this step's readers of its variable.
//
// With gated sets (pass/autodiff.hpp, pass/minimize.hpp) a reader of one member waits for all members. With gate_op a
// set is the gradients of one op's operands; with gate_none there is none. gate_graph is a node that waits for all
// gradients. Members that fusion has put into one sweep with their reader are made and used at once, and no edge can
// separate them.
#pragma once
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

constexpr graph add_gates(const graph_parts& p) {
  const graph_view& v = p.view;
  graph g(p.what);
  g.nodes.reserve(v.size + 1);
  g.edges.reserve(2 * v.edge_count + v.size);
  g.ints.append(v.ints, v.int_count);
  g.expressions.append(v.expressions, v.expression_count);
  g.outputs.append(p.outputs, p.output_count);
  // gate lists: node -> the sets it belongs to
  detail::seq<int> set_of_(v.size, -1), link_(p.gate_count, -1), start_of_(p.gate_count, -1);
  for (int i = 0; i < p.gate_count;) {
    const int start = i, n = p.gates[i++];
    for (int k = 0; k < n; ++k, ++i) {
      const int member = p.gates[i];
      link_[i] = set_of_[member], set_of_[member] = i, start_of_[i] = start;
    }
  }
  // readers of a memory since its last write: lists through the edges. A view counts as its base, as reader and as
  // operand.
  detail::seq<int> base_(v.size, -1), head_(v.size, -1), next_(v.edge_count, -1), by_(v.edge_count, -1),
      writer_(v.size, -1);
  int *base = base_.first, *head = head_.first, *next = next_.first, *by = by_.first, *writer = writer_.first;
  for (int i = 0; i < v.size; ++i) {
    node n = v.nodes[i];
    const int from = n.first, data = n.inputs, old = n.controls;
    n.first = g.edges.count;
    for (int e = from, end = e + data + old; e < end; ++e) g.edges.push(v.edges[e]);
    const int controls_at = g.edges.count - old;
    const bool writes = n.op->is(trait::writes);
    base[i] = n.op->is(trait::view) || writes ? base[v.edges[from]] : i;
    const auto wait_for = [&](int before) {
      if (before < 0 || before >= i) return;
      for (int e = controls_at; e < g.edges.count; ++e)
        if (g.edges[e] == before) return;
      g.edges.push(before);
    };
    for (int e = from, end = e + data; e < end; ++e) {
      const int u = v.edges[e];
      for (int m = set_of_[u]; m >= 0; m = link_[m]) {
        const int start = start_of_[m], many = p.gates[start];
        for (int k = 1; k <= many; ++k)
          if (p.gates[start + k] != u) wait_for(p.gates[start + k]);
      }
      const int memory = base[u];
      if (writer[memory] >= 0 && writer[memory] != u) wait_for(writer[memory]);
      by[e] = i, next[e] = head[memory], head[memory] = e;
    }
    if (writes) {
      const int memory = base[i];
      for (int e = head[memory]; e >= 0; e = next[e])
        if (by[e] != i && !v.nodes[by[e]].op->is(trait::view)) wait_for(by[e]);
      head[memory] = -1, writer[memory] = i;
    }
    n.controls = g.edges.count - n.first - data;
    g.nodes.push(n);
  }
  return g;
}

}  // namespace gradus
