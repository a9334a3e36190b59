// The bodies of multi_class_head.hpp.
#pragma once
#include "../base/body.hpp"
#include "../ops/arrange.hpp"
#include "../ops/reduce.hpp"
#include "multi_class_head.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY multi_class_head::multi_class_head(multi_class_head_options o) : o_(std::move(o)) {
  if (o_.n_classes <= 2)
    raise(status::invalid_argument,
          text("multi_class_head: n_classes must be > 2: ", o_.n_classes, "; two classes have the binary_class_head"));
  detail::check_vocabulary(o_.label_vocabulary, o_.n_classes, "multi_class_head");
  detail::check_reduction(o_.loss_reduction, "multi_class_head");
}

GRADUS_BODY estimator_spec multi_class_head::create_estimator_spec(const head_arguments& a) const {
  static constexpr std::string_view caller = "multi_class_head";
  const int n = o_.n_classes;
  const value logits = detail::checked_logits(a, n, caller);
  graph& g = *logits.g;
  value probabilities, class_ids, all_ids;
  {
    const auto scope = g.name_scope("predictions");
    class_ids = expand_dims(cast(argmax(logits), int64), -1);
    probabilities = softmax(logits);
    all_ids = detail::all_class_ids(logits, n);
  }
  const named_tensors predictions{
      {"logits", logits}, {"probabilities", probabilities}, {"class_ids", class_ids}, {"all_class_ids", all_ids}};
  export_outputs_map exports;
  if (a.mode == gradus::mode::predict) {
    const export_output classes = classification_output(probabilities, all_ids);
    exports = {{std::string(default_signature), classes},
               {"classification", classes},
               {"predict", predict_output(predictions)}};
  }
  const auto loss = [&]() -> detail::head_loss {
    value y = detail::checked_labels(a, 1, caller);
    if (y.type() != int32 && y.type() != int64 && y.type() != uint8)
      raise(status::invalid_argument,
            text(caller, ": Labels dtype should be integer. Instead got ", name_of(y.type()), "."));
    if (y.type() == uint8) y = cast(y, int32);
    const value unreduced = o_.loss_fn
                                ? detail::unreduced_by(o_.loss_fn, y, logits, 1, caller)
                                : expand_dims(sparse_softmax_cross_entropy_with_logits(logits, squeeze(y, {-1})), -1);
    return detail::reduced(a, y, unreduced, detail::weights_of(a, o_.weight_column, false, caller), o_.loss_reduction);
  };
  const auto metrics_of = [&](const detail::head_loss& l) {
    named_metrics all;
    all[detail::key_of("average_loss", o_.name)] =
        metrics::mean(l.unreduced, {.weights = l.weights, .name = "average_loss"});
    all[detail::key_of("accuracy", o_.name)] =
        metrics::accuracy(l.labels, class_ids, {.weights = l.weights, .name = "accuracy"});
    return all;
  };
  return detail::head_spec(a, o_.name, predictions, std::move(exports), loss, metrics_of);
}

}  // namespace gradus
