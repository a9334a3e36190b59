// The bodies of binary_class_head.hpp.
#pragma once
#include "../base/body.hpp"
#include "../ops/arrange.hpp"
#include "binary_class_head.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY binary_class_head::binary_class_head(binary_class_head_options o) : o_(std::move(o)) {
  for (const double t : o_.thresholds)
    if (!(t > 0 && t < 1)) raise(status::invalid_argument, text("binary_class_head: thresholds not in (0, 1): ", t));
  detail::check_vocabulary(o_.label_vocabulary, 2, "binary_class_head");
  detail::check_reduction(o_.loss_reduction, "binary_class_head");
}

GRADUS_BODY estimator_spec binary_class_head::create_estimator_spec(const head_arguments& a) const {
  static constexpr std::string_view caller = "binary_class_head";
  const value logits = detail::checked_logits(a, 1, caller);
  graph& g = *logits.g;
  value logistic, probabilities, class_ids, all_ids;
  {
    const auto scope = g.name_scope("predictions");
    logistic = sigmoid(logits);
    const value two = concat({broadcast_to(g.constant(0, logits.type()), logits.dims()), logits}, -1);
    probabilities = softmax(two);
    class_ids = cast(greater(logits, 0.0), int64);
    all_ids = detail::all_class_ids(logits, 2);
  }
  const named_tensors predictions{{"logits", logits},
                                  {"logistic", logistic},
                                  {"probabilities", probabilities},
                                  {"class_ids", class_ids},
                                  {"all_class_ids", all_ids}};
  export_outputs_map exports;
  if (a.mode == gradus::mode::predict) {
    const export_output classes = classification_output(probabilities, all_ids);
    exports = {{std::string(default_signature), classes},
               {"classification", classes},
               {"regression", regression_output(logistic)},
               {"predict", predict_output(predictions)}};
  }
  const auto loss = [&]() -> detail::head_loss {
    value y = detail::checked_labels(a, 1, caller);
    y = detail::label_range(cast(y, logits.type()), 2);
    const value unreduced = o_.loss_fn ? detail::unreduced_by(o_.loss_fn, y, logits, 1, caller)
                                       : sigmoid_cross_entropy_with_logits(logits, y);
    return detail::reduced(a, y, unreduced, detail::weights_of(a, o_.weight_column, false, caller), o_.loss_reduction);
  };
  const auto metrics_of = [&](const detail::head_loss& l) {
    const auto of = [&](std::string_view name) { return metrics::options{.weights = l.weights, .name = name}; };
    const auto key = [&](std::string_view name) { return detail::key_of(name, o_.name); };
    const value ids = cast(class_ids, logits.type());
    const metric label_mean = metrics::mean(l.labels, of("label/mean"));
    const auto baseline = [](value v) { return maximum(v, 1.0 - v); };
    named_metrics all;
    all[key("average_loss")] = metrics::mean(l.unreduced, of("average_loss"));
    all[key("accuracy")] = metrics::accuracy(l.labels, ids, of("accuracy"));
    all[key("precision")] = metrics::precision(l.labels, ids, of("precision"));
    all[key("recall")] = metrics::recall(l.labels, ids, of("recall"));
    all[key("prediction/mean")] = metrics::mean(logistic, of("prediction/mean"));
    all[key("label/mean")] = label_mean;
    all[key("accuracy_baseline")] = {baseline(label_mean.result), baseline(label_mean.update),
                                     baseline(label_mean.batch_result)};
    all[key("auc")] = metrics::auc(l.labels, logistic, {.weights = l.weights, .name = "auc"});
    all[key("auc_precision_recall")] = metrics::auc(
        l.labels, logistic, {.weights = l.weights, .curve = metrics::curve::pr, .name = "auc_precision_recall"});
    for (const double t : o_.thresholds) {
      const auto at = [&](std::string_view what) { return text(what, "/positive_threshold_", t); };
      const auto first = [](const metric& m) -> metric {
        return {squeeze(m.result), squeeze(m.update), squeeze(m.batch_result)};
      };
      const value above = cast(greater_equal(logistic, g.constant(t, logits.type())), logits.type());
      all[key(at("accuracy"))] = metrics::accuracy(l.labels, above, of(at("accuracy")));
      all[key(at("precision"))] = first(metrics::precision_at_thresholds(l.labels, logistic, {t}, of(at("precision"))));
      all[key(at("recall"))] = first(metrics::recall_at_thresholds(l.labels, logistic, {t}, of(at("recall"))));
    }
    return all;
  };
  return detail::head_spec(a, o_.name, predictions, std::move(exports), loss, metrics_of);
}

}  // namespace gradus
