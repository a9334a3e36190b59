// The bodies of baseline.hpp.
#pragma once
#include "../../base/body.hpp"
#include "baseline.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

canned_model_settings baseline_settings(const auto& o) { return {.baseline = o.optimizer, .input = o.input}; }

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY baseline_classifier::baseline_classifier(baseline_classifier_options o)
    : canned_estimator(
          canned_model(detail::classifier_head(o.n_classes, o.weight_column, o.label_vocabulary, o.loss_reduction),
                       detail::baseline_settings(o)),
          detail::options_of(o)) {}

GRADUS_BODY baseline_regressor::baseline_regressor(baseline_regressor_options o)
    : canned_estimator(canned_model(detail::regressor_head(o.label_dimension, o.weight_column, o.loss_reduction),
                                    detail::baseline_settings(o)),
                       detail::options_of(o)) {}

GRADUS_BODY baseline_estimator::baseline_estimator(baseline_estimator_options o)
    : canned_estimator(canned_model(detail::given_head(o.head), detail::baseline_settings(o)), detail::options_of(o)) {}

}  // namespace gradus
