// The importer makes nodes of this library's graph from TensorFlow's nodes, one after another on request (programs use
// import_meta_graph.hpp).
#pragma once
#include "../base/build.hpp"

#include <map>

#include "import_words.hpp"

namespace gradus::inline GRADUS_BUILD {

// This placeholder replaces a tensor of the file.
struct stand_in_placeholder {
  shape dims;
  dtype type = float32;
};

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

// These are the properties of a variable besides its shape, which the collections hold under its name.
struct imported_variable {
  bool trainable = true, local = false;
  std::string initial_value = {};  // a node's name
};

class graph_importer final : public import_words {
public:
  graph_importer(graph_def d, std::map<std::string, imported_variable> variables,
                 std::map<std::string, stand_in_placeholder> stand_ins);

  // Returns the tensor, which is made now if this is the first request. Raises not_found if there is no such tensor,
  // unimplemented for an op that this library does not have, and invalid_argument for an invalid node, each with the
  // name of the faulty node, which may be far upstream of this one.
  value tensor(std::string_view name);
  // Returns the reason why the tensor cannot be made, or an empty string if it can.
  std::string problem(std::string_view name);

private:
  std::map<std::string, imported_variable> variables_;
  std::map<std::string, stand_in_placeholder> stand_ins_;

  void make_all(int node);
  value make(int i);
  value special(int i, std::string_view op, bool& known);
  value strided_slice(int i);
  value leaf(int i, std::string_view op);
  value variable(int i);
  bool first_value(int i, const imported_variable& a, const shape& dims, dtype type, variable_options& o, value& from);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_importer.ipp"
#endif
