// This header has the losses of tf.losses and tf.nn (TensorFlow 1.15). Labels come first in `losses::`, as in
// tf.losses; the ops that end in _with_logits take logits first. Two that are swapped are refused where their types
// show it (whole numbers are labels), and where logits or predictions come from no variable and labels do.
// (sparse_softmax_cross_entropy accepts both orders.) Other float tensors that are swapped cannot be detected.
#pragma once
#include "arrange.hpp"
#include "softmax.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
constexpr value as_float(value x) { return is_float(x.type()) ? x : cast(x, float32); }
// Returns n / d, and 0 where d is 0; no intermediate result is infinite.
constexpr value divide_no_nan(value n, value d) {
  graph& g = *d.g;
  const value zero = g.constant(0, d.type()), is_zero = equal(d, zero);
  return select(is_zero, zero, n / select(is_zero, g.constant(1, d.type()), d));
}
// Returns whether weights fit values: a scalar, or the same rank with each extent 1 or equal.
constexpr bool weights_fit(const shape& weights, const shape& values) {
  if (weights.rank == 0) return true;
  if (weights.rank != values.rank) return false;
  for (int i = 0; i < values.rank; ++i)
    if (weights.dims[i] != 1 && weights.dims[i] != values.dims[i]) return false;
  return true;
}
constexpr value log_one_plus_exp(value x, value positive) {  // log(1 + e^-|x|)
  return log1p(exp(select(positive, neg(x), x)));
}
constexpr value at_least_zero(value x) { return greater_equal(x, x.g->constant(0, x.type())); }
}  // namespace detail

// Returns sum(x^2) / 2, a scalar.
constexpr value l2_loss(value x) { return reduce_sum(square(x)) * 0.5; }

// Returns, for each element, max(x, 0) - x z + log(1 + e^-|x|). The gradient is sigmoid(x) - z, at 0 too.
constexpr value sigmoid_cross_entropy_with_logits(value logits, value labels) {
  if (detail::refuses_swapped("sigmoid_cross_entropy_with_logits", detail::logits_first, labels, logits)) return logits;
  const value positive = gradus::detail::at_least_zero(logits), zero = logits.g->constant(0, logits.type());
  const value most = select(positive, logits, zero), product = logits * labels;
  const value tail = gradus::detail::log_one_plus_exp(logits, positive);
  return most - product + tail;
}
// Does the same with positive labels counted pos_weight times: (1 - z) x + (1 + (q - 1) z)(log(1 + e^-|x|) + max(-x,
// 0)), where q is pos_weight.
constexpr value weighted_cross_entropy_with_logits(value logits, value labels, double pos_weight) {
  if (detail::refuses_swapped("weighted_cross_entropy_with_logits", detail::logits_first, labels, logits))
    return logits;
  const value positive = gradus::detail::at_least_zero(logits), zero = logits.g->constant(0, logits.type());
  const value logarithm = gradus::detail::log_one_plus_exp(logits, positive);
  const value tail = logarithm + select(positive, zero, neg(logits));
  const value rest = (1.0 - labels) * logits, factor = 1.0 + labels * (pos_weight - 1);
  const value weighted = factor * tail;
  return rest + weighted;
}

