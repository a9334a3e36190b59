// The bodies of graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY shape_def to_shape_def(const shape& s) {
  shape_def d;
  for (int i = 0; i < s.rank; ++i) d.dims.push_back(s.dims[i] < 0 ? -1 : s.dims[i]);
  return d;
}

GRADUS_BODY tensor_def to_tensor_def(const shown_node& s) {
  tensor_def t{s.type, {}, {}};
  if (s.constant.size() > 1)
    for (int i = 0; i < s.dims.rank; ++i) t.dims.push_back(s.dims.dims[i]);
  with_element_type(s.type, [&]<class T>() { append_elements<T>(t.content, s.constant); });
  return t;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY graph_def to_graph_def(const graph_parts& p, const char* names) {
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

}  // namespace gradus
