// The bodies of export_signatures.hpp.
#pragma once

#include "../base/body.hpp"
#include "checkpoint_values.hpp"
#include "export_signatures.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string_view export_tag(gradus::mode m) {
  return m == gradus::mode::train      ? saved_model_tag::training
         : m == gradus::mode::evaluate ? saved_model_tag::evaluation
                                       : saved_model_tag::serving;
}

GRADUS_BODY void raise_no_modes() {
  raise(status::invalid_argument, "No valid modes for exporting found: give an input for a mode");
}

GRADUS_BODY std::map<std::string, export_signature> signatures_of(const estimator_spec& spec, const serving_input& in) {
  const auto put = [](std::map<std::string, value>& to, const named_tensors& from) {
    for (const auto& [key, v] : from) to[key] = v;
  };
  export_signature base;
  put(base.inputs, in.receiver_tensors.empty() ? in.features : in.receiver_tensors);
  std::map<std::string, export_signature> all;
  if (spec.mode != gradus::mode::predict) {
    put(base.inputs, in.labels);
    const bool trains = spec.mode == gradus::mode::train;
    base.method_name = trains ? "tensorflow/supervised/training" : "tensorflow/supervised/eval";
    base.outputs["loss"] = spec.loss;
    // As in TensorFlow, a key that already begins with the prefix is not changed.
    const auto below = [](std::string_view prefix, const std::string& key) {
      return key.starts_with(prefix) ? key : text(prefix, "/", key);
    };
    for (const auto& [key, v] : spec.predictions)
      base.outputs[spec.predictions.is_single() ? std::string("predictions") : below("predictions", key)] = v;
    for (const auto& [key, m] : spec.eval_metric_ops) {
      base.outputs[below("metrics", key) + "/value"] = m.result;
      base.outputs[below("metrics", key) + "/update_op"] = m.update;
    }
    all[trains ? "train" : "eval"] = base;
    return all;
  }
  auto outputs = spec.export_outputs;
  if (outputs.empty()) outputs.emplace(default_signature, predict_output(spec.predictions));
  if (outputs.size() == 1) outputs.emplace(default_signature, outputs.begin()->second);
  if (!outputs.contains(std::string(default_signature)))
    raise(status::invalid_argument,
          "Multiple export_outputs were provided, but none of them is specified as the default. Do this by naming one "
          "of them \"serving_default\"");
  for (const auto& [name, o] : outputs) {
    export_signature& s = all[name] = base;
    put(s.outputs, o.outputs), s.method_name = o.method_name;
  }
  return all;
}

// Returns the placeholders that the outputs are computed from.
GRADUS_BODY named_tensors placeholders_of(graph& g, const std::map<std::string, value>& outputs) {
  std::vector<bool> needed(static_cast<std::size_t>(g.nodes.count));
  for (const auto& [key, v] : outputs) needed[static_cast<std::size_t>(v.id)] = true;
  named_tensors out;
  for (int i = g.nodes.count; i-- > 0;)
    if (needed[static_cast<std::size_t>(i)])
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        needed[static_cast<std::size_t>(g.edges[g.nodes[i].first + k])] = true;
  for (int i = 0; i < g.nodes.count; ++i)
    if (needed[static_cast<std::size_t>(i)] && g.nodes[i].op == &placeholder_card) out.add(g.name_of(i), value{&g, i});
  return out;
}

GRADUS_BODY model_to_export export_of_model(std::unique_ptr<graph> g, const model_spec& made) {
  const gradus::mode m = g->mode();
  estimator_spec spec{.mode = m, .loss = made.loss};
  for (int i = 0; i < made.predictions.count; ++i)
    spec.predictions.add(made.predictions.items[i].name, made.predictions.items[i].what);
  for (int i = 0; i < made.metrics.count; ++i)
    spec.eval_metric_ops[std::string(made.metrics.items[i].name)] = made.metrics.items[i].what;
  if (m == gradus::mode::predict && spec.predictions.empty())
    raise(status::invalid_argument,
          "the model names no predictions to export: return model_spec{.predictions = {{\"y\", y}}}");
  if (m != gradus::mode::predict && !spec.loss)
    raise(status::invalid_argument, "the model has no loss to export: return model_spec{.loss = ...}");
  model_to_export out{std::move(g), signatures_of(spec, {})};
  for (auto& [name, s] : out.signatures)
    for (const auto& [key, v] : placeholders_of(*out.of, s.outputs)) s.inputs[key] = v;
  return out;
}

GRADUS_BODY std::string export_checkpoint(const std::string& base, const std::string& checkpoint,
                                          const std::vector<model_to_export>& models, const saved_model_options& o,
                                          const checkpoint_reading& how) {
  if (models.empty()) raise_no_modes();
  const auto tensors = tensors_in(checkpoint, how);
  state_list state;
  for (const auto& [name, t] : tensors)
    state.tensor(name, t.type, t.dims, std::span(const_cast<std::byte*>(t.data), t.size_bytes()));
  std::vector<export_graph> graphs;
  for (const model_to_export& m : models)
    graphs.push_back({m.of.get(), m.signatures, {std::string(export_tag(m.of->mode()))}});
  return gradus::export_saved_model(base, state, graphs,
                                    {.assets_extra = o.assets_extra, .features = o.features, .source = o.source});
}

}  // namespace gradus::detail
