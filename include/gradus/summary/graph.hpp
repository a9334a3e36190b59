// A graph of ours as TensorFlow's GraphDef, for the event file that TensorBoard draws and for graph.pbtxt.
//
//   writer.add_graph(to_graph_def(built));               // what was built; or, with gradients and updates:
//   const graph whole = minimize(parts_of(built), {});
//   writer.add_graph(to_graph_def(parts_of(whole), built.names.chars.first));
//
// Give it the graph before nodes are merged and fused (graph/show.hpp says why).
#pragma once
#include "../graph/show.hpp"
#include "graph_def.hpp"

namespace gradus {

namespace detail {
inline shape_def to_shape_def(const shape& s) {
  shape_def d;
  for (int i = 0; i < s.rank; ++i) d.dims.push_back(s.dims[i] < 0 ? -1 : s.dims[i]);
  return d;
}
template <class T>
void append_elements(std::vector<std::byte>& to, const std::vector<double>& values) {
  for (double v : values) {
    const T x = static_cast<T>(v);
    const auto* p = reinterpret_cast<const std::byte*>(&x);
    to.insert(to.end(), p, p + sizeof(T));
  }
}
// A constant that is one value everywhere is written as the scalar it stands for: its extents may hold the batch, and
// nobody wants a million zeros in an event file.
inline tensor_def to_tensor_def(const shown_node& s) {
  tensor_def t{s.type, {}, {}};
  if (s.constant.size() > 1)
    for (int i = 0; i < s.dims.rank; ++i) t.dims.push_back(s.dims.dims[i]);
  switch (s.type) {
  case dtype::float32: append_elements<float>(t.content, s.constant); break;
  case dtype::float64: append_elements<double>(t.content, s.constant); break;
  case dtype::int32: append_elements<std::int32_t>(t.content, s.constant); break;
  case dtype::int64: append_elements<std::int64_t>(t.content, s.constant); break;
  case dtype::boolean: append_elements<bool>(t.content, s.constant); break;
  default: append_elements<std::uint8_t>(t.content, s.constant); break;
  }
  return t;
}
}  // namespace detail

// Attributes by TensorFlow's conventions: "dtype" and "shape" of placeholders and variables, "dtype" and "value" of
// constants, "T" of other ops; "_output_shapes" everywhere, which TensorBoard writes on the edges. The batch is -1. Our
// ops' further settings (strides, axes, ...) are not among them: this is a description, not a program.
inline graph_def to_graph_def(const graph_parts& p, const char* names) {
  graph_def d;
  for (shown_node& s : describe(p, names)) {
    graph_def_node n{std::move(s.name), std::string(s.op), std::move(s.inputs), std::string(s.device), {}};
    const card* op = s.source->op;
    if (op == &placeholder_card || op == &variable_card) {
      n.attrs.push_back({"dtype", s.type});
      n.attrs.push_back({"shape", detail::to_shape_def(s.dims)});
      if (op == &variable_card) {
        n.attrs.push_back({"container", std::string()});
        n.attrs.push_back({"shared_name", std::string()});
      }
    } else if (op == &constant_card) {
      n.attrs.push_back({"dtype", s.type});
      n.attrs.push_back({"value", detail::to_tensor_def(s)});
    } else if (s.type != dtype::none) {
      n.attrs.push_back({"T", s.type});
    }
    if (s.type != dtype::none)
      n.attrs.push_back({"_output_shapes", std::vector<shape_def>{detail::to_shape_def(s.dims)}});
    d.nodes.push_back(std::move(n));
  }
  return d;
}
inline graph_def to_graph_def(const graph& g) { return to_graph_def(parts_of(g), g.names.chars.first); }

}  // namespace gradus
