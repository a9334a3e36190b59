// to_graph_def converts a graph of this library to TensorFlow's GraphDef, for event files, whose graph TensorBoard
// draws, and for graph.pbtxt.
//
//   writer.add_graph(to_graph_def(built));               // what was built; or, with gradients and updates:
//   const graph whole = minimize(parts_of(built), {});
//   writer.add_graph(to_graph_def(parts_of(whole), built.names.chars.first));
//
// Pass the graph as it is before nodes are merged and fused (graph/show.hpp says why).
#pragma once
#include "../graph/show.hpp"
#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
shape_def to_shape_def(const shape& s);
template <class T>
void append_elements(std::vector<std::byte>& to, const std::vector<double>& values) {
  for (double v : values) {
    const T x = element_from<T>(v);
    const auto* p = reinterpret_cast<const std::byte*>(&x);
    to.insert(to.end(), p, p + sizeof(T));
  }
}
// Returns the value of a constant. One whose elements are all equal is written as a scalar, since its extents may
// contain the batch, and a million zeros do not belong in an event file.
tensor_def to_tensor_def(const shown_node& s);
}  // namespace detail

// Returns the GraphDef of a graph. Attributes follow TensorFlow's conventions: "dtype" and "shape" of placeholders and
// variables, "dtype" and "value" of constants, "T" of other ops; "_output_shapes" everywhere, which TensorBoard writes
// on the edges. The batch is -1. Further settings of ops (strides, axes, ...) are not written: this is a description,
// not a program.
graph_def to_graph_def(const graph_parts& p, const char* names);
inline graph_def to_graph_def(const graph& g) { return to_graph_def(parts_of(g), g.names.chars.first); }

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "graph.ipp"
#endif
