// Baseline models read no feature; a useful model has to be better than they are. They correspond to tf.estimator's
// BaselineClassifier, BaselineRegressor and BaselineEstimator (1.15).
//
// They learn a bias for each logit, the variable "baseline/bias": a classifier learns to predict the frequencies of the
// classes, a regressor the mean of the labels. The constructors raise invalid_argument for settings that make no sense,
// and name the setting.
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct baseline_classifier_options {
  optimizer_choice optimizer = "Ftrl";  // by name: rate 0.3
  int n_classes = 2;
  std::string weight_column = {};                  // a feature by which the losses of examples are multiplied
  std::vector<std::string> label_vocabulary = {};  // labels are these strings
  losses::reduction loss_reduction = losses::reduction::sum;
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a classifier from a bias alone, with a sigmoid for two classes, a softmax for more.
class baseline_classifier : public canned_estimator {
public:
  explicit baseline_classifier(baseline_classifier_options o);
};

struct baseline_regressor_options {
  optimizer_choice optimizer = "Ftrl";  // by name: rate 0.3
  int label_dimension = 1;
  std::string weight_column = {};  // a feature by which the losses of examples are multiplied
  losses::reduction loss_reduction = losses::reduction::sum;
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a regression from a bias alone, with squared errors.
class baseline_regressor : public canned_estimator {
public:
  explicit baseline_regressor(baseline_regressor_options o);
};

struct baseline_estimator_options {
  optimizer_choice optimizer = "Ftrl";  // by name: rate 0.3
  std::optional<any_head> head = {};    // required
  canned_input_options input = {};
  std::string model_dir = {};  // this and the next two: as in estimator_options
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // the other options of an estimator
};
// This is a bias under a head of your own.
class baseline_estimator : public canned_estimator {
public:
  explicit baseline_estimator(baseline_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "baseline.ipp"
#endif
