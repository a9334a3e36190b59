// This is the head of a classifier of two classes: it has one logit and sigmoid cross entropy. It corresponds to
// tf.estimator's BinaryClassHead and the head of its canned classifiers (1.15).
//
// Labels are numbers in [0, 1], of any dtype. Predictions, for logits [batch, 1]: "logits", "logistic" [batch, 1],
// "probabilities" [batch, 2], "class_ids" int64 [batch, 1], "all_class_ids" int32 [batch, 2]. A logit of 0 is class 0.
// Metrics: "average_loss", "accuracy", "precision", "recall", "prediction/mean", "label/mean", "accuracy_baseline",
// "auc", "auc_precision_recall", and for a threshold t "accuracy/positive_threshold_t" and the like.
#pragma once
#include "head.hpp"

namespace gradus::inline GRADUS_BUILD {

struct binary_class_head_options {
  std::string weight_column = {};                  // a feature [batch] or [batch, 1] by which losses are multiplied
  std::vector<double> thresholds = {};             // in (0, 1); there are metrics for each
  std::vector<std::string> label_vocabulary = {};  // the names of classes 0 and 1 in the data
  losses::reduction loss_reduction = losses::reduction::sum;
  head_loss_fn loss_fn = {};
  std::string name = {};  // appended to the names of metrics
};

class binary_class_head {
public:
  // Raises invalid_argument for thresholds outside (0, 1), for a vocabulary without exactly two strings, and for
  // losses::reduction::none.
  explicit binary_class_head(binary_class_head_options o = {});
  int logits_dimension() const { return 1; }
  int label_classes() const { return 2; }
  const std::string& name() const { return o_.name; }
  const std::string& weight_column() const { return o_.weight_column; }
  const std::vector<std::string>& label_vocabulary() const { return o_.label_vocabulary; }
  // Returns the names of the classes: the vocabulary, or "0" and "1".
  std::vector<std::string> class_names() const { return detail::class_names(o_.label_vocabulary, 2); }

  // Raises invalid_argument for logits, labels and weights that do not fit, and where mode train has no optimizer;
  // not_found without the weight column. A label outside of [0, 1] raises when the graph runs.
  estimator_spec create_estimator_spec(const head_arguments& a) const;

private:
  binary_class_head_options o_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "binary_class_head.ipp"
#endif
