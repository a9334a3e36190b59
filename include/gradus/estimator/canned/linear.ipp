// The bodies of linear.hpp.
#pragma once
#include "../../base/body.hpp"
#include "linear.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

canned_model_settings linear_settings(const auto& o) {
  const double rate = o.optimizer ? linear_rate : linear_rate_of(linear_rate, o.feature_columns.size());
  return {.linear = linear_part{.feature_columns = o.feature_columns,
                                .optimizer = o.optimizer.value_or("Ftrl"),
                                .rate = rate,
                                .sparse_combiner = o.sparse_combiner},
          .ids_per_example = o.ids_per_example,
          .ids_of = o.ids_of,
          .input = o.input};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY linear_classifier::linear_classifier(linear_classifier_options o)
    : canned_estimator(
          canned_model(detail::classifier_head(o.n_classes, o.weight_column, o.label_vocabulary, o.loss_reduction),
                       detail::linear_settings(o)),
          detail::options_of(o)) {}

GRADUS_BODY linear_regressor::linear_regressor(linear_regressor_options o)
    : canned_estimator(canned_model(detail::regressor_head(o.label_dimension, o.weight_column, o.loss_reduction),
                                    detail::linear_settings(o)),
                       detail::options_of(o)) {}

GRADUS_BODY linear_estimator::linear_estimator(linear_estimator_options o)
    : canned_estimator(canned_model(detail::given_head(o.head), detail::linear_settings(o)), detail::options_of(o)) {}

}  // namespace gradus
