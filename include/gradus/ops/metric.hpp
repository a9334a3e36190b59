// Streaming metrics, as tf.metrics has them (1.15), are local variables that add up batches since they were reset.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "host.hpp"
#include "loss.hpp"
#include "state.hpp"

namespace gradus::inline GRADUS_BUILD {

// A metric has three readings. `update` counts this batch and returns the new value; `result` reads the value (after
// the update, if both are fetched); `batch_result` is the value of this batch alone.
struct metric {
  value result, update, batch_result;
};

// Returns the number of elements equal to 0 divided by the number of all, float32: -0 counts as 0, NaN does not; NaN if
// there are no elements.
constexpr value zero_fraction(value x) {
  const value other = reduce_sum(cast(not_equal(x, x.g->constant(0, x.type())), int64));
  const value all = size_of(x, int64);
  const value zero = cast(all - other, float32), total = cast(all, float32);
  return zero / total;
}

namespace metrics {

struct options {
  value weights = {};          // none: 1; a scalar, or of the values' rank with extents 1 or equal
  std::string_view name = {};  // scope; empty: the function's name
  dtype type = dtype::none;    // of variables and result; none: float64 if an operand is, else float32, TensorFlow's
};

// Thresholds are given as a list in braces, or as a span or std::vector that is known when the program runs. This owns
// a copy of them.
struct thresholds {
  gradus::detail::seq<double> list;
  constexpr thresholds() = default;
  constexpr thresholds(std::initializer_list<double> numbers) {
    list.append(numbers.begin(), static_cast<int>(numbers.size()));
  }
  template <class Numbers>
    requires(!std::same_as<Numbers, thresholds>) && std::convertible_to<const Numbers&, std::span<const double>>
  constexpr thresholds(const Numbers& numbers) {
    const std::span<const double> s(numbers);
    list.append(s.data(), static_cast<int>(s.size()));
  }
};

namespace detail {
using losses::detail::either;

constexpr dtype type_of(value a, value b, const options& o) {
  if (is_float(o.type)) return o.type;
  return a.type() == float64 || b.type() == float64 || (o.weights && o.weights.type() == float64) ? float64 : float32;
}
// This is a sum over batches: the share of this batch, the stored sum, and the sum with this batch.
struct tally {
  value of_batch, stored, updated;
};
constexpr tally add_up(std::string_view name, value of_batch) {
  graph& g = *of_batch.g;
  const value v =
      g.variable(name, of_batch.dims(), {.init = zeros, .trainable = false, .local = true, .type = of_batch.type()});
  return {of_batch, v, assign_add(v, of_batch)};
}
// Returns the metric of a formula on tallies: it calls f(n, d) three times.
template <class Formula, class... Tallies>
constexpr metric read(Formula f, const Tallies&... t) {
  const value update = f(t.updated...);
  return {f(t.stored...), update, f(t.of_batch...)};
}
constexpr value ratio(value n, value d) {
  graph& g = *d.g;
  const value zero = g.constant(0, d.type()), some = greater(d, zero);
  return select(some, n / select(some, d, g.constant(1, d.type())), zero);
}
constexpr value spread(value weights, value values, dtype type) {
  const shape dims = values.dims();  // a copy, because the cast below adds a node
  if (!gradus::detail::weights_fit(weights.dims(), dims)) {
    values.g->refuse("metrics: weights ", weights.dims(), " do not fit values ", dims,
                     ": a scalar, or the same rank with extents 1 or equal");
    weights = values.g->constant(1, type);
  }
  return broadcast_to(cast(weights, type), dims);
}
constexpr bool same(std::string_view name, value a, value b) {
  if (a.dims() == b.dims()) return true;
  a.g->refuse(name, ": labels and predictions must have one shape, got ", a.dims(), " and ", b.dims());
  return false;
}
// Returns the type in which classes are compared: the labels', or that of the predictions if so many classes are not
// all numbers of the labels' type (in uint8, class 256 would be 0). In int32 there are always enough.
constexpr dtype type_of_classes(dtype labels, dtype predictions, std::int64_t classes) {
  if (labels == boolean) return classes <= 2 ? labels : predictions;
  return labels == uint8 && predictions != boolean && classes > 256 ? predictions : labels;
}
// Makes a mean in the present scope.
template <class Formula>
constexpr metric mean_of(value values, value weights, Formula f) {
  const dtype type = values.type();
  value sum, n;
  if (weights) {
    const value w = spread(weights, values, type);
    sum = reduce_sum(values * w), n = reduce_sum(w);
  } else {
    sum = reduce_sum(values), n = size_of(values, type);
  }
  const auto total = add_up("total", sum), count = add_up("count", n);
  return read([f](value s, value k) { return f(ratio(s, k)); }, total, count);
}
constexpr value itself(value x) { return x; }
constexpr value as_bool(value x) { return x.type() == boolean ? x : not_equal(x, x.g->constant(0, x.type())); }
}  // namespace detail

// Returns sum(values weights) / sum(weights) since the reset; 0 if there were none.
constexpr metric mean(value values, const options& o = {}) {
  const auto scope = values.g->name_scope(detail::either(o.name, "mean"));
  return detail::mean_of(cast(values, detail::type_of(values, values, o)), o.weights, detail::itself);
}

// Returns how often prediction == label. Either both are classes of one shape, or one of the two is float logits [...,
// classes] beside integer or bool labels [...]: then the index of the largest logit is the prediction.
constexpr metric accuracy(value labels, value predictions, const options& o = {}) {
  graph& g = *labels.g;
  const auto scope = g.name_scope(detail::either(o.name, "accuracy"));
  const dtype type = detail::type_of(labels, predictions, o);
  if (is_float(labels.type()) && labels.dims().rank == predictions.dims().rank + 1) {
    const value logits = labels;
    labels = predictions, predictions = logits;
  }
  std::int64_t classes = std::numeric_limits<std::int64_t>::max();  // as many as predictions can tell apart
  if (is_float(predictions.type()) && predictions.dims().rank == labels.dims().rank + 1) {
    classes = predictions.dims()[predictions.dims().rank - 1];
    predictions = argmax(predictions);
  }
  if (!detail::same("accuracy", labels, predictions)) return {labels, labels, labels};
  if (is_float(predictions.type()) && !is_float(labels.type())) {
    g.refuse("accuracy: predictions of ", predictions.type(), " ", predictions.dims(), " beside labels of ",
             labels.type(),
             " of that shape are no classes; give cast(greater(p, 0.5), int32), or logits with one axis "
             "more");
    return {labels, labels, labels};
  }
  const dtype common = detail::type_of_classes(labels.type(), predictions.type(), classes);
  const value hit = equal(cast(predictions, common), cast(labels, common));
  return detail::mean_of(cast(hit, type), o.weights, detail::itself);
}

// Returns the mean of (labels - predictions)^2 since the reset, weighted.
constexpr metric mean_squared_error(value labels, value predictions, const options& o = {}) {
  const auto scope = labels.g->name_scope(detail::either(o.name, "mean_squared_error"));
  const dtype type = detail::type_of(labels, predictions, o);
  if (!detail::same("mean_squared_error", labels, predictions)) return {labels, labels, labels};
  const value p = cast(predictions, type), y = cast(labels, type);
  return detail::mean_of(squared_difference(p, y), o.weights, detail::itself);
}
// Returns the square root of that mean.
constexpr metric root_mean_squared_error(value labels, value predictions, const options& o = {}) {
  const auto scope = labels.g->name_scope(detail::either(o.name, "root_mean_squared_error"));
  const dtype type = detail::type_of(labels, predictions, o);
  if (!detail::same("root_mean_squared_error", labels, predictions)) return {labels, labels, labels};
  const value p = cast(predictions, type), y = cast(labels, type);
  const value squares = squared_difference(p, y);
  return detail::mean_of(squares, o.weights, [](value m) { return sqrt(m); });
}

namespace detail {
constexpr tally count_where(std::string_view name, value where, value weights, dtype type) {
  value n = cast(where, type);
  if (weights) n = n * spread(weights, where, type);
  return add_up(name, reduce_sum(n));
}
constexpr metric share_of(std::string_view name, value labels, value predictions, const options& o, bool recall) {
  const auto scope = labels.g->name_scope(either(o.name, name));
  if (!same(name, labels, predictions)) return {labels, labels, labels};
  const dtype type = type_of(labels, predictions, o);
  const value y = as_bool(labels), p = as_bool(predictions);
  const auto hit = count_where("true_positives", logical_and(p, y), o.weights, type);
  const auto miss = recall ? count_where("false_negatives", logical_and(logical_not(p), y), o.weights, type)
                           : count_where("false_positives", logical_and(p, logical_not(y)), o.weights, type);
  return read([](value n, value m) { return ratio(n, n + m); }, hit, miss);
}
}  // namespace detail

// Returns true positives / all predicted positive; 0 if there are none. Labels and predictions count as true where they
// are not 0.
constexpr metric precision(value labels, value predictions, const options& o = {}) {
  return detail::share_of("precision", labels, predictions, o, false);
}
// Returns true positives / all labelled positive; 0 if there are none.
constexpr metric recall(value labels, value predictions, const options& o = {}) {
  return detail::share_of("recall", labels, predictions, o, true);
}

namespace detail {
// The counts at every threshold [t]: p is predicted positive if p > threshold, strictly.
struct confusion {
  value label, above, weights;  // [1, n], [t, n], [1, n]
  dtype type;

