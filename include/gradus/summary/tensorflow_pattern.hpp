// This header reads the formulas of tensorflow_ops.hpp the other way: it finds the op of ours behind nodes of
// TensorFlow's. An op that is written as several nodes is found again by them, so the graph comes back as it was
// written, and computes the same bits. Only the helpers of such an op stand under its name ("x/Sub" of "x"); nodes that
// TensorFlow made are taken one by one.
#pragma once
#include <span>

#include "graph_index.hpp"
#include "tensorflow_ops.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A formula as a tree: terms[root] is the node itself.
struct pattern_term {
  enum kinds { operand, all_operands, setting, number, helper, call };
  kinds kind = call;
  std::string_view word = {};  // the op, or the setting
  double value = 0;            // of a number
  bool whole = false;          // a number of int32
  int index = 0;               // of an operand; of a helper, its term
  std::vector<int> operands = {}, after = {};
  std::vector<std::pair<std::string_view, std::string_view>> attrs = {};
};
struct tensorflow_pattern {
  const tensorflow_formula* formula = nullptr;
  std::vector<pattern_term> terms = {};
  int root = 0, calls = 0;
};

// The nodes that a formula's letters stand for in a graph.
struct pattern_match {
  const tensorflow_pattern* what = nullptr;
  std::vector<tensor_place> operands = {};  // a node of -1: the formula does without this one
  std::vector<std::pair<std::string_view, tensor_place>> tensors = {};     // @axes: the tensors that hold them
  std::vector<std::pair<std::string_view, const attr_value*>> attrs = {};  // settings that stand in attributes

  const tensor_place* tensor(std::string_view setting) const;
  const attr_value* attr(std::string_view setting) const;
};

// The name of an op here: TensorFlow has newer and older names for the same.
std::string_view common_op_name(std::string_view op);

// Returns the formulas whose last op this is, those of most nodes first.
std::span<const tensorflow_pattern* const> patterns_of(std::string_view op);

// Returns whether the nodes that end in `node` are this formula's.
std::optional<pattern_match> match(const graph_index& g, const tensorflow_pattern& p, int node);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "tensorflow_pattern.ipp"
#endif
