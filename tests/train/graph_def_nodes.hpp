// Nodes of a GraphDef as TensorFlow writes them, and the graph that is imported from them: what the tests of importing
// share.
#pragma once
#include <gradus/train/import_meta_graph.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graph_def_nodes {
using namespace gradus;

// int32, of these numbers; a scalar, or a vector.
inline tensor_def whole(const std::vector<std::int32_t>& list, bool scalar = false) {
  tensor_def t{int32, {}, {}};
  if (!scalar) t.dims = {static_cast<std::int64_t>(list.size())};
  const auto b = std::as_bytes(std::span(list));
  t.content.assign(b.begin(), b.end());
  return t;
}
inline graph_def_node numbers(const char* name, const std::vector<std::int32_t>& list) {
  return {name, "Const", {}, {}, {{"dtype", int32}, {"value", whole(list)}}};
}
inline graph_def_node single(const char* name, std::int32_t n) {
  return {name, "Const", {}, {}, {{"dtype", int32}, {"value", whole({n}, true)}}};
}
inline graph_def_node input(const char* name, std::vector<std::int64_t> dims, dtype type = float32) {
  return {name, "Placeholder", {}, {}, {{"dtype", type}, {"shape", shape_def{std::move(dims)}}}};
}
inline imported_graph of(std::vector<graph_def_node> nodes, const import_options& o = {}) {
  std::vector<std::byte> bytes;
  encode_graph_def(bytes, {std::move(nodes)});
  return import_graph_def(bytes, o);
}
// Why this tensor of the graph cannot be had.
inline std::string problem(std::vector<graph_def_node> nodes, const char* tensor) {
  const auto g = of(std::move(nodes));
  try {
    g[tensor];
  } catch (const error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
inline bool says(const std::string& all, std::string_view part) {
  INFO(all);
  return all.find(part) != std::string::npos;
}

}  // namespace graph_def_nodes
