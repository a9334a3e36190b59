// GraphDef is TensorFlow's description of a graph, as protobuf bytes (for event files, so that TensorBoard draws the
// graph) and as text (graph.pbtxt, as tf.train.write_graph writes it).
//
// These are plain structs that do not depend on this library's graphs: the code that has a graph fills them in. Bytes
// and text are made by the same walk over the fields, so their content cannot differ.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "attr_value.hpp"

namespace gradus::inline GRADUS_BUILD {

struct graph_def_attr {
  std::string key;  // a leading '_' marks an attribute that graph comparison ignores
  attr_value value;
};

struct graph_def_node {
  std::string name;  // "hidden/dense/kernel": '/' makes the hierarchy that TensorBoard folds
  std::string op;
  std::vector<std::string> inputs = {};  // "node", "node:1" for a later output, then "^node" for control dependencies
  std::string device = {};
  std::vector<graph_def_attr> attrs = {};  // any order; written sorted by key
};

struct graph_def {
  std::vector<graph_def_node> nodes;
  int producer = 134;  // as in TensorFlow 1.15
  int min_consumer = 12;
};

// Returns the name of a dtype: "DT_FLOAT" and so on.
constexpr std::string_view data_type_name(dtype t) {
  if (t == string_in_graphs) return "DT_STRING";
  switch (t) {
  case dtype::float32: return "DT_FLOAT";
  case dtype::float64: return "DT_DOUBLE";
  case dtype::int32: return "DT_INT32";
  case dtype::uint8: return "DT_UINT8";
  case dtype::int64: return "DT_INT64";
  case dtype::boolean: return "DT_BOOL";
  case dtype::bfloat16: return "DT_BFLOAT16";
  case dtype::float16: return "DT_HALF";
  case dtype::int8: return "DT_INT8";
  case dtype::int16: return "DT_INT16";
  case dtype::uint16: return "DT_UINT16";
  case dtype::uint32: return "DT_UINT32";
  case dtype::uint64: return "DT_UINT64";
  case dtype::float8_e5m2: return "DT_FLOAT8_E5M2";
  case dtype::float8_e4m3: return "DT_FLOAT8_E4M3FN";
  case dtype::none: break;
  }
  return "DT_INVALID";
}

namespace detail {

// Returns the shortest text that reads back as this double, in the layout that protobuf's Python printer uses: there is
// always a decimal point or an exponent, and an exponent below 1e-4 and from 1e16 on.
std::string shortest_text(double value);

}  // namespace detail

// Appends the GraphDef message. Raises invalid_argument for an attribute given twice, a data input after a control
// input, and a constant whose content does not fit its type and extents.
void encode_graph_def(std::vector<std::byte>& out, const graph_def& g);

// Returns the same in protobuf's text format. tf.train.write_graph publishes it as graph.pbtxt by writing a temporary
// file and renaming it; store/file.hpp does that here.
std::string to_pbtxt(const graph_def& g);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "graph_def.ipp"
#endif
