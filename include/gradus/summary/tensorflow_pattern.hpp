// This header applies the formulas of tensorflow_ops.hpp in reverse: it finds the op of this library for nodes of
// TensorFlow's ops. An op that is written as several nodes is recognized from them, so the graph that is read is the
// one that was written, and computes the same bits. Only the helpers of such an op have names that begin with its name
// ("x/Sub" of "x"); nodes that TensorFlow made are read one by one.
#pragma once
#include "../base/build.hpp"

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

// The nodes of a graph that the variables of a formula stand for.
struct pattern_match {
  const tensorflow_pattern* what = nullptr;
  std::vector<tensor_place> operands = {};  // a node of -1: the formula does not use this operand
  std::vector<std::pair<std::string_view, tensor_place>> tensors = {};     // @axes: the tensors that hold them
  std::vector<std::pair<std::string_view, const attr_value*>> attrs = {};  // settings that are attributes

  const tensor_place* tensor(std::string_view setting) const;
  const attr_value* attr(std::string_view setting) const;
};

// Returns the name that is used here for an op, since TensorFlow has newer and older names for the same op.
std::string_view common_op_name(std::string_view op);

// Returns the formulas whose last op this is, those with the most nodes first.
std::span<const tensorflow_pattern* const> patterns_of(std::string_view op);

// Returns the match if the nodes that end in `node` are those of this formula.
std::optional<pattern_match> match(const graph_index& g, const tensorflow_pattern& p, int node);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "tensorflow_pattern.ipp"
#endif
