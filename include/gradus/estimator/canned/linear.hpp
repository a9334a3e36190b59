// These estimators are linear models of feature columns. They correspond to tf.estimator's LinearClassifier,
// LinearRegressor and LinearEstimator (1.15).
//
//   gradus::linear_classifier people({.feature_columns = {town, gradus::crossed_column({"town", "job"}, 1000)},
//                                     .model_dir = "runs/people"});
//
// Weights start with zeros. The constructors raise invalid_argument for settings that make no sense, and name the
// setting.
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct linear_classifier_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name: rate 0.2; none: Ftrl, min(0.2, 1 / sqrt(columns))
  combiner sparse_combiner = combiner::sum;
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
// A linear model that classifies, with a sigmoid for two classes, a softmax for more.
class linear_classifier : public canned_estimator {
public:
  explicit linear_classifier(linear_classifier_options o);
};

struct linear_regressor_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name: rate 0.2; none: Ftrl, min(0.2, 1 / sqrt(columns))
  combiner sparse_combiner = combiner::sum;
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
// This is a linear model for regression, with squared errors.
class linear_regressor : public canned_estimator {
public:
  explicit linear_regressor(linear_regressor_options o);
};

struct linear_estimator_options {
  std::vector<linear_column> feature_columns = {};
  std::optional<optimizer_choice> optimizer = "Ftrl";  // by name: rate 0.2; none: Ftrl, min(0.2, 1 / sqrt(columns))
  combiner sparse_combiner = combiner::sum;
  std::optional<any_head> head = {};  // required
  std::int64_t ids_per_example = 1;   // room for ids, as in feature_layout
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a linear model under a head of your own.
class linear_estimator : public canned_estimator {
public:
  explicit linear_estimator(linear_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "linear.ipp"
#endif
