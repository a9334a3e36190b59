// Baseline models read no feature; every better model has to beat them. tf.estimator's BaselineClassifier,
// BaselineRegressor and BaselineEstimator (1.15).
//
// They learn a bias for each logit, the variable "baseline/bias": a classifier learns to predict the frequencies of the
// classes, a regressor the mean of the labels. Errors: invalid_argument for settings that make no sense, each with its
// name.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct baseline_classifier_options {
  optimizer_choice optimizer = "Ftrl";  // by name with rate 0.3
  int n_classes = 2;
  std::string weight_column = {};                  // a feature by which the losses of examples are multiplied
  std::vector<std::string> label_vocabulary = {};  // labels are these texts
  losses::reduction loss_reduction = losses::reduction::sum;
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A bias, of two classes by a sigmoid, of more by a softmax.
class baseline_classifier : public canned_estimator {
public:
  explicit baseline_classifier(baseline_classifier_options o);
};

struct baseline_regressor_options {
  optimizer_choice optimizer = "Ftrl";  // by name with rate 0.3
  int label_dimension = 1;
  std::string weight_column = {};  // a feature by which the losses of examples are multiplied
  losses::reduction loss_reduction = losses::reduction::sum;
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A bias, of squared errors.
class baseline_regressor : public canned_estimator {
public:
  explicit baseline_regressor(baseline_regressor_options o);
};

struct baseline_estimator_options {
  optimizer_choice optimizer = "Ftrl";  // by name with rate 0.3
  std::optional<any_head> head = {};    // has to be given
  canned_input_options input = {};
  std::string model_dir = {};  // these three as estimator_options have them
  run_config config = {};
  estimator_warm_start warm_start_from = {};
  estimator_options estimator = {};  // what else an estimator takes
};
// A bias, under a head of your own.
class baseline_estimator : public canned_estimator {
public:
  explicit baseline_estimator(baseline_estimator_options o);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "baseline.ipp"
#endif
