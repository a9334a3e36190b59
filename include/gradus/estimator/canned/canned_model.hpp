// A canned_model has the layers of TensorFlow's linear and dnn models, alone or added up, under a head. The estimators
// that users name (linear.hpp, dnn.hpp, dnn_linear_combined.hpp, baseline.hpp) are canned_models with different
// settings.
//
// Variables have TensorFlow's names (1.15), so that a checkpoint of its canned models is also a checkpoint of these:
//
//   dnn/input_from_feature_columns/input_layer/<column>_embedding/embedding_weights
//   dnn/hiddenlayer_<k>/{kernel,bias}, dnn/hiddenlayer_<k>/batchnorm_<k>/{gamma,beta,moving_mean,moving_variance}
//   dnn/logits/{kernel,bias}
//   linear/linear_model/<column>/weights, linear/linear_model/bias_weights
//   baseline/bias
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <vector>

#include "../../columns/feature_layers.hpp"
#include "../../input/example_spec.hpp"
#include "../../ops/layer.hpp"
#include "canned_input.hpp"

namespace gradus::inline GRADUS_BUILD {

// The learning rates of optimizers that are given by name. They are TensorFlow's, which calls them "historical
// artifacts".
namespace detail {
inline constexpr double dnn_rate = 0.05, linear_rate = 0.2, baseline_rate = 0.3, joined_dnn_rate = 0.001,
                        joined_linear_rate = 0.005;
// Returns min(most, 1 / sqrt(columns)).
double linear_rate_of(double most, std::size_t columns);
}  // namespace detail

struct dnn_part {
  std::vector<dense_column> feature_columns;
  std::vector<int> hidden_units;
  optimizer_choice optimizer = "Adagrad";
  double rate = detail::dnn_rate;  // of an optimizer that is given by name
  gradus::activation activation_fn = relu;
  double dropout = 0;
  bool batch_norm = false;
};
struct linear_part {
  std::vector<linear_column> feature_columns;
  optimizer_choice optimizer = "Ftrl";
  double rate = detail::linear_rate;
  combiner sparse_combiner = combiner::sum;
};

// Returns logits [batch, units], computed from the layout's features in `features`. As in TensorFlow, each layer has
// summaries: the fraction of zeros and a histogram.
value dnn_logits(const named_tensors& features, const feature_layout& layout, int units, const dnn_part& part);
value linear_logits(const named_tensors& features, const feature_layout& layout, int units, const linear_part& part);
// Returns logits [batch, units] that are the same for every example: a bias for each unit.
value baseline_logits(const named_tensors& features, int units);

struct canned_model_settings {
  std::optional<dnn_part> dnn = {};
  std::optional<linear_part> linear = {};
  std::optional<optimizer_choice> baseline = {};  // its optimizer
  std::int64_t ids_per_example = 1;               // as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
};

// Has the model_fn of a canned estimator, and the stage that prepares the data of its input_fn.
class canned_model {
public:
  // Raises invalid_argument for columns that do not fit, and for hidden units or a dropout that make no sense.
  canned_model(any_head head, canned_model_settings s);

  // The model_fn. Each part's optimizer updates the variables of its own scope; a step adds 1 to the global step.
  estimator_spec operator()(const named_tensors& features, value labels, gradus::mode m) const;
  // Returns the input_fn's batches as the model reads them.
  estimator_input read(estimator_input in, gradus::mode m) const;
  const any_head& head() const { return head_; }
  // Returns the model's features: the components that the columns make, without weights of examples.
  components parts() const;
  // Returns the features that the columns read in an Example. Raises invalid_argument for a feature that two columns
  // read in two ways.
  example_spec examples() const;

private:
  any_head head_;
  canned_model_settings s_;
  std::optional<feature_layout_settings> columns_;
  std::optional<feature_layout> layout_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "canned_model.ipp"
#endif
