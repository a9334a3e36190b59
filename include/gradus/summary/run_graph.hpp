// What stands in the .meta file beside a checkpoint: the model's inference and its variables as TensorFlow 1.15's own
// ops, so that TensorFlow imports it, restores a tensor_bundle through it and runs `predictions`:
//
//   saver = tf.train.import_meta_graph("runs/digits/model-500.meta")
//   saver.restore(session, "runs/digits/model-500")
//   session.run("predictions/class:0", {"image:0": images})
//
// The training step is not in it: that is described in graph.pbtxt and in the event file, in our own ops.
#pragma once
#include "meta_graph.hpp"
#include "tensorflow_graph.hpp"

namespace gradus {

// One tensor of a checkpoint: a variable of the model, or what the optimizer keeps beside it.
struct saved_tensor {
  std::string name;  // of the node, and in the file unless `key` says otherwise
  dtype type = dtype::none;
  std::vector<std::int64_t> dims;
  bool trainable = false;
  std::string key = {};    // name in the file
  std::string slice = {};  // of a tensor in parts: "10 2 0,5:0,2", as TensorFlow's Saver writes it
  std::optional<variable_def::slice> part = {};
};

// The collection of what could not be written, and why: a sentence for each prediction.
inline constexpr std::string_view left_out_collection = "gradus_left_out";

namespace detail {

class meta_writer {
public:
  meta_writer(const graph_parts& p, const char* names, std::string_view refusal);

  meta_graph run(std::vector<saved_tensor> saved);

private:
  using tensor = tensorflow_tensor;

  graph_parts p_;
  const char* names_;
  std::vector<shown_node> nodes_;
  std::string why_none_ = "the model names no predictions";
  meta_graph m_;
  tensorflow_graph to_;
  std::vector<bool> wanted_;
  std::vector<tensor> written_;  // of each of our nodes
  std::vector<std::string> variables_;

  static bool is_variable(const shown_node& n) { return n.source->op == &variable_card; }
  variable_attr settings_of(const shown_node& n) const;
  int input(std::size_t i, int k) const { return p_.view.edges[nodes_[i].source->first + k]; }
  static bool is_leaf(const shown_node& n);

  // ---- what is written: the nodes that predictions are made of, unless one of them is not to be had
  std::string problem_of(const shown_node& n, bool batched_input) const;
  void find_wanted();
  bool needs_batch() const;

  // ---- nodes
  static tensorflow_settings shaped(const std::vector<std::int64_t>& dims, dtype type);
  void add_node(std::size_t i);

  // ---- variables: what they start with, the node, its Assign, and the tensor that is read
  tensor add_initial_value(const std::string& name, const saved_tensor& s, const variable_attr& a);
  variable_def add_variable_nodes(const saved_tensor& s, const std::string& name, std::size_t ours);
  void add_saved(const saved_tensor& s);

  // ---- what is fed and fetched, by the names that the model gave
  void add_predictions();

  // ---- the nodes that tf.train.Saver() makes
  void add_saver(const std::vector<saved_tensor>& saved);
};

}  // namespace detail

// The graph of a model built for mode::predict, before its nodes are fused, and what a checkpoint of it holds; none
// said: the graph's own variables but for the local ones. A prediction that TensorFlow cannot compute is left out, and
// the collection `left_out_collection` says so; `refusal` is why there is no such graph, if there is none.
meta_graph to_meta_graph(const graph_parts& p, const char* names, std::vector<saved_tensor> saved = {},
                         std::string_view refusal = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_graph.ipp"
#endif
