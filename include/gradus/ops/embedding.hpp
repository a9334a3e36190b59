// These ops combine rows of a table, for an example with several ids of a categorical feature.
//
//   auto ids = g.placeholder("words/ids", {batch, 8}, int64);       // padded with -1
//   auto table = g.variable("table", {1000, 16});
//   auto sum = embedding_lookup_sparse(table, ids, {.combiner = combiner::sum});            // [batch, 16]
//   auto words = sparse_embedding(ids, {.name = "words_embedding", .num_buckets = 1000, .dimension = 16});
//   auto wide = sparse_linear(ids, {.name = "words", .num_buckets = 1000});                 // [batch, 1]
//
// They are composed of gather and arithmetic, so that the gradient is sparse: it has the rows that were read.
#pragma once
#include "../base/build.hpp"

#include <optional>

#include "arrange.hpp"
#include "clip.hpp"
#include "gather.hpp"

namespace gradus::inline GRADUS_BUILD {

// sum = sum w e; mean = sum w e / sum w; sqrtn = sum w e / sqrt(sum w^2).
enum class combiner : int { mean, sqrtn, sum };
constexpr std::string_view name_of(combiner c) {
  return c == combiner::mean ? "mean" : c == combiner::sqrtn ? "sqrtn" : "sum";
}

struct sparse_lookup_options {
  gradus::combiner combiner = gradus::combiner::mean;
  value weights = {};   // like the ids, of the table's dtype; none: all 1
  double max_norm = 0;  // above 0: every row is first scaled down to this L2 norm if it is longer
};

// Returns the rows params[id] of the table params [n, dim], combined for each example: ids [..., k] to [..., dim]. An
// id below 0 stands for no id; an id whose weight is 0 or less takes no part either, unless the combiner is sum. An
// example without ids gives zeros. As TensorFlow's safe_embedding_lookup_sparse with its default_id None, on ids that
// are padded.
//
// In place of an id that takes no part, a row that the example reads anyway (or row 0) is read with weight 0: so the
// sparse gradient names no other rows, except row 0 for an example without such ids, as TensorFlow's does.
constexpr value embedding_lookup_sparse(value params, value ids, const sparse_lookup_options& o = {}) {
  graph& g = *ids.g;
  const shape table = params.dims(), s = ids.dims();
  if (table.rank != 2 || s.rank == 0 || !detail::is_index(ids.type()) || !is_float(params.type())) {
    g.refuse(
        "embedding_lookup_sparse: needs a table [n, dim] of float32 or float64 and ids [..., k] of int32 or int64, "
        "got ",
        table, " of ", params.type(), " and ", s, " of ", ids.type());
    return params;
  }
  if (o.weights && (!(o.weights.dims() == s) || o.weights.type() != params.type())) {
    g.refuse("embedding_lookup_sparse: needs weights like the ids, ", s, " of ", params.type(), ", got ",
             o.weights.dims(), " of ", o.weights.type());
    return params;
  }
  const auto scope = g.name_scope("embedding_lookup_sparse");
  const auto zero = [&](dtype t) { return g.constant(0, t); };
  const int last = s.rank - 1;
  const value known = greater_equal(ids, zero(ids.type()));
  // An id without a weight takes no part in a mean: it is in no gradient either.
  const bool prunes = o.weights && o.combiner != combiner::sum;
  const value used = prunes ? logical_and(known, greater(o.weights, zero(params.type()))) : known;
  const value read = prunes ? select(used, ids, g.constant(-1, ids.type())) : ids;
  // The stand-in is the largest id, or row 0. Written so, it is one loop over the ids.
  const value largest = detail::reduce(cards::max, read, 1 << last, true), lowest = zero(ids.type());
  value rows = gather(params, maximum(select(less(read, lowest), largest, read), lowest));
  if (o.max_norm > 0) {
    const int axis[] = {s.rank};
    rows = clip::by_norm(rows, o.max_norm, axis);
  }
  const value weight = o.weights ? select(used, o.weights, zero(params.type())) : cast(known, params.type());
  value out = detail::reduce(cards::sum, rows * expand_dims(weight, -1), 1 << last, false);
  if (o.combiner == combiner::sum) return out;
  const bool mean = o.combiner == combiner::mean;
  const value total = detail::reduce(cards::sum, mean ? weight : square(weight), 1 << last, true);
  const value any = greater(total, zero(params.type())), safe = select(any, total, g.constant(1, params.type()));
  return out / (mean ? safe : sqrt(safe));
}

// Returns the default initializer of an embedding's table.
constexpr initializer embedding_start(int dimension) {
  return truncated_normal(0, static_cast<float>(1 / portable_math::sqrt(static_cast<double>(dimension))));
}

struct sparse_embedding_options {
  std::string_view name = "embedding";  // of the column: "words_embedding"
  int num_buckets = 0;                  // rows of the table: the number of different ids
  int dimension = 0;
  gradus::combiner combiner = gradus::combiner::mean;
  value weights = {};
  double max_norm = 0;
  std::optional<gradus::initializer> initializer = {};  // none: embedding_start, deviation 1 / sqrt(dimension)
  bool trainable = true;
  dtype type = float32;
};
// Makes the variable "<scope>/<name>/embedding_weights" [num_buckets, dimension] and looks the ids up in it by
// embedding_lookup_sparse. As TensorFlow's embedding_column in an input layer, where the scope is "input_layer".
constexpr value sparse_embedding(value ids, const sparse_embedding_options& o) {
  graph& g = *ids.g;
  if (o.num_buckets <= 0 || o.dimension <= 0) {
    g.refuse("sparse_embedding \"", o.name, "\": needs num_buckets > 0 and dimension > 0, got ", o.num_buckets, ", ",
             o.dimension);
    return ids;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const value table = g.variable("embedding_weights", {o.num_buckets, o.dimension},
                                 {.init = o.initializer ? *o.initializer : embedding_start(o.dimension),
                                  .trainable = o.trainable,
                                  .type = o.type});
  return embedding_lookup_sparse(table, ids, {.combiner = o.combiner, .weights = o.weights, .max_norm = o.max_norm});
}

struct sparse_linear_options {
  std::string_view name = "linear";  // of the column: "words"
  int num_buckets = 0;
  int units = 1;
  gradus::combiner combiner = gradus::combiner::sum;
  value weights = {};
  bool trainable = true;
  dtype type = float32;
};
// Returns what a categorical column adds in a linear model: the combined rows of the variable "<scope>/<name>/weights"
// [num_buckets, units], which starts from zeros. As in TensorFlow's linear_model, where the scope is "linear_model" and
// one "bias_weights" [units] is added to the sum of all columns.
constexpr value sparse_linear(value ids, const sparse_linear_options& o) {
  graph& g = *ids.g;
  if (o.num_buckets <= 0 || o.units <= 0) {
    g.refuse("sparse_linear \"", o.name, "\": needs num_buckets > 0 and units > 0, got ", o.num_buckets, ", ", o.units);
    return ids;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const value table =
      g.variable("weights", {o.num_buckets, o.units}, {.init = zeros, .trainable = o.trainable, .type = o.type});
  return embedding_lookup_sparse(table, ids, {.combiner = o.combiner, .weights = o.weights});
}

}  // namespace gradus
