// The bodies of rows_ahead.hpp.
#pragma once
#include "../base/body.hpp"
#include "rows_ahead.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void rows_ahead::find(const runnable& r) {
  found_.clear();
  for (int i = 0; i < r.graph.view.size; ++i) {
    const node& n = r.at(i);
    if (n.op != &cards::apply || n.inputs != 3) continue;
    const int ids = r.graph.view.edges[n.first + 2];
    if (const int from = placeholder_of(r, ids, r.at(ids), deepest); from >= 0) found_.push_back({i, from});
  }
}

GRADUS_BODY int rows_ahead::placeholder_of(const runnable& r, int i, const node& rows, int depth) {
  const node& n = r.at(i);
  if (n.type != rows.type || gradus::count(n.dims) != gradus::count(rows.dims)) return -1;
  if (n.op == &placeholder_card) return i;
  for (int k = 0; depth > 0 && k < n.inputs; ++k)
    if (const int found = placeholder_of(r, r.graph.view.edges[n.first + k], rows, depth - 1); found >= 0) return found;
  return -1;
}

}  // namespace gradus::detail
