// These estimators add up the logits of a linear model and a network: wide and deep (Cheng et al. 2016,
// arXiv:1606.07792). They correspond to tf.estimator's DNNLinearCombinedClassifier, DNNLinearCombinedRegressor and
// DNNLinearCombinedEstimator (1.15).
//
//   gradus::dnn_linear_combined_classifier people({
//       .linear_feature_columns = {town, gradus::crossed_column({"town", "job"}, 1000)},
//       .dnn_feature_columns = {age, gradus::embedding_column(town, 8)},
//       .dnn_hidden_units = {64, 32}, .model_dir = "runs/people"});
//
// Each part has an optimizer, which updates the variables of its own scope, "linear/" or "dnn/"; a step adds 1 to the
// global step. One of the parts may have no columns. The constructors raise invalid_argument for settings that make no
// sense, and name the setting.
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct dnn_linear_combined_classifier_options {
  std::vector<linear_column> linear_feature_columns = {};
  optimizer_choice linear_optimizer = "Ftrl";  // by name: rate min(0.005, 1 / sqrt(columns))
  combiner linear_sparse_combiner = combiner::sum;
  std::vector<dense_column> dnn_feature_columns = {};
  optimizer_choice dnn_optimizer = "Adagrad";  // by name: rate 0.001
  std::vector<int> dnn_hidden_units = {};
  activation dnn_activation_fn = relu;
  double dnn_dropout = 0;
  bool batch_norm = false;
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
// Both parts added up, to classify with a sigmoid for two classes, a softmax for more.
class dnn_linear_combined_classifier : public canned_estimator {
public:
  explicit dnn_linear_combined_classifier(dnn_linear_combined_classifier_options o);
};

struct dnn_linear_combined_regressor_options {
  std::vector<linear_column> linear_feature_columns = {};
  optimizer_choice linear_optimizer = "Ftrl";  // by name: rate min(0.005, 1 / sqrt(columns))
  combiner linear_sparse_combiner = combiner::sum;
  std::vector<dense_column> dnn_feature_columns = {};
  optimizer_choice dnn_optimizer = "Adagrad";  // by name: rate 0.001
  std::vector<int> dnn_hidden_units = {};
  activation dnn_activation_fn = relu;
  double dnn_dropout = 0;
  bool batch_norm = false;
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
// Both parts added up, for regression with squared errors.
class dnn_linear_combined_regressor : public canned_estimator {
public:
  explicit dnn_linear_combined_regressor(dnn_linear_combined_regressor_options o);
};

struct dnn_linear_combined_estimator_options {
  std::vector<linear_column> linear_feature_columns = {};
  optimizer_choice linear_optimizer = "Ftrl";  // by name: rate min(0.005, 1 / sqrt(columns))
  combiner linear_sparse_combiner = combiner::sum;
  std::vector<dense_column> dnn_feature_columns = {};
  optimizer_choice dnn_optimizer = "Adagrad";  // by name: rate 0.001
  std::vector<int> dnn_hidden_units = {};
  activation dnn_activation_fn = relu;
  double dnn_dropout = 0;
  bool batch_norm = false;
  std::optional<any_head> head = {};  // required
  std::int64_t ids_per_example = 1;   // room for ids, as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// Both parts added up, under a head of your own.
class dnn_linear_combined_estimator : public canned_estimator {
public:
  explicit dnn_linear_combined_estimator(dnn_linear_combined_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "dnn_linear_combined.ipp"
#endif
