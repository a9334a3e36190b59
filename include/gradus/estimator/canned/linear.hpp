// These estimators are linear models of feature columns. tf.estimator's LinearClassifier, LinearRegressor and
// LinearEstimator (1.15).
//
//   gradus::linear_classifier people({.feature_columns = {town, gradus::crossed_column({"town", "job"}, 1000)},
//                                     .model_dir = "runs/people"});
//
// Weights start with zeros. Errors: invalid_argument for settings that make no sense, each with its name.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct linear_classifier_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name with rate 0.2; none: Ftrl of rate 1 / sqrt(columns),
                                                       // 0.2 at most
  combiner sparse_combiner = combiner::sum;
  int n_classes = 2;
  std::string weight_column = {};                  // a feature by which the losses of examples are multiplied
  std::vector<std::string> label_vocabulary = {};  // labels are these texts
  losses::reduction loss_reduction = losses::reduction::sum;
  std::int64_t ids_per_example = 1;  // room for ids, as feature_layout has it
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A linear model, of two classes by a sigmoid, of more by a softmax.
class linear_classifier : public canned_estimator {
public:
  explicit linear_classifier(linear_classifier_options o);
};

struct linear_regressor_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name with rate 0.2; none: Ftrl of rate 1 / sqrt(columns),
                                                       // 0.2 at most
  combiner sparse_combiner = combiner::sum;
  int label_dimension = 1;
  std::string weight_column = {};  // a feature by which the losses of examples are multiplied
  losses::reduction loss_reduction = losses::reduction::sum;
  std::int64_t ids_per_example = 1;  // room for ids, as feature_layout has it
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A linear model, of squared errors.
class linear_regressor : public canned_estimator {
public:
  explicit linear_regressor(linear_regressor_options o);
};

struct linear_estimator_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name with rate 0.2; none: Ftrl of rate 1 / sqrt(columns),
                                                       // 0.2 at most
  combiner sparse_combiner = combiner::sum;
  std::optional<any_head> head = {};  // has to be given
  std::int64_t ids_per_example = 1;   // room for ids, as feature_layout has it
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A linear model, under a head of your own.
class linear_estimator : public canned_estimator {
public:
  explicit linear_estimator(linear_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "linear.ipp"
#endif
