// These functions write a graph as bytes, so that an interpreted graph can be sent to the server that runs it. Ops are
// written as the names of their cards, and nodes keep their numbers, so that a fetch or a feed is a node's number on
// both sides.
//
//   const std::vector<std::byte> bytes = graph_to_bytes(g);
//   unknown_ops unknown;
//   graph same = graph_from_bytes(bytes, cards, unknown);   // cards(name): the op's card; null: this program has none
//
// A graph that is read is checked as the result of a pass would be: pools, edges, names and every op's shape rule
// (graph/law.hpp). Attributes that no shape rule reads are not checked. So a client that may send a graph may run any
// program, as with TensorFlow's servers.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../graph/graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Raises unimplemented for a graph that passes have fused.
std::vector<std::byte> graph_to_bytes(const graph& g);
// Returns the card of an op by its name, or null if there is none.
using card_finder = std::function<const card*(std::string_view name)>;
// The ops of a graph for which this program has no card. Their nodes are in the graph and cannot run.
class unknown_ops {
public:
  const card& add(const std::string& name);
  bool empty() const { return cards_.empty(); }
  bool has(const card* op) const;

private:
  std::deque<std::string> names_;
  std::deque<card> cards_;
};
// Returns the graph, which points into `unknown`. Raises data_loss for bytes that are malformed or that break a law
// of graphs.
graph graph_from_bytes(std::span<const std::byte> bytes, const card_finder& cards, unknown_ops& unknown);
// Returns the names of unknown ops that these nodes need, as a list in words; empty if they need none.
std::string unknown_for(const graph& g, std::span<const int> nodes, const unknown_ops& unknown);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_bytes.ipp"
#endif
