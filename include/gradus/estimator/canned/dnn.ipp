// The bodies of dnn.hpp.
#pragma once
#include "../../base/body.hpp"
#include "dnn.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

canned_model_settings dnn_settings(const auto& o) {
  return {.dnn = dnn_part{.feature_columns = o.feature_columns,
                          .hidden_units = o.hidden_units,
                          .optimizer = o.optimizer,
                          .rate = dnn_rate,
                          .activation_fn = o.activation_fn,
                          .dropout = o.dropout,
                          .batch_norm = o.batch_norm},
          .ids_per_example = o.ids_per_example,
          .ids_of = o.ids_of,
          .input = o.input};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY dnn_classifier::dnn_classifier(dnn_classifier_options o)
    : canned_estimator(
          canned_model(detail::classifier_head(o.n_classes, o.weight_column, o.label_vocabulary, o.loss_reduction),
                       detail::dnn_settings(o)),
          detail::options_of(o)) {}

GRADUS_BODY dnn_regressor::dnn_regressor(dnn_regressor_options o)
    : canned_estimator(canned_model(detail::regressor_head(o.label_dimension, o.weight_column, o.loss_reduction),
                                    detail::dnn_settings(o)),
                       detail::options_of(o)) {}

GRADUS_BODY dnn_estimator::dnn_estimator(dnn_estimator_options o)
    : canned_estimator(canned_model(detail::given_head(o.head), detail::dnn_settings(o)), detail::options_of(o)) {}

}  // namespace gradus
