// The bodies of graph_index.hpp.
#pragma once
#include "../base/body.hpp"
#include "graph_index.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string said_of(const graph_def_node& n) { return text("node \"", n.name, "\" (", n.op, ")"); }

GRADUS_BODY graph_index::graph_index(graph_def g) : def_(std::move(g)) {
  const std::size_t many = def_.nodes.size();
  inputs_.resize(many), controls_.resize(many), used_.resize(many);
  numbers_.reserve(many);
  for (std::size_t i = 0; i < many; ++i) {
    const graph_def_node& n = def_.nodes[i];
    if (n.name.empty() || n.op.empty())
      raise(status::invalid_argument, text("node ", i, " of the graph has no ", n.name.empty() ? "name" : "op"));
    if (!numbers_.emplace(n.name, static_cast<int>(i)).second)
      raise(status::invalid_argument, text("two nodes of the graph are called \"", n.name, "\""));
  }
  for (std::size_t i = 0; i < many; ++i) {
    const graph_def_node& n = def_.nodes[i];
    bool control = false;
    for (const std::string& input : n.inputs) {
      const bool waits = input.starts_with('^');
      const tensor_place t = place(std::string_view(input).substr(waits ? 1 : 0));
      if (t.node < 0)
        raise(status::invalid_argument,
              text(said_of(n), " has the input \"", input, "\", which is no node of the graph"));
      if (control && !waits)
        raise(status::invalid_argument, text(said_of(n), " has the data input \"", input, "\" behind a control input"));
      control = waits;
      used_[static_cast<std::size_t>(t.node)] = true;
      if (waits)
        controls_[i].push_back(t.node);
      else
        inputs_[i].push_back(t);
    }
  }
  refuse_circles();
}

GRADUS_BODY int graph_index::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

GRADUS_BODY tensor_place graph_index::place(std::string_view tensor) const {
  const auto colon = tensor.rfind(':');
  int output = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = tensor.substr(colon + 1);
    if (digits.empty() || digits.size() > 6) return {};
    for (const char c : digits) {
      if (c < '0' || c > '9') return {};
      output = 10 * output + (c - '0');
    }
    tensor = tensor.substr(0, colon);
  }
  return {find(tensor), output};
}

GRADUS_BODY std::string graph_index::name_of(tensor_place t) const {
  return t.output == 0 ? node(t.node).name : text(node(t.node).name, ":", t.output);
}

GRADUS_BODY const attr_value* graph_index::attribute(int i, std::string_view key) const {
  for (const graph_def_attr& a : node(i).attrs)
    if (a.key == key) return &a.value;
  return nullptr;
}

GRADUS_BODY void graph_index::wrong_kind(int i, std::string_view key) const {
  raise(status::invalid_argument,
        text(said_of(node(i)), ": the attribute \"", key, "\" is of another kind than this op's"));
}

GRADUS_BODY void graph_index::missing(int i, std::string_view key) const {
  raise(status::invalid_argument, text(said_of(node(i)), " has no attribute \"", key, "\""));
}

// Raises for a graph with a cycle. Nodes are taken as soon as all their inputs have been taken; a node that is left is
// in a cycle, or depends on one.
GRADUS_BODY void graph_index::refuse_circles() const {
  const std::size_t many = def_.nodes.size();
  std::vector<int> waits(many), ready;
  std::vector<std::vector<int>> readers(many);
  for (std::size_t i = 0; i < many; ++i) {
    waits[i] = static_cast<int>(inputs_[i].size() + controls_[i].size());
    for (const tensor_place t : inputs_[i]) readers[static_cast<std::size_t>(t.node)].push_back(static_cast<int>(i));
    for (const int c : controls_[i]) readers[static_cast<std::size_t>(c)].push_back(static_cast<int>(i));
    if (waits[i] == 0) ready.push_back(static_cast<int>(i));
  }
  std::size_t taken = 0;
  for (; taken < ready.size(); ++taken)
    for (const int r : readers[static_cast<std::size_t>(ready[taken])])
      if (--waits[static_cast<std::size_t>(r)] == 0) ready.push_back(r);
  if (taken == many) return;
  // The walk goes backwards from a node that is left: each of these depends on another one, so the walk returns to a
  // node.
  std::size_t at = 0;
  while (waits[at] == 0) ++at;
  const auto one_left = [&](std::size_t i) {
    for (const tensor_place t : inputs_[i])
      if (waits[static_cast<std::size_t>(t.node)] != 0) return static_cast<std::size_t>(t.node);
    for (const int c : controls_[i])
      if (waits[static_cast<std::size_t>(c)] != 0) return static_cast<std::size_t>(c);
    return i;
  };
  for (std::size_t steps = 0; steps < many; ++steps) at = one_left(at);
  raise(status::invalid_argument,
        text(said_of(def_.nodes[at]),
             " waits for itself: its inputs go round in a circle, as those of TensorFlow's while "
             "loops do; this library has no loops in a graph, so give the part before it"));
}

}  // namespace gradus::detail
