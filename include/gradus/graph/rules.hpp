// This header has the arguments of a card's gradient rule and lowering.
#pragma once
#include "graph.hpp"

namespace gradus::inline GRADUS_BUILD {

// The arguments of an op's gradient rule. `to(i, v)` adds v to the gradient of operand i.
struct backward {
  graph& g;
  int id;
  value dy;                       // gradient of the result
  gradient_value* contributions;  // one per operand; empty: None
  const char* wanted;             // whether operand i leads to something differentiated

  constexpr value out() const { return {&g, id}; }
  constexpr value in(int i) const { return {&g, g.edges[g.nodes[id].first + i]}; }
  constexpr int operands() const { return g.nodes[id].inputs; }
  constexpr bool wants(int i) const { return wanted[i] != 0; }
  constexpr void to(int i, value v) { contributions[i].dense = v; }
  constexpr void to_rows(int i, value values, value indices) {
    contributions[i].values = values, contributions[i].indices = indices;
  }
  template <class Attributes>
  constexpr Attributes attributes() const {
    return from_words<Attributes>(g.ints.first + g.nodes[id].attr);
  }
};

// The arguments of an op's lowering: it writes the extents that its kernel loops over into `dims`. Extents that hold
// the batch are negative; an extent of 0 is the number of rows, given by `rows`.
struct lowering {
  const graph_view& v;
  const node& n;
  int dims[max_extents] = {};
  std::int64_t rows = 0;

  constexpr const shape& out() const { return n.dims; }
  constexpr const shape& in(int i) const { return v.nodes[v.edges[n.first + i]].dims; }
  constexpr dtype in_type(int i) const { return v.nodes[v.edges[n.first + i]].type; }
  template <class Attributes>
  constexpr Attributes attributes() const {
    return from_words<Attributes>(v.ints + n.attr);
  }
};

}  // namespace gradus
