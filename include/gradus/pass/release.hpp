// This pass lets the memory of gradients be used again: each update, or each addition to a sum, is a call right after
// what it waits for, instead of one at the end of the step. The plan then gives a gradient a slot, from the node that
// makes it to the one that uses it, in place of an array beside all variables (plan(p, reuse, release)).
#pragma once
#include "../ops/state.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

// It runs after add_gates, which defines what an update waits for: its gradient, the readers of its variable's old
// value, and what a gate adds. Everything else keeps its order.
constexpr graph release_updates(const graph_parts& p) {
  const graph_view& v = p.view;
  graph g = detail::like(p);
  // behind: the node that an update comes after; by node, the list of its updates, in order
  detail::seq<int> map(v.size, -1), behind(v.size, 0), head(v.size, -1), tail(v.size, -1), next(v.size, -1);
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    behind[i] = i;
    if (n.op != &cards::apply) continue;
    int last = 0;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
      if (behind[v.edges[e]] > last) last = behind[v.edges[e]];
    behind[i] = last;
    (tail[last] < 0 ? head[last] : next[tail[last]]) = i, tail[last] = i;
  }
  for (int i = 0; i < v.size; ++i) {
    if (v.nodes[i].op == &cards::apply) continue;
    detail::emit(g, v, i, map.first);
    for (int k = head[i]; k >= 0; k = next[k]) detail::emit(g, v, k, map.first);
  }
  detail::carry(g, p, map.first);
  return g;
}

}  // namespace gradus
