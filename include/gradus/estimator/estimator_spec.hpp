// A model_fn returns an estimator_spec to an estimator. It corresponds to tf.estimator.EstimatorSpec (1.15).
//
//   gradus::optimizer opt{gradus::adam{.rate = 0.01}};
//   return gradus::estimator_spec{.mode = m,
//                                 .predictions = {{"classes", classes}},
//                                 .loss = loss,
//                                 .train_op = opt.minimize(loss, {.global_step = step}),
//                                 .eval_metric_ops = {{"accuracy", gradus::metrics::accuracy(labels, classes)}},
//                                 .optimizers = opt};
//
// Mode train needs a loss and a train_op, evaluate a loss, predict predictions. The rest may be given in every mode and
// is used where it is needed, so a model_fn may build everything always.
//
// TensorFlow differs: here `optimizers` lists those whose train ops are in the graph, since a session needs them; and a
// loss whose number of elements depends on the batch raises at once, where TensorFlow fails when it runs.
#pragma once
#include "../base/build.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../ops/metric.hpp"
#include "../session/scaffold.hpp"
#include "../train/any_hook.hpp"
#include "any_optimizers.hpp"
#include "export_output.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

// Metrics of an evaluation, by name.
using named_metrics = std::map<std::string, metric>;

struct estimator_spec {
  gradus::mode mode = gradus::mode::train;
  named_tensors predictions = {};
  value loss = {};  // of one element
  value train_op = {};
  named_metrics eval_metric_ops = {};
  export_outputs_map export_outputs = {};  // empty: the predictions, as "serving_default"
  std::vector<any_hook> training_chief_hooks = {};
  std::vector<any_hook> training_hooks = {};
  std::shared_ptr<gradus::scaffold> scaffold = nullptr;  // null: everything by default
  std::vector<any_hook> evaluation_hooks = {};
  std::vector<any_hook> prediction_hooks = {};
  any_optimizers optimizers = {};
};

// Checks the spec of a model_fn that was called for `wanted` in this graph. Raises invalid_argument if the spec is for
// another mode, if it lacks what the mode needs, for a loss that has more or fewer than one element, for tensors of
// another graph, for a metric without result or update, and for a metric that is called "loss" or "global_step".
void validate(const estimator_spec& spec, gradus::mode wanted, const graph& g);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "estimator_spec.ipp"
#endif