  constexpr tally count(std::string_view name, bool predicted, bool labelled) const {
    const value p = predicted ? above : logical_not(above), y = labelled ? label : logical_not(label);
    value n = cast(logical_and(p, y), type);
    if (weights) n = n * weights;
    return add_up(name, reduce_sum(n, {-1}));
  }
};
constexpr value as_row(value x) { return reshape(x, {1, gradus::detail::product(x.dims(), 0)}); }
constexpr confusion confuse(value labels, value predictions, value thresholds, const options& o) {
  const dtype type = type_of(labels, predictions, o);
  const value p = as_row(check_between(predictions, 0, 1)), label = as_row(as_bool(labels));
  const value each = reshape(thresholds, {thresholds.dims().back(), 1});
  confusion c{label, greater(p, each), {}, type};
  if (o.weights) c.weights = as_row(spread(o.weights, predictions, type));
  return c;
}
constexpr value column_of(graph& g, const gradus::detail::seq<double>& numbers, dtype type) {
  return g.constant(numbers.first, static_cast<std::size_t>(numbers.count), {numbers.count}, type);
}
constexpr metric at_thresholds(std::string_view name, value labels, value predictions,
                               const metrics::thresholds& thresholds, const options& o, bool recall) {
  graph& g = *labels.g;
  const auto scope = g.name_scope(either(o.name, name));
  predictions = gradus::detail::as_float(predictions);
  if (!same(name, labels, predictions)) return {labels, labels, labels};
  if (thresholds.list.empty()) {
    g.refuse(name, ": needs at least 1 threshold");
    return {labels, labels, labels};
  }
  const auto c = confuse(labels, predictions, column_of(g, thresholds.list, predictions.type()), o);
  const auto hit = c.count("true_positives", true, true);
  const auto miss = recall ? c.count("false_negatives", false, true) : c.count("false_positives", true, false);
  return read([](value n, value m) { return n / (n + m + 1e-7); }, hit, miss);
}
}  // namespace detail

// Returns precision, TP / (TP + FP + 1e-7), at each of the thresholds [t]. Predictions are floats in [0, 1]; others are
// an error when the step runs.
constexpr metric precision_at_thresholds(value labels, value predictions, const metrics::thresholds& thresholds,
                                         const options& o = {}) {
  return detail::at_thresholds("precision_at_thresholds", labels, predictions, thresholds, o, false);
}
// Returns recall, TP / (TP + FN + 1e-7), at each of the thresholds [t], of the same predictions.
constexpr metric recall_at_thresholds(value labels, value predictions, const metrics::thresholds& thresholds,
                                      const options& o = {}) {
  return detail::at_thresholds("recall_at_thresholds", labels, predictions, thresholds, o, true);
}

enum class curve { roc, pr };
enum class summation { trapezoidal, minoring, majoring, careful_interpolation };

struct auc_options {
  value weights = {};
  int num_thresholds = 200;
  metrics::curve curve = metrics::curve::roc;
  metrics::summation summation_method = metrics::summation::trapezoidal;
  metrics::thresholds thresholds = {};  // inside (0, 1), in any order; if given, num_thresholds is not used
  std::string_view name = {};
  dtype type = dtype::none;  // of the counts and the area; none: float64 if an operand is, else float32
};

namespace detail {
// Returns -1e-7, 1 / (n - 1), ..., (n - 2) / (n - 1), 1 + 1e-7; or the given thresholds, sorted, between the same ends.
constexpr value auc_thresholds(graph& g, const auc_options& o, dtype type) {
  const double low = -1e-7, high = 1 + 1e-7;
  if (!o.thresholds.list.empty()) {
    gradus::detail::seq<double> sorted;
    sorted.push(low);
    for (double t : o.thresholds.list) {
      sorted.push(t);
      for (int i = sorted.count - 1; i > 1 && sorted[i] < sorted[i - 1]; --i) std::swap(sorted[i], sorted[i - 1]);
    }
    sorted.push(high);
    return column_of(g, sorted, type);
  }
  const int n = o.num_thresholds;
  const value i = range(g, n, float64);
  const value is_first = equal(i, g.constant(0, float64)), is_last = equal(i, g.constant(n - 1, float64));
  const value first = g.constant(low, float64), last = g.constant(high, float64), between = i / (n - 1.0);
  return cast(select(is_last, last, select(is_first, first, between)), type);
}
constexpr value but_last(value x) { return slice(x, {0}, {x.dims().back() - 1}); }
constexpr value but_first(value x) { return slice(x, {1}, {-1}); }
constexpr value area(value x, value y, summation method) {
  const value a = but_last(y), b = but_first(y);
  const value height = method == summation::minoring   ? minimum(a, b)
                       : method == summation::majoring ? maximum(a, b)
                                                       : (a + b) * 0.5;
  const value left = but_last(x), right = but_first(x), width = left - right;
  return reduce_sum(width * height);
}
// Davis, Goadrich, "The relationship between precision-recall and ROC curves", ICML 2006: true positives are
// interpolated between thresholds, precision is not.
constexpr value careful_area(value tp, value fp, value fn) {
  const value p = tp + fp, start = but_last(p), end = but_first(p), tp_start = but_last(tp), tp_end = but_first(tp);
  const value dtp = tp_start - tp_end, dp = start - end, slope = gradus::detail::divide_no_nan(dtp, maximum(dp, 0));
  const value rise = slope * end, intercept = tp_end - rise;
  const value starts = greater(start, 0), ends = greater(end, 0), some = logical_and(starts, ends);
  const value one = p.g->constant(1, p.type()), above = select(some, start, one), below = select(some, end, one);
  const value gained = slope * (dtp + intercept * log(above / below)), positives = tp_end + but_first(fn);
  return reduce_sum(gradus::detail::divide_no_nan(gained, positives));
}
}  // namespace detail

// Returns the area under the curve of recall over false positive rate (roc) or of precision over recall (pr), from
// counts at the thresholds. Labels count as positive where they are not 0; predictions are floats in [0, 1], and others
// are an error when the step runs. Constants of 1e-6 keep the rates finite: without positive labels the area is about
// 1.
constexpr metric auc(value labels, value predictions, const auc_options& o = {}) {
  graph& g = *labels.g;
  const auto scope = g.name_scope(detail::either(o.name, "auc"));
  predictions = gradus::detail::as_float(predictions);
  if (!detail::same("auc", labels, predictions)) return {labels, labels, labels};
  if (o.curve != curve::roc && o.curve != curve::pr) {
    g.refuse("auc: there is no curve ", static_cast<int>(o.curve));
    return {predictions, predictions, predictions};
  }
  if (o.summation_method < summation::trapezoidal || o.summation_method > summation::careful_interpolation) {
    g.refuse("auc: there is no summation method ", static_cast<int>(o.summation_method));
    return {predictions, predictions, predictions};
  }
  if (o.thresholds.list.empty() && o.num_thresholds < 2) {
    g.refuse("auc: needs at least 2 thresholds, got ", o.num_thresholds);
    return {predictions, predictions, predictions};
  }
  const value thresholds = detail::auc_thresholds(g, o, predictions.type());
  const auto c = detail::confuse(labels, predictions, thresholds, {.weights = o.weights, .type = o.type});
  const auto tp = c.count("true_positives", true, true), fn = c.count("false_negatives", false, true),
             fp = c.count("false_positives", true, false);
  const double e = 1e-6;
  const auto method = o.summation_method;
  if (o.curve == curve::roc) {
    const auto tn = c.count("true_negatives", false, false);
    return detail::read(
        [=](value hits, value misses, value alarms, value rejections) {
          const value x = alarms / (alarms + rejections + e), hit = hits + e, y = hit / (hits + misses + e);
          return detail::area(x, y, method);
        },
        tp, fn, fp, tn);
  }
  return detail::read(
      [=](value hits, value misses, value alarms) {
        if (method == summation::careful_interpolation) return detail::careful_area(hits, alarms, misses);
        const value hit = hits + e, recall = hit / (hits + misses + e), precision = hit / (hits + alarms + e);
        return detail::area(recall, precision, method);
      },
      tp, fn, fp);
}

}  // namespace metrics

// Accuracy, the metric of a classifier, can be called without `metrics::`: accuracy(logits, label).
using metrics::accuracy;

}  // namespace gradus
