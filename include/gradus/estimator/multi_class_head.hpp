// This is the head of a classifier of more than two classes: it has a logit for each, and softmax cross entropy. It
// corresponds to tf.estimator's MultiClassHead and the head of its canned classifiers (1.15).
//
// Labels are whole numbers in [0, n_classes), int32, int64 or uint8. Predictions, for logits [batch, n]: "logits",
// "probabilities" [batch, n], "class_ids" int64 [batch, 1], "all_class_ids" int32 [batch, n]. Metrics: "average_loss",
// "accuracy".
#pragma once
#include "head.hpp"

namespace gradus::inline GRADUS_BUILD {

struct multi_class_head_options {
  int n_classes = 0;                               // above 2
  std::string weight_column = {};                  // a feature [batch] or [batch, 1] by which losses are multiplied
  std::vector<std::string> label_vocabulary = {};  // the names of the classes in the data, in their order
  losses::reduction loss_reduction = losses::reduction::sum;
  head_loss_fn loss_fn = {};
  std::string name = {};  // appended to the names of metrics
};

class multi_class_head {
public:
  // Raises invalid_argument for two classes or fewer, for a vocabulary of another length, and for
  // losses::reduction::none.
  explicit multi_class_head(multi_class_head_options o);
  explicit multi_class_head(int n_classes) : multi_class_head(multi_class_head_options{.n_classes = n_classes}) {}
  int logits_dimension() const { return o_.n_classes; }
  int label_classes() const { return o_.n_classes; }
  const std::string& name() const { return o_.name; }
  const std::string& weight_column() const { return o_.weight_column; }
  const std::vector<std::string>& label_vocabulary() const { return o_.label_vocabulary; }
  // Returns the names of the classes: the vocabulary, or "0", "1", ...
  std::vector<std::string> class_names() const { return detail::class_names(o_.label_vocabulary, o_.n_classes); }

  // Raises invalid_argument for logits, labels and weights that do not fit, and where mode train has no optimizer;
  // not_found without the weight column. A label outside of [0, n_classes) raises when the graph runs.
  estimator_spec create_estimator_spec(const head_arguments& a) const;

private:
  multi_class_head_options o_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "multi_class_head.ipp"
#endif
