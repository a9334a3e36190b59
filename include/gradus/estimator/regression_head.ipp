// The bodies of regression_head.hpp.
#pragma once
#include "../base/body.hpp"
#include "regression_head.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY regression_head::regression_head(regression_head_options o) : o_(std::move(o)) {
  if (o_.label_dimension < 1)
    raise(status::invalid_argument,
          text("regression_head: Invalid label_dimension ", o_.label_dimension, "; expected 1 or more"));
  detail::check_reduction(o_.loss_reduction, "regression_head");
}

GRADUS_BODY estimator_spec regression_head::create_estimator_spec(const head_arguments& a) const {
  static constexpr std::string_view caller = "regression_head";
  const value logits = detail::checked_logits(a, o_.label_dimension, caller);
  value predicted = logits;
  named_tensors predictions;
  if (o_.inverse_link_fn) {
    predicted = o_.inverse_link_fn(logits);
    predictions = named_tensors{{"predictions", predicted}, {"logits", logits}};
  } else {
    predictions = named_tensors{{"predictions", predicted}};
  }
  export_outputs_map exports;
  if (a.mode == gradus::mode::predict) {
    const export_output numbers = regression_output(predicted);
    exports = {
        {std::string(default_signature), numbers}, {"regression", numbers}, {"predict", predict_output(predictions)}};
  }
  const auto loss = [&]() -> detail::head_loss {
    const value y = cast(detail::checked_labels(a, o_.label_dimension, caller), logits.type());
    const value unreduced = o_.loss_fn ? detail::unreduced_by(o_.loss_fn, y, logits, o_.label_dimension, caller)
                                       : squared_difference(y, logits);
    return detail::reduced(a, y, unreduced, detail::weights_of(a, o_.weight_column, true, caller), o_.loss_reduction);
  };
  const auto metrics_of = [&](const detail::head_loss& l) {
    const auto of = [&](std::string_view name) { return metrics::options{.weights = l.weights, .name = name}; };
    named_metrics all;
    all[detail::key_of("average_loss", o_.name)] = metrics::mean(l.unreduced, of("average_loss"));
    all[detail::key_of("prediction/mean", o_.name)] = metrics::mean(predicted, of("prediction/mean"));
    all[detail::key_of("label/mean", o_.name)] = metrics::mean(l.labels, of("label/mean"));
    return all;
  };
  return detail::head_spec(a, o_.name, predictions, std::move(exports), loss, metrics_of);
}

}  // namespace gradus
