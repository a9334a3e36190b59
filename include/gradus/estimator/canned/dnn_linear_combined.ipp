// The bodies of dnn_linear_combined.hpp.
#pragma once
#include "../../base/body.hpp"
#include "dnn_linear_combined.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

canned_model_settings dnn_linear_combined_settings(const auto& o) {
  if (o.linear_feature_columns.empty() && o.dnn_feature_columns.empty())
    raise(status::invalid_argument, "Either linear_feature_columns or dnn_feature_columns must be defined.");
  if (!o.dnn_feature_columns.empty() && o.dnn_hidden_units.empty())
    raise(status::invalid_argument, "dnn_hidden_units must be defined when dnn_feature_columns is specified.");
  canned_model_settings s{.ids_per_example = o.ids_per_example, .ids_of = o.ids_of, .input = o.input};
  if (!o.dnn_feature_columns.empty())
    s.dnn = dnn_part{.feature_columns = o.dnn_feature_columns,
                     .hidden_units = o.dnn_hidden_units,
                     .optimizer = o.dnn_optimizer,
                     .rate = joined_dnn_rate,
                     .activation_fn = o.dnn_activation_fn,
                     .dropout = o.dnn_dropout,
                     .batch_norm = o.batch_norm};
  if (!o.linear_feature_columns.empty())
    s.linear = linear_part{.feature_columns = o.linear_feature_columns,
                           .optimizer = o.linear_optimizer,
                           .rate = linear_rate_of(joined_linear_rate, o.linear_feature_columns.size()),
                           .sparse_combiner = o.linear_sparse_combiner};
  return s;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY dnn_linear_combined_classifier::dnn_linear_combined_classifier(dnn_linear_combined_classifier_options o)
    : canned_estimator(
          canned_model(detail::classifier_head(o.n_classes, o.weight_column, o.label_vocabulary, o.loss_reduction),
                       detail::dnn_linear_combined_settings(o)),
          detail::options_of(o)) {}

GRADUS_BODY dnn_linear_combined_regressor::dnn_linear_combined_regressor(dnn_linear_combined_regressor_options o)
    : canned_estimator(canned_model(detail::regressor_head(o.label_dimension, o.weight_column, o.loss_reduction),
                                    detail::dnn_linear_combined_settings(o)),
                       detail::options_of(o)) {}

GRADUS_BODY dnn_linear_combined_estimator::dnn_linear_combined_estimator(dnn_linear_combined_estimator_options o)
    : canned_estimator(canned_model(detail::given_head(o.head), detail::dnn_linear_combined_settings(o)),
                       detail::options_of(o)) {}

}  // namespace gradus
