// The bodies of head.hpp.
#pragma once
#include "../base/body.hpp"
#include "../session/global_step.hpp"
#include "head.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void check_reduction(losses::reduction r, std::string_view head) {
  if (r <= losses::reduction::none || r > losses::reduction::sum_over_batch_size)
    raise(status::invalid_argument, text(head, ": Invalid loss_reduction: ", static_cast<int>(r),
                                         "; expected sum, mean, sum_over_batch_size or sum_by_nonzero_weights"));
}

GRADUS_BODY value checked_logits(const head_arguments& a, int dimension, std::string_view head) {
  if (!a.logits) raise(status::invalid_argument, text(head, ": expected logits, got none"));
  const shape s = a.logits.dims();
  if (s.rank < 2 || s.back() != dimension)
    raise(status::invalid_argument,
          text(head, ": logits shape must be [D0, D1, ... DN, logits_dimension=", dimension, "], got ", to_text(s)));
  return is_float(a.logits.type()) ? a.logits : cast(a.logits, float32);
}

GRADUS_BODY value checked_labels(const head_arguments& a, int dimension, std::string_view head) {
  if (!a.labels)
    raise(status::invalid_argument,
          text(head,
               ": You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: check that the "
               "data have the label feature, and that input_fn names it as a label"));
  value y = a.labels;
  shape s = y.dims(), wanted = a.logits.dims();
  if (dimension == 1 && s.rank == wanted.rank - 1) y = expand_dims(y, -1), s = y.dims();
  wanted.dims[wanted.rank - 1] = dimension;
  if (s.rank != wanted.rank || s.back() != dimension)
    raise(status::invalid_argument,
          text(head, ": Mismatched label shape. Expected labels dimension=", dimension, ". Received ", to_text(s),
               ". Suggested Fix: if your classifier expects one-hot encoding label, check n_classes and the shape of "
               "your label; otherwise check label_dimension"));
  if (!(s == wanted))
    raise(status::invalid_argument, text(head, ": labels shape must be ", to_text(wanted), ", as the logits ",
                                         to_text(a.logits.dims()), " have it; got ", to_text(s)));
  return y;
}

GRADUS_BODY value weights_of(const head_arguments& a, const std::string& column, bool each_logit,
                             std::string_view head) {
  if (column.empty()) return {};
  if (!a.features.contains(column))
    raise(status::not_found, text(head, ": the weight_column \"", column, "\" is not among the features"));
  value w = a.features[column];
  if (w.type() == boolean)
    raise(status::invalid_argument,
          text(head, ": Weight column should be castable to float. Given dtype: ", name_of(w.type())));
  w = cast(w, is_float(a.logits.type()) ? a.logits.type() : float32);
  shape wanted = a.logits.dims();
  if (each_logit && w.dims() == wanted) return w;
  if (w.dims().rank == wanted.rank - 1) w = expand_dims(w, -1);
  wanted.dims[wanted.rank - 1] = 1;
  if (!(w.dims() == wanted))
    raise(status::invalid_argument,
          text(head, ": weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]",
               each_logit ? " or [D0, D1, ... DN, logits_dimension]" : "", ", logits_shape: ", to_text(a.logits.dims()),
               ", weights_shape: ", to_text(a.features[column].dims())));
  return w;
}

GRADUS_BODY value unreduced_by(const head_loss_fn& f, value labels, value logits, int dimension,
                               std::string_view head) {
  const value found = f(labels, logits);
  shape wanted = logits.dims();
  wanted.dims[wanted.rank - 1] = dimension;
  if (!found || !(found.dims() == wanted))
    raise(status::invalid_argument, text(head, ": loss_fn must return Tensor of shape [D0, D1, ... DN, ", dimension,
                                         "]. logits_shape: ", to_text(logits.dims()),
                                         ", loss_shape: ", found ? to_text(found.dims()) : std::string("none")));
  return found;
}

// Checks that labels are in [0, n_classes - 1]. Only the head of two classes needs it: the kernel of
// sparse_softmax_cross_entropy checks class numbers itself.
GRADUS_BODY value label_range(value labels, int n_classes) { return check_between(labels, 0, n_classes - 1); }

