// The bodies of canned_estimator.hpp.
#pragma once
#include "../../base/body.hpp"
#include "../binary_class_head.hpp"
#include "../multi_class_head.hpp"
#include "../regression_head.hpp"
#include "canned_estimator.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY estimator_options with_columns(estimator_options o, const canned_model& model) {
  o.stage = [model, before = std::move(o.stage)](estimator_input in, gradus::mode m) {
    return model.read(before ? before(std::move(in), m) : std::move(in), m);
  };
  return o;
}

GRADUS_BODY auto model_fn_of(const canned_model& model) {
  return [model](const named_tensors& features, value labels, gradus::mode m) -> estimator_spec {
    return model(features, labels, m);
  };
}

GRADUS_BODY any_head classifier_head(int n_classes, const std::string& weight_column,
                                     const std::vector<std::string>& vocabulary, losses::reduction r) {
  if (n_classes < 2)
    raise(status::invalid_argument, text("a classifier: n_classes must be 2 or more, found ", n_classes));
  if (n_classes == 2)
    return binary_class_head({.weight_column = weight_column, .label_vocabulary = vocabulary, .loss_reduction = r});
  return multi_class_head(
      {.n_classes = n_classes, .weight_column = weight_column, .label_vocabulary = vocabulary, .loss_reduction = r});
}

GRADUS_BODY any_head regressor_head(int label_dimension, const std::string& weight_column, losses::reduction r) {
  return regression_head({.label_dimension = label_dimension, .weight_column = weight_column, .loss_reduction = r});
}

GRADUS_BODY any_head given_head(const std::optional<any_head>& head) {
  if (!head)
    raise(status::invalid_argument,
          "a canned estimator: expected a head, found none; .head = multi_class_head(10), say");
  return *head;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY canned_estimator::canned_estimator(canned_model model, estimator_options o)
    : estimator(detail::model_fn_of(model), detail::with_columns(std::move(o), model)),
      model_(std::move(model)),
      classes_(detail::class_names(model_.head().label_vocabulary(), model_.head().label_classes())) {}

GRADUS_BODY std::string canned_estimator::class_of(const prediction& p) const {
  const const_tensor_view ids = p["class_ids"];
  if (ids.type != int64 || count(ids.dims) != 1)
    raise(status::invalid_argument, text("class_of: expected the prediction of one example, found class_ids ",
                                         name_of(ids.type), ' ', to_text(ids.dims), " of a batch"));
  const auto id = static_cast<std::size_t>(ids.as<std::int64_t>()[0]);
  return id < classes_.size() ? classes_[id] : text(id);
}

}  // namespace gradus
