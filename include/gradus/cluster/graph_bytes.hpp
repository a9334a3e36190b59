// A graph as bytes: how an interpreted graph reaches the server that runs it. Ops go by the names of their cards, and
// nodes keep their numbers, so that a fetch or a feed is a node's number on both sides.
//
//   const std::vector<std::byte> bytes = graph_to_bytes(g);
//   unknown_ops unknown;
//   graph same = graph_from_bytes(bytes, cards, unknown);   // cards(name): the op's card; null: this program has none
//
// What is read is checked as a pass would be: pools, edges, names and every op's shape rule (graph/law.hpp). What is
// not checked are attributes that no shape rule looks at. So whoever may send a graph may run a program, as with
// TensorFlow's servers.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../graph/graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Error: unimplemented for a graph that passes have fused.
std::vector<std::byte> graph_to_bytes(const graph& g);
// The card of an op by its name; null: none.
using card_finder = std::function<const card*(std::string_view name)>;
// Ops of a graph that this program has no card of. Their nodes are in the graph and cannot run.
class unknown_ops {
public:
  const card& add(const std::string& name);
  bool empty() const { return cards_.empty(); }
  bool has(const card* op) const;

private:
  std::deque<std::string> names_;
  std::deque<card> cards_;
};
// The graph points into `unknown`. Error: data_loss for what is malformed or breaks a law of graphs.
graph graph_from_bytes(std::span<const std::byte> bytes, const card_finder& cards, unknown_ops& unknown);
// The names of unknown ops that these nodes need, as a list; empty: none.
std::string unknown_for(const graph& g, std::span<const int> nodes, const unknown_ops& unknown);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_bytes.ipp"
#endif
