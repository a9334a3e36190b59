// These functions build the first layers of a model of feature columns as graph values, for models that are built at
// run time, since their sizes come from the columns.
//
//   auto trainer = make_trainer([layout](graph& g) {
//     const value deep = input_layer(g, layout);                        [batch, width]
//     const value wide = linear_model(g, layout);                       [batch, 1]
//     const value label = g.placeholder("label", {batch, 1});
//     const value logits = wide + dense(relu(dense(deep, {.units = 32})), {.units = 1});
//     return model_spec{.loss = reduce_mean(sigmoid_cross_entropy(logits, label))};
//   }, adagrad{.rate = 0.1});
//
// They make the placeholders that the layout's batches feed by name; both layers share a placeholder of the same name.
// So call them where no name scope is open, or give a source, as an estimator's model does, whose features are tensors
// already. A model that is built at compile time declares its placeholders itself, and uses sparse_embedding and
// sparse_linear of ops/embedding.hpp. The functions work as tf.feature_column.input_layer and linear_model (TensorFlow
// 1.15).
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <string>

#include "../ops/arrange.hpp"
#include "../ops/matmul.hpp"
#include "feature_layout.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns the graph value of a component of the layout's batches, by the component's name.
using feature_source = std::function<value(const std::string& name)>;

namespace detail {

int graph_extent(std::int64_t n, std::string_view column);
value fed_by(graph& g, const std::string& name, std::int64_t width, dtype type, const feature_source& source);
// The ids of a column in a graph, and their weights if it has any.
struct fed_ids {
  value ids, weights;
};
fed_ids fed_by(graph& g, const feature_layout& layout, const categorical_column& c, const feature_source& source);

}  // namespace detail

struct input_layer_options {
  std::string_view name = "input_layer";
  bool trainable = true;
  feature_source source = {};  // none: placeholders of the components' names, found or made
};
// Returns the layout's columns side by side, in the order of their names. An embedding_column has the variable
// "<name>/<column>_embedding/embedding_weights", and shared ones have "<name>/<table>/embedding_weights".
value input_layer(graph& g, const feature_layout& layout, const input_layer_options& o = {});

struct linear_model_options {
  std::string_view name = "linear_model";
  int units = 1;
  combiner sparse_combiner = combiner::sum;
  bool trainable = true;
  feature_source source = {};  // none: placeholders of the components' names, found or made
};
// Returns the sum of all columns, each times its weights, and a bias: [batch, units]. The variables are
// "<name>/<column>/weights" [num_buckets or width, units] and "<name>/bias_weights" [units], and start as zeros.
value linear_model(graph& g, const feature_layout& layout, const linear_model_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "feature_layers.ipp"
#endif
