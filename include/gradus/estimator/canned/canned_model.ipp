// The bodies of canned_model.hpp.
#pragma once
#include <cmath>

#include "../../base/body.hpp"
#include "../../columns/parse_example_spec.hpp"
#include "../../session/global_step.hpp"
#include "canned_model.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double linear_rate_of(double most, std::size_t columns) {
  return std::min(most, 1 / std::sqrt(static_cast<double>(columns)));
}

// Opens a scope of the model. Scopes give variables TensorFlow's names, so no tensor may have the name of a scope
// already.
GRADUS_BODY graph::scope model_scope(graph& g, std::string_view name) {
  if (g.find(name) >= 0)
    raise(status::failed_precondition, text("a canned estimator: the graph has a tensor \"", name,
                                            "\" already, whose name the model's variables begin with; rename it"));
  return g.name_scope(name);
}

GRADUS_BODY feature_source source_of(const named_tensors& features) {
  return [&features](const std::string& name) { return features[name]; };
}

GRADUS_BODY void layer_summary(value v, const std::string& tag) {
  if (v.g->mode() != gradus::mode::train) return;
  v.g->summary_scalar(tag + "/fraction_of_zero_values", zero_fraction(v));
  v.g->summary_histogram(tag + "/activation", v);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY value dnn_logits(const named_tensors& features, const feature_layout& layout, int units,
                             const dnn_part& part) {
  graph& g = features.of();
  const auto scope = detail::model_scope(g, "dnn");
  value net;
  {
    const auto inner = g.name_scope("input_from_feature_columns");
    net = input_layer(g, layout, {.source = detail::source_of(features)});
  }
  int k = 0;
  for (const int width : part.hidden_units) {
    const std::string name = text("hiddenlayer_", k), norm = text(name, "/batchnorm_", k);
    ++k;
    net = dense(net, {.units = width, .name = name, .activation = part.activation_fn});
    if (part.dropout > 0) net = dropout(net, part.dropout);
    if (part.batch_norm) net = batch_norm(net, {.name = norm, .momentum = 0.999});
    detail::layer_summary(net, "dnn/" + name);
  }
  const value logits = dense(net, {.units = units, .name = "logits"});
  detail::layer_summary(logits, "dnn/logits");
  return logits;
}

GRADUS_BODY value linear_logits(const named_tensors& features, const feature_layout& layout, int units,
                                const linear_part& part) {
  graph& g = features.of();
  const int before = g.nodes.count;
  value logits;
  {
    const auto scope = detail::model_scope(g, "linear");
    logits = linear_model(
        g, layout, {.units = units, .sparse_combiner = part.sparse_combiner, .source = detail::source_of(features)});
  }
  if (g.mode() != gradus::mode::train) return logits;
  value nonzero, all;
  for (int i = before, end = g.nodes.count; i < end; ++i) {
    if (g.nodes[i].op != &variable_card) continue;
    const value v{&g, i};
    if (g.name_of(i) == "linear/linear_model/bias_weights") {
      if (units == 1)
        g.summary_scalar("linear/bias", reshape(v, {}));
      else
        g.summary_histogram("linear/bias", v);
      continue;
    }
    const value n = cast(reduce_sum(cast(not_equal(v, g.constant(0, v.type())), int64)), float32);
    const value size = g.constant(static_cast<double>(count(v.dims())));
    nonzero = nonzero ? nonzero + n : n, all = all ? all + size : size;
  }
  g.summary_scalar("linear/fraction_of_zero_weights", (all - nonzero) / all);
  return logits;
}

GRADUS_BODY value baseline_logits(const named_tensors& features, int units) {
  graph& g = features.of();
  const auto scope = detail::model_scope(g, "baseline");
  const value bias = g.variable("bias", {units}, {.init = zeros});
  const value any = features.begin()->second;
  shape rows = any.dims();
  while (rows.rank > 1) --rows.rank;
  const value zero = broadcast_to(g.constant(0), rows);  // as many rows as the batch has
  return expand_dims(zero, -1) + bias;
}

GRADUS_BODY canned_model::canned_model(any_head head, canned_model_settings s)
    : head_(std::move(head)), s_(std::move(s)) {
  if (s_.baseline) return;
  if (s_.dnn) {
    if (s_.dnn->feature_columns.empty())
      raise(status::invalid_argument, "a dnn model: expected feature_columns, found none");
    for (const dense_column& c : s_.dnn->feature_columns)
      if (const embedding_column* e = c.embedding(); e != nullptr && !e->options().ckpt_to_load_from.empty())
        raise(status::invalid_argument,
              text("a dnn model: an estimator does not read ckpt_to_load_from (\"", e->options().ckpt_to_load_from,
                   "\") of the column \"", e->name(),
                   "\"; give warm_start_from = warm_start_settings{.ckpt_to_initialize_from, .vars_to_warm_start, "
                   ".var_name_to_prev_var_name}, where this table is "
                   "\"dnn/input_from_feature_columns/input_layer/",
                   e->table_name(), "/embedding_weights\""));
    for (const int n : s_.dnn->hidden_units)
      if (n < 1) raise(status::invalid_argument, text("a dnn model: hidden_units must be 1 or more each, found ", n));
    if (!(s_.dnn->dropout >= 0 && s_.dnn->dropout < 1))
      raise(status::invalid_argument, text("a dnn model: dropout must be in [0, 1), found ", s_.dnn->dropout));
  }
  if (s_.linear && s_.linear->feature_columns.empty())
    raise(status::invalid_argument, "a linear model: expected feature_columns, found none");
  columns_.emplace(
      feature_layout_settings{.input_layer = s_.dnn ? s_.dnn->feature_columns : std::vector<dense_column>{},
                              .linear_model = s_.linear ? s_.linear->feature_columns : std::vector<linear_column>{},
                              .ids_per_example = s_.ids_per_example,
                              .ids_of = s_.ids_of});
  layout_.emplace(*columns_);
}

GRADUS_BODY estimator_spec canned_model::operator()(const named_tensors& features, value labels, gradus::mode m) const {
  graph& g = features.of();
  const int units = head_.logits_dimension();
  value deep, wide;
  if (s_.baseline) deep = baseline_logits(features, units);
  if (s_.dnn) deep = dnn_logits(features, *layout_, units, *s_.dnn);
  if (s_.linear) wide = linear_logits(features, *layout_, units, *s_.linear);
  head_arguments a{.features = features, .mode = m, .labels = labels};
  a.logits = deep && wide ? deep + wide : deep ? deep : wide;
  any_optimizers used;
  const auto one = [&](const optimizer_choice& choice, double rate) {
    a.train_op_fn = [&g, &used, &choice, rate](value loss) {
      const chosen_optimizer opt = choice.make(rate);
      used.add(opt.session_part);
      return opt.minimize(loss, {.global_step = get_or_create_global_step(g)});
    };
  };
  if (s_.baseline)
    one(*s_.baseline, detail::baseline_rate);
  else if (!s_.linear)
    one(s_.dnn->optimizer, s_.dnn->rate);
  else if (!s_.dnn)
    one(s_.linear->optimizer, s_.linear->rate);
  else
    a.train_op_fn = [&](value loss) {
      const value step = get_or_create_global_step(g);
      detail::seq<gradient_and_variable> of_deep, of_wide;
      for (const auto& p : compute_gradients(loss))
        (g.name_of(p.variable.id).starts_with("dnn/") ? of_deep : of_wide).push(p);
      std::vector<value> done;
      const auto apply = [&](const optimizer_choice& choice, double rate, const auto& list) {
        const chosen_optimizer opt = choice.make(rate);
        used.add(opt.session_part);
        done.push_back(opt.apply_gradients(list, {.global_step = step, .counts_step = false}));
      };
      apply(s_.dnn->optimizer, s_.dnn->rate, of_deep);
      apply(s_.linear->optimizer, s_.linear->rate, of_wide);
      const auto wait = g.control_dependencies({done[0], done[1]});
      return assign_add(step, g.constant(1, step.type()));
    };
  estimator_spec spec = head_.create_estimator_spec(a);
  if (m == gradus::mode::train && !used.empty()) spec.optimizers = std::move(used);
  return spec;
}

GRADUS_BODY components canned_model::parts() const {
  return layout_ ? layout_->parts() : components{{std::string(detail::rows_component), dtype::float32, {}}};
}

GRADUS_BODY example_spec canned_model::examples() const {
  return layout_ ? make_parse_example_spec(*layout_) : example_spec{};
}

GRADUS_BODY estimator_input canned_model::read(estimator_input in, gradus::mode m) const {
  return canned_input(std::move(in), m, columns_ ? &*columns_ : nullptr, head_, s_.input);
}

}  // namespace gradus
