// The graph of a run as TensorFlow's MetaGraphDef: what stands in the .meta file beside a checkpoint.
//
// It describes; it does not run: our graphs have no nodes that save and restore, so there is no saver_def in it.
#pragma once
#include "graph.hpp"
#include "meta_graph.hpp"

namespace gradus {

// The graph, and its variables in the collections "variables" and "trainable_variables".
inline meta_graph to_meta_graph(const graph_parts& p, const char* names) {
  meta_graph m;
  m.saver = std::nullopt;
  m.graph = to_graph_def(p, names);
  for (const shown_node& s : describe(p, names))
    if (s.source->op == &variable_card)
      add_variable(
          m, {.name = s.name, .trainable = from_words<variable_attr>(p.view.ints + s.source->attr).trainable != 0});
  return m;
}

}  // namespace gradus