GRADUS_BODY head_loss reduced(const head_arguments&, value labels, value unreduced, value weights,
                              losses::reduction r) {
  losses::options o{.reduction = r};
  if (weights) o.weights = weights;
  return {labels, unreduced, weights, losses::compute_weighted_loss(unreduced, o), r};
}

GRADUS_BODY std::string key_of(std::string_view key, const std::string& head_name) {
  return head_name.empty() ? std::string(key) : text(key, '/', head_name);
}

GRADUS_BODY estimator_spec head_spec(const head_arguments& a, const std::string& head_name, named_tensors predictions,
                                     export_outputs_map exports, const std::function<head_loss()>& loss,
                                     const std::function<named_metrics(const head_loss&)>& metrics_of) {
  estimator_spec spec{.mode = a.mode, .predictions = std::move(predictions)};
  if (a.mode == gradus::mode::predict) {
    spec.export_outputs = std::move(exports);
    return spec;
  }
  graph& g = *a.logits.g;
  const head_loss l = loss();
  value extra;
  for (const value& r : a.regularization_losses) extra = extra ? extra + r : r;
  spec.loss = extra ? l.training + extra : l.training;
  if (a.mode == gradus::mode::evaluate) {
    const auto scope = g.name_scope("metrics");
    spec.eval_metric_ops = metrics_of(l);
    if (extra)
      spec.eval_metric_ops[key_of("regularization_loss", head_name)] =
          metrics::mean(extra, {.name = "regularization_loss"});
    return spec;
  }
  if (a.train_op_fn && a.optimizer) raise(status::invalid_argument, "train_op_fn and optimizer cannot both be set.");
  if (!a.train_op_fn && !a.optimizer)
    raise(status::invalid_argument, "train_op_fn and optimizer cannot both be None: mode train needs one of them");
  if (a.train_op_fn) {
    spec.train_op = a.train_op_fn(spec.loss);
  } else {
    const chosen_optimizer opt = a.optimizer->make(0.05);
    spec.train_op = opt.minimize(spec.loss, {.global_step = get_or_create_global_step(g)});
    spec.optimizers = opt.session_part;
  }
  std::vector<value> waits;
  g.for_each_in(collection::update_ops, [&](value v) { waits.push_back(v); });
  if (!waits.empty()) {
    waits.push_back(spec.train_op);
    const value all = g.group({});
    for (const value& v : waits) g.depend(all, v);
    spec.train_op = all;
  }
  g.summary_scalar(key_of("loss", head_name), spec.loss);
  if (l.how == losses::reduction::sum) {
    const value total =
        l.weights ? reduce_sum(broadcast_to(l.weights, l.unreduced.dims())) : size_of(l.unreduced, l.unreduced.type());
    g.summary_scalar(key_of("average_loss", head_name), l.training / total);
  }
  if (extra) g.summary_scalar(key_of("regularization_loss", head_name), extra);
  return spec;
}

GRADUS_BODY value all_class_ids(value logits, int n) {
  graph& g = *logits.g;
  const value row = cast(range(g, n), int32);
  shape dims = logits.dims();
  dims.dims[dims.rank - 1] = n;
  shape one = dims;
  for (int i = 0; i < one.rank - 1; ++i) one.dims[i] = 1;
  return broadcast_to(reshape(row, one), dims);
}

GRADUS_BODY std::vector<std::string> class_names(const std::vector<std::string>& vocabulary, int n) {
  if (!vocabulary.empty()) return vocabulary;
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back(text(i));
  return names;
}

GRADUS_BODY void check_vocabulary(const std::vector<std::string>& vocabulary, int n, std::string_view head) {
  if (vocabulary.empty()) return;
  if (static_cast<int>(vocabulary.size()) != n)
    raise(status::invalid_argument,
          text(head, ": Length of label_vocabulary must be n_classes=", n, ". Given: ", vocabulary.size()));
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (vocabulary[i] == vocabulary[k])
        raise(status::invalid_argument, text(head, ": label_vocabulary has \"", vocabulary[i], "\" twice"));
}

}  // namespace gradus::detail
