// A model function returns a model_spec, which becomes outputs of the graph, as tf.estimator's EstimatorSpec.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <string_view>

#include "metric.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class T>
struct named_list {
  struct item {
    std::string_view name;
    T what;
  };
  static constexpr int most = 16;
  item items[most] = {};
  int count = 0;  // more than `most`: the others are not here, and build_into refuses the list

  constexpr named_list() = default;
  constexpr named_list(std::initializer_list<item> list) {
    for (const item& i : list) {
      if (count < most) items[count] = i;
      ++count;
    }
  }
};
}  // namespace detail

// .loss is minimized in mode train. .metrics are averaged over an evaluation (and shown for each batch in training).
// .predictions are returned by predict. There are at most 16 metrics and 16 predictions. .train_op is the work of a
// training step, if the model processes its gradients itself (pass/optimize.hpp); without it, the loss is minimized
// over all trainable variables.
struct model_spec {
  value loss = {};
  detail::named_list<metric> metrics = {};
  detail::named_list<value> predictions = {};
  value train_op = {};
};

// Runs a model function and records its result as outputs of the graph.
template <class Build>
constexpr void build_into(graph& g, Build build) {
  const model_spec spec = build(g);
  const auto too_many = [&](int given, const char* what) {
    constexpr int most = detail::named_list<value>::most;
    if (given > most)
      g.refuse("the model returns ", given, " ", what, ", and there is room for ", most, "; leave some out");
    return given > most;
  };
  const auto clash = [&](const auto& list, const char* what, std::string_view taken) {
    for (int i = 0; i < list.count; ++i) {
      const std::string_view name = list.items[i].name;
      bool twice = name == taken;
      for (int k = 0; k < i; ++k) twice = twice || name == list.items[k].name;
      if (!twice) continue;
      g.refuse("the model has two results of the name \"", name, "\": give one of them, in .", what, ", another name");
      return true;
    }
    return false;
  };
  if (too_many(spec.metrics.count, "metrics") || too_many(spec.predictions.count, "predictions")) return;
  if (clash(spec.metrics, "metrics", "loss") || clash(spec.predictions, "predictions", {})) return;
  if (g.mode() != mode::predict) {
    if (!spec.loss) return g.refuse("the model has no loss: return model_spec{.loss = ...}");
    if (spec.loss.dims().rank != 0)
      return g.refuse("the loss must be a scalar, got ", spec.loss.dims(), "; reduce_mean it");
    if (!is_float(spec.loss.type())) return g.refuse("the loss must be float32 or float64, got ", spec.loss.type());
    g.add_output(output::loss, "loss", spec.loss);
    for (int i = 0; i < spec.metrics.count; ++i) {
      const metric& m = spec.metrics.items[i].what;
      g.add_output(output::metric, spec.metrics.items[i].name, g.mode() == mode::train ? m.batch_result : m.result);
      if (g.mode() == mode::evaluate && m.update) g.outputs.push({output::update, -1, m.update.id});
    }
  }
  if (g.mode() != mode::train)
    for (int i = 0; i < spec.predictions.count; ++i)
      g.add_output(output::prediction, spec.predictions.items[i].name, spec.predictions.items[i].what);
  if (g.mode() == mode::train) {
    if (spec.train_op) g.add_output(output::update, "train_op", spec.train_op);
    const node* made = g.nodes.first;
    for (int i = 0, end = spec.train_op ? 0 : g.nodes.count; i < end; ++i)
      if (made[i].op == &cards::apply)
        return g.refuse("the model applies gradients and does not say so: return model_spec{.train_op = ...}");
    for (int i = 0, n = g.members.count, at = g.intern(collection::update_ops); i < n; ++i)
      if (g.members[i].collection == at) g.outputs.push({output::update, -1, g.members[i].node});
  } else {  // summaries belong to training
    int kept = 0;
    for (int i = 0; i < g.outputs.count; ++i)
      if (!g.outputs[i].is_summary()) g.outputs[kept++] = g.outputs[i];
    g.outputs.count = kept;
  }
}
template <class Build>
constexpr graph build_model(Build build, mode what) {
  graph g(what);
  build_into(g, build);
  return g;
}

}  // namespace gradus
