// These two passes make a graph smaller and leave its values as they are: equal nodes become one, unread nodes are
// removed.
#pragma once
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

// Nodes of equal op, attributes and operands become one node. They are found in one open-addressing table of node
// numbers, sized once. Reads of one memory before and after a write differ, also when they go through a view. Two
// variables keep two gradients, equal or not: each has a place of its own in the gradient arena.
constexpr graph merge_common(const graph_parts& p) {
  const graph_view& v = p.view;
  graph g = detail::like(p);
  const int capacity = detail::table_size(v.size);
  detail::seq<int> table_(capacity, -1), map_(v.size, -1), version_(v.size, 0), base_(v.size, -1);
  detail::seq<char> own_(v.size, 0);
  int *table = table_.first, *map = map_.first, *version = version_.first, *base = base_.first;
  char* own = own_.first;
  for (int i = v.size - 1; i >= 0 && v.nodes[i].op->is(trait::session); --i)  // updates are the last nodes
    if (v.nodes[i].op->is(trait::writes)) own[v.edges[v.nodes[i].first + 1]] = 1;
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    base[i] = n.op->is(trait::view | trait::writes) ? base[v.edges[n.first]] : i;
    if (n.op->is(trait::writes)) ++version[base[i]];
    if (n.op->is(trait::keeps) || n.controls != 0) {
      detail::emit(g, v, i, map);
      continue;
    }
    unsigned h = detail::mix(static_cast<unsigned>(n.op->name.size()), static_cast<unsigned>(n.dims.rank));
    for (int e = n.first, end = e + n.inputs; e < end; ++e)
      h = detail::mix(h, static_cast<unsigned>(map[v.edges[e]] + 1 + (version[base[v.edges[e]]] << 20)));
    for (int w = 0; w < n.attrs; ++w) h = detail::mix(h, static_cast<unsigned>(v.ints[n.attr + w]));
    unsigned at = (h ^ h >> 16) & static_cast<unsigned>(capacity - 1);
    for (; table[at] >= 0; at = (at + 1) & static_cast<unsigned>(capacity - 1)) {
      const node& m = v.nodes[table[at]];
      if (m.op != n.op || m.inputs != n.inputs || m.attrs != n.attrs || m.type != n.type || !(m.dims == n.dims))
        continue;
      int k = 0;
      while (k < n.inputs && map[v.edges[m.first + k]] == map[v.edges[n.first + k]] &&
             version[base[v.edges[n.first + k]]] == 0)
        ++k;
      if (k < n.inputs) continue;
      k = 0;
      while (k < n.attrs && v.ints[m.attr + k] == v.ints[n.attr + k]) ++k;
      if (k == n.attrs) break;
    }
    if (table[at] >= 0 && n.name < 0 && own[i] == 0)
      map[i] = map[table[at]];
    else {
      detail::emit(g, v, i, map);
      if (table[at] < 0) table[at] = i;
    }
  }
  detail::carry(g, p, map);
  return g;
}

// Keeps what the outputs read, directly or by control edges; placeholders and variables stay, because they are the
// interface. With `effects`, ops with an effect stay too.
constexpr graph remove_dead(const graph_parts& p, bool effects = false) {
  const graph_view& v = p.view;
  graph g = detail::like(p);
  detail::seq<char> live_(v.size, 0);
  detail::seq<int> map_(v.size, -1);
  char* live = live_.first;
  for (int i = 0; i < p.output_count; ++i) live[p.outputs[i].node] = 1;
  for (int i = v.size - 1; i >= 0; --i) {
    const node& n = v.nodes[i];
    if (n.op->is(trait::leaf) ? n.op->is(trait::keeps) : effects && n.op->is(trait::keeps)) live[i] = 1;
    if (live[i] == 0) continue;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) live[v.edges[e]] = 1;
  }
  for (int i = 0; i < v.size; ++i)
    if (live[i] != 0) detail::emit(g, v, i, map_.first);
  detail::carry(g, p, map_.first);
  return g;
}

}  // namespace gradus
