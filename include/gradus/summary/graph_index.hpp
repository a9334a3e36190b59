// A graph_index finds the nodes of a GraphDef by name. The graph is checked as a whole, so that a walk over it meets no
// missing input and no cycle.
#pragma once
#include "../base/build.hpp"

#include <map>
#include <optional>
#include <unordered_map>

#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A tensor of the graph: "name:1" is output 1 of the node `name`.
struct tensor_place {
  int node = -1, output = 0;
  bool operator==(const tensor_place&) const = default;
};

class graph_index {
public:
  // Raises invalid_argument, with the names, for a node without a name or an op, two nodes of one name, an input that
  // is not a node, a data input after a control input, and nodes that depend on each other in a cycle.
  explicit graph_index(graph_def g);
  graph_index(const graph_index&) = delete;
  graph_index& operator=(const graph_index&) = delete;

  int size() const { return static_cast<int>(def_.nodes.size()); }
  const graph_def_node& node(int i) const { return def_.nodes[static_cast<std::size_t>(i)]; }
  // Returns the index of a node, -1 if there is none of this name.
  int find(std::string_view name) const;
  // Returns the place of a tensor, given as "x", "x:0" or "x:2"; its node is -1 if there is none.
  tensor_place place(std::string_view tensor) const;
  std::string name_of(tensor_place t) const;
  const std::vector<tensor_place>& inputs(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  const std::vector<int>& controls(int i) const { return controls_[static_cast<std::size_t>(i)]; }
  // Returns whether some node reads node i, or has it as control input.
  bool is_used(int i) const { return used_[static_cast<std::size_t>(i)]; }

  // Returns an attribute, or null. `as` raises invalid_argument if it is of another kind.
  const attr_value* attribute(int i, std::string_view key) const;
  template <class T>
  const T* as(int i, std::string_view key) const {
    const attr_value* v = attribute(i, key);
    if (v == nullptr) return nullptr;
    if (const T* typed = v->get_if<T>()) return typed;
    wrong_kind(i, key);
  }
  // Returns a required attribute. Raises invalid_argument if it is missing, too.
  template <class T>
  const T& need(int i, std::string_view key) const {
    if (const T* v = as<T>(i, key)) return *v;
    missing(i, key);
  }

private:
  graph_def def_;
  std::unordered_map<std::string_view, int> numbers_;
  std::vector<std::vector<tensor_place>> inputs_;
  std::vector<std::vector<int>> controls_;
  std::vector<bool> used_;

  void refuse_circles() const;
  [[noreturn]] void wrong_kind(int i, std::string_view key) const;
  [[noreturn]] void missing(int i, std::string_view key) const;
};

// Returns the name of a node in messages: `node "x" (MatMul)`.
std::string said_of(const graph_def_node& n);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_index.ipp"
#endif
