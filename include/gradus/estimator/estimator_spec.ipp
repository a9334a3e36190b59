// The bodies of estimator_spec.hpp.
#pragma once
#include "../base/body.hpp"
#include "estimator_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void validate(const estimator_spec& spec, gradus::mode wanted, const graph& g) {
  const auto refuse = [](const auto&... pieces) {
    raise(status::invalid_argument, text("estimator_spec: ", pieces...));
  };
  const auto here = [&](std::string_view what, value v) {
    if (v && v.g != &g) refuse(what, " must be a tensor of the graph that the model_fn was called for");
  };
  if (spec.mode != wanted)
    refuse("the mode of a spec cannot be changed: the model_fn was called for ", name_of(wanted),
           " and gave a spec for ", name_of(spec.mode));
  const bool trains = wanted == gradus::mode::train;
  if (wanted == gradus::mode::predict) {
    if (spec.predictions.empty()) refuse("Missing predictions: mode predict needs them");
  } else {
    if (!spec.loss) refuse("Missing loss: mode ", name_of(wanted), " needs it");
    if (trains && !spec.train_op) refuse("Missing train_op: mode train needs what an optimizer's minimize gives");
  }
  here("the loss", spec.loss), here("the train_op", spec.train_op);
  if (spec.loss) {
    const shape dims = spec.loss.dims();
    if (is_batched(dims) || gradus::count(dims) != 1)
      refuse("Loss must be scalar, given: a tensor of ", to_text(dims), "; take its mean or its sum");
    if (!is_float(spec.loss.type())) refuse("the loss must be a float, got ", name_of(spec.loss.type()));
  }
  for (const auto& [name, v] : spec.predictions) here(text("the prediction \"", name, '"'), v);
  for (const auto& [name, m] : spec.eval_metric_ops) {
    if (!m.result || !m.update) refuse("the metric \"", name, "\" must have a result and an update");
    here(text("the metric \"", name, '"'), m.result);
    if (name == "loss" || name == "global_step")
      refuse("a metric cannot be called \"", name, "\": an evaluation adds one of this name itself");
  }
  for (const auto& [name, o] : spec.export_outputs)
    for (const auto& [key, v] : o.outputs) here(text("\"", key, "\" of the export output \"", name, '"'), v);
}

}  // namespace gradus
