// This is the head of a regression: its loss is the squared error. It corresponds to tf.estimator's RegressionHead and
// the head of its canned regressors (1.15).
//
// Labels are numbers [batch, label_dimension]; with a label_dimension of 1 they may also be [batch]. Predictions:
// "predictions" [batch, label_dimension], and with an inverse_link_fn also "logits". Metrics: "average_loss",
// "prediction/mean", "label/mean".
#pragma once
#include "head.hpp"

namespace gradus::inline GRADUS_BUILD {

struct regression_head_options {
  int label_dimension = 1;
  std::string weight_column = {};  // a feature [batch], [batch, 1] or [batch, label_dimension]
  losses::reduction loss_reduction = losses::reduction::sum;
  head_loss_fn loss_fn = {};                                // of [..., label_dimension]
  std::function<value(value logits)> inverse_link_fn = {};  // from logits to predictions; none: they are the same
  std::string name = {};                                    // appended to the names of metrics
};

class regression_head {
public:
  // Raises invalid_argument for a label_dimension below 1, and for losses::reduction::none.
  explicit regression_head(regression_head_options o = {});
  int logits_dimension() const { return o_.label_dimension; }
  int label_dimension() const { return o_.label_dimension; }
  const std::string& name() const { return o_.name; }
  const std::string& weight_column() const { return o_.weight_column; }

  // Raises invalid_argument for logits, labels and weights that do not fit, and where mode train has no optimizer;
  // not_found without the weight column.
  estimator_spec create_estimator_spec(const head_arguments& a) const;

private:
  regression_head_options o_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "regression_head.ipp"
#endif