namespace losses {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ reports enumerators of a scoped enum as shadowing the namespace
enum class reduction { none, sum, sum_by_nonzero_weights, mean, sum_over_batch_size };
#pragma GCC diagnostic pop

// The weights are a number, or a tensor: a scalar, or of the losses' rank with extents that are 1 or equal.
struct weights {
  value tensor;
  double number = 1;
  bool is_number = true;
  constexpr weights(double w) : number(w) {}
  constexpr weights(value w) : tensor(w), is_number(false) {}
};
struct options {
  losses::weights weights = 1.0;
  losses::reduction reduction = losses::reduction::sum_by_nonzero_weights;
  std::string_view name = {};                             // scope; empty: the function's name
  std::string_view loss_collection = collection::losses;  // empty: none
};

namespace detail {
constexpr std::string_view either(std::string_view given, std::string_view own) { return given.empty() ? own : given; }
// Computes compute_weighted_loss in the present scope, which is that of the loss that calls it.
constexpr value weighted(value losses, const options& o) {
  graph& g = *losses.g;
  losses = gradus::detail::as_float(losses);
  if (!o.weights.is_number && !o.weights.tensor) {
    g.refuse("losses: the weights are no tensor of this graph");
    return losses;
  }
  if (o.reduction < reduction::none || o.reduction > reduction::sum_over_batch_size) {
    g.refuse("losses: there is no reduction ", static_cast<int>(o.reduction));
    return losses;
  }
  value w = o.weights.is_number ? g.constant(o.weights.number, losses.type()) : cast(o.weights.tensor, losses.type());
  if (!gradus::detail::weights_fit(w.dims(), losses.dims())) {
    g.refuse("losses: weights ", w.dims(), " do not fit losses ", losses.dims(),
             ": a scalar, or the same rank with extents 1 or equal");
    return losses;
  }
  const bool one = o.weights.is_number && o.weights.number == 1;
  value result = one ? losses : losses * w;
  if (o.reduction != reduction::none) {
    result = reduce_sum(result);
    const shape dims = losses.dims();
    if (o.reduction == reduction::sum_over_batch_size || (one && o.reduction != reduction::sum))
      result = gradus::detail::divide_no_nan(result, size_of(losses, losses.type()));
    else if (o.reduction == reduction::sum_by_nonzero_weights)
      result = gradus::detail::divide_no_nan(
          result, reduce_sum(broadcast_to(cast(not_equal(w, g.constant(0, w.type())), losses.type()), dims)));
    else if (o.reduction == reduction::mean)
      result = gradus::detail::divide_no_nan(result, reduce_sum(broadcast_to(w, dims)));
  }
  if (!o.loss_collection.empty()) g.add_to(o.loss_collection, result);
  return result;
}
}  // namespace detail

// Returns the losses times the weights, reduced, and adds the result to the collection. Integers are computed as
// float32; float64 stays float64, where TensorFlow computes in float32. SUM_BY_NONZERO_WEIGHTS and MEAN are 0 where
// they would divide by 0.
constexpr value compute_weighted_loss(value losses, const options& o = {}) {
  const auto scope = losses.g->name_scope(detail::either(o.name, "weighted_loss"));
  return detail::weighted(losses, o);
}

namespace detail {
// Labels and predictions of one shape and float dtype, made in the loss's scope.
struct pair {
  value labels, predictions;
  bool fit;
};
constexpr pair match(std::string_view name, value labels, value predictions) {
  graph& g = predictions ? *predictions.g : *labels.g;
  if (!labels || !predictions) {
    g.refuse(name, ": labels and predictions must be tensors");
    return {predictions, predictions, false};
  }
  predictions = gradus::detail::as_float(predictions);
  labels = cast(labels, predictions.type());
  const bool fit = labels.dims() == predictions.dims();
  if (!fit) g.refuse(name, ": labels ", labels.dims(), " and predictions ", predictions.dims(), " must have one shape");
  return {labels, predictions, fit};
}
template <class Formula>
constexpr value each(std::string_view name, value labels, value predictions, const options& o, Formula formula) {
  if (!labels && !predictions) return {};
  graph& g = predictions ? *predictions.g : *labels.g;
  const auto scope = g.name_scope(either(o.name, name));
  const auto p = match(name, labels, predictions);
  return p.fit ? weighted(formula(p.labels, p.predictions), o) : p.predictions;
}
// Refuses a share of the labels that is none.
constexpr bool refuses_smoothing(graph& g, std::string_view loss, double share) {
  if (share >= 0 && share <= 1) return false;
  g.refuse(loss, ": label_smoothing is a share of the labels, and must be in [0, 1]; 10 % are 0.1");
  return true;
}
// Does the same where whole numbers can only be labels. `second` names the other operand: "logits", or "predictions".
template <class Formula>
constexpr value each_of(std::string_view second, std::string_view name, value labels, value logits, const options& o,
                        Formula formula) {
  if (labels && logits && is_float(labels.type()) && !is_float(logits.type())) {
    logits.g->refuse(name, ": labels come first, then ", second, "; found labels of ", labels.type(), " and ", second,
                     " of ", logits.type(), ": swap them");
    return logits;
  }
  const bool is_logits = second == "logits";
  if (gradus::detail::refuses_swapped(
          name, is_logits ? "labels come first, then logits" : "labels come first, then predictions", labels, logits))
    return logits;
  return each(name, labels, logits, o, formula);
}
}  // namespace detail

// Returns (labels - predictions)^2, times the weights, reduced.
constexpr value mean_squared_error(value labels, value predictions, const options& o = {}) {
  return detail::each("mean_squared_error", labels, predictions, o,
                      [](value y, value p) { return squared_difference(p, y); });
}
// Returns |labels - predictions|, times the weights, reduced.
constexpr value absolute_difference(value labels, value predictions, const options& o = {}) {
  return detail::each("absolute_difference", labels, predictions, o, [](value y, value p) { return abs(p - y); });
}
// Returns q^2 / 2 + delta (|p - y| - q), where q = min(|p - y|, delta).
constexpr value huber_loss(value labels, value predictions, double delta = 1, const options& o = {}) {
  return detail::each("huber_loss", labels, predictions, o, [delta](value y, value p) {
    const value e = abs(p - y), q = minimum(e, delta);
    const value inner = square(q) * 0.5, outer = (e - q) * delta;
    return inner + outer;
  });
}
// Returns -y log(p + epsilon) - (1 - y) log(1 - p + epsilon), where the predictions p are probabilities in [0, 1].
constexpr value log_loss(value labels, value predictions, double epsilon = 1e-7, const options& o = {}) {
  return detail::each_of("predictions", "log_loss", labels, predictions, o, [epsilon](value y, value p) {
    const value hit = neg(y * log(p + epsilon)), rest = 1.0 - y, logarithm = log(1.0 - p + epsilon);
    const value miss = rest * logarithm;
    return hit - miss;
  });
}
// Returns max(0, 1 - (2 y - 1) logits), where the labels y are 0 or 1.
constexpr value hinge_loss(value labels, value logits, const options& o = {}) {
  return detail::each_of("logits", "hinge_loss", labels, logits, o,
                         [](value y, value p) { return relu(1.0 - (y * 2.0 - 1.0) * p); });
}
// Returns 1 - sum(labels * predictions) along the axis, which stays as an extent of 1; both are assumed to have length
// 1.
constexpr value cosine_distance(value labels, value predictions, int axis, const options& o = {}) {
  return detail::each("cosine_distance", labels, predictions, o,
                      [axis](value y, value p) { return 1.0 - reduce_sum(p * y, {axis}, true); });
}
// Compares all pairs of elements of one sample (axis 0). With d = p - y and n elements of weight not 0, returns 2 sum
// d^2 / (n - 1) - 2 (sum d)^2 / (n (n - 1)), times the weight, summed over samples. The reduction of `o` is not used.
constexpr value mean_pairwise_squared_error(value labels, value predictions, const options& o = {}) {
  if (!labels && !predictions) return {};
  graph& g = predictions ? *predictions.g : *labels.g;
  const auto scope = g.name_scope(detail::either(o.name, "mean_pairwise_squared_error"));
  const auto p = detail::match("mean_pairwise_squared_error", labels, predictions);
  const shape dims = p.predictions.dims();
  if (!p.fit) return p.predictions;
  if ((!o.weights.is_number && !o.weights.tensor) || dims.rank == 0) {
    g.refuse("mean_pairwise_squared_error: needs weights and an axis of samples");
    return p.predictions;
  }
  const dtype type = p.predictions.type();
  const value w = o.weights.is_number ? g.constant(o.weights.number, type) : cast(o.weights.tensor, type);
  if (!gradus::detail::weights_fit(w.dims(), dims)) {
    g.refuse("mean_pairwise_squared_error: weights ", w.dims(), " do not fit ", dims);
    return p.predictions;
  }
  const int mask = (1 << dims.rank) - 2;
  const auto per_sample = [&](value x) { return gradus::detail::reduce(cards::sum, x, mask, true); };
  const value d = p.predictions - p.labels;
  const value n = per_sample(broadcast_to(cast(not_equal(w, g.constant(0, type)), type), dims));
  const value squares = per_sample(square(d)), pairs = maximum(n - 1.0, 0);
  const value first = gradus::detail::divide_no_nan(squares, pairs) * 2.0;
  const value square_of_sum = square(per_sample(d)), all = maximum(n * (n - 1.0), 0);
  const value second = gradus::detail::divide_no_nan(square_of_sum, all) * 2.0;
  const value total = reduce_sum((first - second) * w), some = greater(reduce_sum(n), 0.0);
  const value result = select(some, total, g.constant(0, type));  // without weights it is 0, whatever p is
  if (!o.loss_collection.empty()) g.add_to(o.loss_collection, result);
  return result;
}

// Returns softmax_cross_entropy_with_logits, times the weights, reduced. Labels are any distribution per row, smoothed
// to y (1 - s) + s / classes; they get no gradient.
constexpr value softmax_cross_entropy(value onehot_labels, value logits, double label_smoothing = 0,
                                      const options& o = {}) {
  return detail::each_of("logits", "softmax_cross_entropy_loss", onehot_labels, logits, o,
                         [label_smoothing](value y, value x) {
                           if (detail::refuses_smoothing(*x.g, "softmax_cross_entropy_loss", label_smoothing)) return x;
                           if (label_smoothing != 0 && (x.dims().rank == 0 || x.dims().back() <= 0)) {
                             x.g->refuse(
                                 "softmax_cross_entropy_loss: label_smoothing divides by the number of "
                                 "classes, the last extent of the logits, which is not known in ",
                                 x.dims());
                             return x;
                           }
                           if (label_smoothing != 0) y = y * (1 - label_smoothing) + label_smoothing / x.dims().back();
                           return softmax_cross_entropy_with_logits(x, stop_gradient(y));
                         });
}
// Returns sparse_softmax_cross_entropy_with_logits, times the weights, reduced. Labels are class numbers [...] for
// logits [..., classes]; the shape [..., 1] is accepted too.
constexpr value sparse_softmax_cross_entropy(value labels, value logits, const options& o = {}) {
  if (!labels && !logits) return {};
  graph& g = logits ? *logits.g : *labels.g;
  const auto scope = g.name_scope(detail::either(o.name, "sparse_softmax_cross_entropy_loss"));
  if (!labels || !logits) {
    g.refuse("sparse_softmax_cross_entropy_loss: ", labels ? "logits" : "labels", " must be a tensor");
    return logits ? logits : labels;
  }
  if (is_float(labels.type()) && !is_float(logits.type())) {  // swapped: the types show it, as in gradus::
    const value given = labels;
    labels = logits, logits = given;
  }
  const shape& y = labels.dims();
  if (y.rank > 0 && y.rank == logits.dims().rank && y.back() == 1) labels = squeeze(labels, {-1});
  return detail::weighted(gradus::sparse_softmax_cross_entropy(logits, labels), o);
}
// Returns sigmoid_cross_entropy_with_logits, times the weights, reduced. Labels are smoothed to y (1 - s) + s / 2.
constexpr value sigmoid_cross_entropy(value labels, value logits, double label_smoothing = 0, const options& o = {}) {
  return detail::each_of("logits", "sigmoid_cross_entropy_loss", labels, logits, o,
                         [label_smoothing](value y, value x) {
                           if (detail::refuses_smoothing(*x.g, "sigmoid_cross_entropy_loss", label_smoothing)) return x;
                           if (label_smoothing != 0) y = y * (1 - label_smoothing) + label_smoothing * 0.5;
                           return sigmoid_cross_entropy_with_logits(x, y);
                         });
}

// Returns the sum of a collection of losses; 0 if it is empty.
constexpr value get_total_loss(graph& g, std::string_view loss_collection = collection::losses) {
  value total;
  g.for_each_in(loss_collection, [&](value v) { total = total ? total + v : v; });
  return total ? total : g.constant(0);
}

}  // namespace losses

}  // namespace gradus
