// These estimators are networks of dense layers over feature columns. They correspond to tf.estimator's DNNClassifier,
// DNNRegressor and DNNEstimator (1.15).
//
//   gradus::dnn_classifier digits({.feature_columns = {gradus::numeric_column("image", {.shape = {784}})},
//                                  .hidden_units = {128, 64}, .n_classes = 10, .model_dir = "runs/digits"});
//
// Each hidden layer is a dense layer, its activation, dropout and batch normalization, in this order. Kernels start
// glorot-uniform, biases with zeros. The constructors raise invalid_argument for settings that make no sense, and name
// the setting.
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct dnn_classifier_options {
  std::vector<dense_column> feature_columns = {};
  std::vector<int> hidden_units = {};
  optimizer_choice optimizer = "Adagrad";  // by name: rate 0.05
  activation activation_fn = relu;
  double dropout = 0;       // the fraction of a hidden layer's values that is dropped in training
  bool batch_norm = false;  // after each hidden layer, with momentum 0.999
  int n_classes = 2;
  std::string weight_column = {};                  // a feature by which the losses of examples are multiplied
  std::vector<std::string> label_vocabulary = {};  // labels are these strings
  losses::reduction loss_reduction = losses::reduction::sum;
  std::int64_t ids_per_example = 1;  // room for ids, as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// A network that classifies, with a sigmoid for two classes, a softmax for more.
class dnn_classifier : public canned_estimator {
public:
  explicit dnn_classifier(dnn_classifier_options o);
};

struct dnn_regressor_options {
  std::vector<dense_column> feature_columns = {};
  std::vector<int> hidden_units = {};
  optimizer_choice optimizer = "Adagrad";  // by name: rate 0.05
  activation activation_fn = relu;
  double dropout = 0;       // the fraction of a hidden layer's values that is dropped in training
  bool batch_norm = false;  // after each hidden layer, with momentum 0.999
  int label_dimension = 1;
  std::string weight_column = {};  // a feature by which the losses of examples are multiplied
  losses::reduction loss_reduction = losses::reduction::sum;
  std::int64_t ids_per_example = 1;  // room for ids, as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a network for regression, with squared errors.
class dnn_regressor : public canned_estimator {
public:
  explicit dnn_regressor(dnn_regressor_options o);
};

struct dnn_estimator_options {
  std::vector<dense_column> feature_columns = {};
  std::vector<int> hidden_units = {};
  optimizer_choice optimizer = "Adagrad";  // by name: rate 0.05
  activation activation_fn = relu;
  double dropout = 0;                 // the fraction of a hidden layer's values that is dropped in training
  bool batch_norm = false;            // after each hidden layer, with momentum 0.999
  std::optional<any_head> head = {};  // required
  std::int64_t ids_per_example = 1;   // room for ids, as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a network under a head of your own.
class dnn_estimator : public canned_estimator {
public:
  explicit dnn_estimator(dnn_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "dnn.ipp"
#endif
