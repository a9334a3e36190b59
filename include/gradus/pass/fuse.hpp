// Fusion: chains of elementwise ops become one sweep over memory.
//
// An elementwise node joins its only reader when that is elementwise, of the same extents and computed in the same
// type. Groups are trees, hence convex. Each becomes one node whose expression is the list of its formulas; equal
// chains of different layers have equal expressions, hence one kernel.
#pragma once
#include "../ops/elementwise.hpp"
#include "rewrite.hpp"

namespace gradus {

namespace detail {

// What an elementwise node is computed in. A comparison computes in its operands' type, a cast to float in float (its
// operand is converted when loaded), a cast to integers in its operand's (the result is converted when stored).
constexpr dtype compute_type(const graph_view& v, const node& n) {
  const dtype operand = v.nodes[v.edges[n.first]].type;
  if (n.op == &cards::cast)
    return is_float(n.type) || !is_float(operand) ? n.type == boolean ? operand : n.type : operand;
  if (n.type != boolean) return n.type;
  return operand == boolean ? float32 : operand;
}

// The loops of a node of extents `dims` over its operands: neighbours that all operands treat alike become one loop.
constexpr void collapse(expression& x, const shape& dims, const shape* operands) {
  int patterns[max_rank] = {};
  x.loops = 0;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims.dims[axis] == 1) continue;
    int pattern = 0;
    for (int k = 0; k < x.inputs; ++k) {
      const int at = axis - dims.rank + operands[k].rank;
      if (at >= 0 && operands[k].dims[at] != 1) pattern |= 1 << k;
    }
    if (x.loops != 0 && patterns[x.loops - 1] == pattern)
      x.extent[x.loops - 1] *= dims.dims[axis];
    else
      patterns[x.loops] = pattern, x.extent[x.loops++] = dims.dims[axis];
  }
  if (x.loops == 0) patterns[0] = 0, x.extent[x.loops++] = 1;
  x.extent[0] = 0;
  for (int k = 0; k < x.inputs; ++k)
    for (int l = 0; l < x.loops; ++l)
      if (patterns[l] >> k & 1) x.varies[k] = static_cast<unsigned char>(x.varies[k] | 1 << l);
}
// The extent of the outermost loop: elements over the product of the inner ones.
constexpr std::int64_t rows_of(const expression& x, const shape& dims) {
  std::int64_t inner = 1;
  for (int l = 1; l < x.loops; ++l) inner *= x.extent[l];
  return inner == 0 ? 0 : gradus::count(dims) / inner;
}

}  // namespace detail

constexpr graph fuse(const graph_parts& p) {
  const graph_view& v = p.view;
  graph g = detail::like(p);
  const int size = v.size;
  seq<int> users_(size, 0), reader_(size, -1), root_(size, -1), steps_(size, 0), ins_(size, 0), next_(size, -1),
      head_(size, -1), map_(size, -1), local_(size, -1), base_(size, -1);
  seq<dtype> type_(size, dtype::none);
  seq<int> written_(size, size);  // the first write to this memory: a read must not move past it
  int *users = users_.first, *reader = reader_.first, *root = root_.first, *steps = steps_.first, *ins = ins_.first,
      *next = next_.first, *head = head_.first, *map = map_.first, *local = local_.first, *base = base_.first;
  dtype* type = type_.first;
  for (int i = 0; i < size; ++i) {
    const node& n = v.nodes[i];
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) ++users[v.edges[e]], reader[v.edges[e]] = i;
    base[i] = n.op->is(trait::view | trait::writes) ? base[v.edges[n.first]] : i;
    if (n.op->is(trait::writes) && written_[base[i]] == size) written_[base[i]] = i;
  }
  for (int i = 0; i < p.output_count; ++i) users[p.outputs[i].node] += 2;  // must exist in memory
  for (int i = size - 1; i >= 0; --i) {
    const node& n = v.nodes[i];
    if (!n.op->is(trait::elementwise)) continue;
    const dtype t = detail::compute_type(v, n);
    const int r = users[i] == 1 ? root[reader[i]] : -1;
    bool join = r >= 0 && type[r] == t && (n.type == t || n.type == boolean) && n.controls == 0 &&
                steps[r] < max_steps && ins[r] + n.inputs - 1 <= max_operands && v.nodes[r].dims == n.dims;
    for (int e = n.first, end = e + n.inputs; join && e < end; ++e) join = written_[base[v.edges[e]]] > r;
    const int to = join ? r : i;
    root[i] = to, ++steps[to], ins[to] += n.inputs - (join ? 1 : 0), type[i] = t, next[i] = head[to], head[to] = i;
  }
  for (int i = 0; i < size; ++i) {
    const node& n = v.nodes[i];
    if (!n.op->is(trait::elementwise)) {
      detail::emit(g, v, i, map);
      continue;
    }
    if (root[i] != i) continue;
    expression x;
    int operand[max_operands] = {};
    shape dims[max_operands];
    x.type = type[i], x.result_type = n.type;
    for (int m = head[i]; m >= 0; m = next[m]) {  // members come in order of the graph
      const node& k = v.nodes[m];
      for (int e = 0; e < k.inputs; ++e) {
        const int u = v.edges[k.first + e];
        if (root[u] == i) continue;
        int j = 0;
        while (j < x.inputs && operand[j] != u) ++j;
        if (j == x.inputs) dims[j] = v.nodes[u].dims, x.operand_type[j] = v.nodes[u].type, operand[x.inputs++] = u;
      }
    }
    for (int m = head[i]; m >= 0; m = next[m]) {
      const node& k = v.nodes[m];
      x.op[x.steps] = k.op;
      for (int e = 0; e < k.inputs; ++e) {
        const int u = v.edges[k.first + e];
        int j = 0;
        if (root[u] != i)
          while (operand[j] != u) ++j;
        x.arg[x.steps][e] = static_cast<unsigned char>(root[u] == i ? x.inputs + local[u] : j);
      }
      local[m] = x.steps++;
    }
    detail::collapse(x, n.dims, dims);
    int at = 0;  // a handful of distinct expressions: a linear search is enough
    while (at < g.expressions.count &&
           !(g.expressions[at].steps == x.steps && g.expressions[at].op[0] == x.op[0] && g.expressions[at] == x))
      ++at;
    if (at == g.expressions.count) g.expressions.push(x);
    node fused = n;
    fused.op = &cards::fused, fused.first = g.edges.count, fused.inputs = x.inputs;
    for (int k = 0; k < x.inputs; ++k) g.edges.push(map[operand[k]]);
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e) g.edges.push(map[v.edges[e]]);
    fused.attr = g.ints.count, fused.attrs = 1;
    g.ints.push(at);
    g.nodes.push(fused);
    map[i] = g.nodes.count - 1;
  }
  for (int i = 0; i < size; ++i)  // a member's readers and gates see its group
    if (map[i] < 0 && root[i] >= 0) map[i] = map[root[i]];
  detail::carry(g, p, map);
  return g;
}

}  // namespace gradus
