// The bodies of graph_digest.hpp.
#pragma once
#include <bit>

#include "../base/body.hpp"
#include "../base/fnv1a.hpp"
#include "../run/frozen_record.hpp"
#include "graph_digest.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::uint64_t digest_of(const graph_view& g) {
  fnv1a d;
  const auto signed_number = [&d](int n) { d.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(n))); };
  const auto name = [&d](std::string_view s) { d.number(s.size()).text(s); };
  for (int i = 0; i < g.size; ++i) {
    const node& n = g.nodes[i];
    name(n.op->name);
    if (const frozen_weights* w = n.op->frozen) d.number(digest_of(*w));
    d.number(static_cast<std::uint64_t>(n.type));
    signed_number(n.dims.rank);
    for (int k = 0; k < n.dims.rank; ++k) signed_number(n.dims.dims[k]);
    signed_number(n.inputs), signed_number(n.controls), signed_number(n.attrs);
    for (int k = 0; k < n.inputs + n.controls; ++k) signed_number(g.edges[n.first + k]);
    for (int k = 0; k < n.attrs; ++k) signed_number(g.ints[n.attr + k]);
  }
  for (int i = 0; i < g.expression_count; ++i) {
    const expression& e = g.expressions[i];
    signed_number(e.inputs), signed_number(e.steps), signed_number(e.loops);
    d.number(static_cast<std::uint64_t>(e.type)), d.number(static_cast<std::uint64_t>(e.result_type));
    for (int k = 0; k < e.loops; ++k) signed_number(e.extent[k]);
    for (int k = 0; k < e.inputs; ++k) d.number(e.varies[k]), d.number(static_cast<std::uint64_t>(e.operand_type[k]));
    for (int k = 0; k < e.steps; ++k) {
      name(e.op[k]->name);
      for (const unsigned char a : e.arg[k]) d.number(a);
    }
  }
  return d.value();
}

}  // namespace gradus::detail
