// The bodies of graph_digest.hpp.
#pragma once
#include <bit>
#include <vector>

#include "../base/body.hpp"
#include "../base/fnv1a.hpp"
#include "../run/frozen_record.hpp"
#include "graph_digest.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Adds a node; number(id) returns that of an operand.
template <class Number>
void add_node(fnv1a& d, const graph_view& g, const node& n, bool with_attributes, Number number) {
  const auto signed_number = [&d](int k) { d.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(k))); };
  d.number(std::string_view(n.op->name).size()).text(n.op->name);
  if (const frozen_weights* w = n.op->frozen) d.number(digest_of(*w));
  d.number(static_cast<std::uint64_t>(n.type));
  signed_number(n.dims.rank);
  for (int k = 0; k < n.dims.rank; ++k) signed_number(n.dims.dims[k]);
  signed_number(n.inputs), signed_number(n.controls), signed_number(n.attrs);
  for (int k = 0; k < n.inputs + n.controls; ++k) signed_number(number(g.edges[n.first + k]));
  for (int k = 0; with_attributes && k < n.attrs; ++k) signed_number(g.ints[n.attr + k]);
}

GRADUS_BODY op_digest digest_of(const graph_view& g, int needed, bool (*numbered)(const card*)) {
  std::vector<int> numbers(static_cast<std::size_t>(g.size), -1);
  numbers[static_cast<std::size_t>(needed)] = 0;
  for (int i = needed; i >= 0; --i) {  // operands come before what they are operands of
    const node& n = g.nodes[i];
    if (numbers[static_cast<std::size_t>(i)] < 0) continue;
    for (int e = n.first, end = n.first + n.inputs + n.controls; e < end; ++e)
      numbers[static_cast<std::size_t>(g.edges[e])] = 0;
  }
  fnv1a d;
  op_digest all;
  for (int i = 0; i <= needed; ++i) {
    if (numbers[static_cast<std::size_t>(i)] < 0) continue;
    numbers[static_cast<std::size_t>(i)] = all.ops++;
    add_node(d, g, g.nodes[i], !numbered(g.nodes[i].op), [&](int id) { return numbers[static_cast<std::size_t>(id)]; });
  }
  all.value = d.value();
  return all;
}

GRADUS_BODY std::uint64_t digest_of(const graph_view& g) {
  fnv1a d;
  const auto signed_number = [&d](int n) { d.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(n))); };
  const auto name = [&d](std::string_view s) { d.number(s.size()).text(s); };
  for (int i = 0; i < g.size; ++i) add_node(d, g, g.nodes[i], true, [](int id) { return id; });
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
