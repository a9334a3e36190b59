// The .meta file beside a checkpoint holds the model's inference and its variables as TensorFlow 1.15's own ops, so
// that TensorFlow imports it, restores a tensor_bundle through it and runs `predictions`:
//
//   saver = tf.train.import_meta_graph("runs/digits/model-500.meta")
//   saver.restore(session, "runs/digits/model-500")
//   session.run("predictions/class:0", {"image:0": images})
//
// The training step is not in it: graph.pbtxt and the event file describe that, in this library's own ops.
#pragma once
#include "../graph/parts.hpp"
#include "meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

// The collection of the predictions that could not be written: it has a sentence with the reason for each.
inline constexpr std::string_view left_out_collection = "gradus_left_out";

// Returns the graph of a model built for mode::predict, before its nodes are fused, and the contents of a checkpoint of
// it, by default the graph's own variables except the local ones. A prediction that TensorFlow cannot compute is left
// out, and the collection `left_out_collection` names it; `refusal` is the reason for the case that there is no such
// graph.
meta_graph to_meta_graph(const graph_parts& p, const char* names, std::vector<saved_tensor> saved = {},
                         std::string_view refusal = {});

// The inputs and outputs of a signature by keys, as indices of nodes: inputs are placeholders, outputs are any nodes.
struct node_signature {
  std::map<std::string, int> inputs, outputs;
  std::string method = "tensorflow/serving/predict";
};

// Returns the same for these signatures instead of the model's predictions: the nodes of their outputs, their inputs,
// and the variables `saved`. An output may be a metric's update: nodes that change a local variable are written, too.
// Raises, naming signature and key, unimplemented for an output that TensorFlow cannot compute, invalid_argument for an
// input that is not a placeholder, and for an output that needs a placeholder which is not an input.
meta_graph to_meta_graph(const graph_parts& p, const char* names, std::vector<saved_tensor> saved,
                         const std::map<std::string, node_signature>& signatures);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_graph.ipp"
#endif
