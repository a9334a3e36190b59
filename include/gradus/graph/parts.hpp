// Passes read these parts of a graph, and laws check them; they are the same for a graph that grows and one that is
// frozen.
#pragma once
#include "graph.hpp"

namespace gradus::inline GRADUS_BUILD {

// The data that passes carry along with the nodes.
struct graph_parts {
  graph_view view;
  const output* outputs = nullptr;
  int output_count = 0;
  const int* gates = nullptr;
  int gate_count = 0;
  mode what = mode::train;
};
constexpr graph_parts parts_of(const graph& g) {
  return {g.view(), g.outputs.first, g.outputs.count, g.gates.first, g.gates.count, g.mode()};
}

}  // namespace gradus
