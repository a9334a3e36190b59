// An embedding column looks up a row of numbers for every id, and combines the rows of an example.
//
//   embedding_column word(categorical_column_with_hash_bucket("word", 1000), 16);
//   word.look_up(table, batch, out);                                   from a table [1000, 16] to `out` [rows, 16]
//   auto both = shared_embedding_columns({watched, wanted}, 16);       one table for two features
//
// In a graph the table is a variable that is trained: input_layer (feature_layers.hpp) or sparse_embedding
// (ops/embedding.hpp) makes it. It works as in tf.feature_column (TensorFlow 1.15). Errors are invalid_argument.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <optional>
#include <span>

#include "../ops/embedding.hpp"
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

struct embedding_column_options {
  gradus::combiner combiner = gradus::combiner::mean;
  std::optional<gradus::initializer> initializer = {};  // none: truncated_normal of deviation 1 / sqrt(dimension)
  // The checkpoint and the tensor from which train/warm_start_columns.hpp loads the table. Set both or none.
  std::string ckpt_to_load_from = {}, tensor_name_in_ckpt = {};
  double max_norm = 0;  // above 0: a row with a larger L2 norm is first scaled down to this norm
  bool trainable = true;
};

// The place of a row in a table that is partitioned by rows into contiguous blocks ("div"), the larger ones first: 13
// rows in 5 parts are blocks of 3, 3, 3, 2 and 2.
struct row_block {
  std::size_t part = 0;
  std::int64_t row = 0;  // in the part
};
constexpr row_block block_of(std::int64_t id, std::int64_t rows, std::size_t parts) {
  const auto n = static_cast<std::int64_t>(parts);
  const std::int64_t each = rows / n, larger = rows % n, in_larger = larger * (each + 1);
  if (id < in_larger) return {static_cast<std::size_t>(id / (each + 1)), id % (each + 1)};
  return {static_cast<std::size_t>(larger + (id - in_larger) / each), (id - in_larger) % each};
}

// This is a float32 table [rows, dimension] in one or several parts.
class embedding_table {
public:
  embedding_table(std::span<const float> whole, std::int64_t rows, std::int64_t dimension);
  embedding_table(std::vector<std::span<const float>> parts, std::int64_t rows, std::int64_t dimension);
  std::int64_t rows() const { return rows_; }
  std::int64_t dimension() const { return dimension_; }
  const float* operator[](std::int64_t id) const;

private:
  std::vector<std::span<const float>> parts_;
  std::int64_t rows_, dimension_;
};

// Looks up the rows of the ids of every example, combines them, and writes the results into `out` [examples,
// dimension]. It passes over ids below 0, and, unless the combiner is sum, over ids whose weight is 0 or less. An
// example without ids gives zeros. Raises invalid_argument for an id that the table does not have, and for another size
// of `out`.
void look_up_embeddings(const embedding_table& table, const id_lists& ids, combiner how, double max_norm,
                        std::span<float> out);

class embedding_column {
public:
  embedding_column(categorical_column column, std::int64_t dimension, embedding_column_options o = {});

  const std::string& name() const { return name_; }
  // Returns the scope of the table's variable in the scope of its layer: the variable is
  // "<table_name>/embedding_weights".
  const std::string& table_name() const { return table_; }
  const categorical_column& categorical() const { return column_; }
  std::int64_t dimension() const { return dimension_; }
  std::int64_t width() const { return dimension_; }
  const embedding_column_options& options() const { return o_; }

  // Looks up a batch in a table [num_buckets, dimension] of your own, and writes the result into `out` [rows,
  // dimension].
  void look_up(const embedding_table& table, const features& examples, std::span<float> out) const;
  void look_up(std::span<const float> table, const features& examples, std::span<float> out) const;

private:
  friend std::vector<embedding_column> shared_embedding_columns(const std::vector<categorical_column>&, std::int64_t,
                                                                const embedding_column_options&, std::string);
  embedding_column(std::string_view suffix, std::string table, categorical_column column, std::int64_t dimension,
                   embedding_column_options o);

  std::string name_, table_;
  categorical_column column_;
  std::int64_t dimension_;
  embedding_column_options o_;
};

// Returns columns that share one table. Each is called "<column>_shared_embedding". The table has the given name, or,
// without one, a name from the sorted names of all columns: "<a>_<b>_shared_embedding". Raises invalid_argument if the
// columns differ in num_buckets.
std::vector<embedding_column> shared_embedding_columns(const std::vector<categorical_column>& columns,
                                                       std::int64_t dimension, const embedding_column_options& o = {},
                                                       std::string shared_embedding_collection_name = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "embedding_column.ipp"
#endif
