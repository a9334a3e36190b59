// An embedding column gives a row of numbers for every id, and combines the rows of an example.
//
//   embedding_column word(categorical_column_with_hash_bucket("word", 1000), 16);
//   word.look_up(table, batch, out);                   a table that you have: [1000, 16] and a batch, to [rows, 16]
//   auto both = shared_embedding_columns({watched, wanted}, 16);                      one table for two features
//
// In a graph the table is a variable that is trained: input_layer (feature_layout.hpp), or sparse_embedding
// (ops/embedding.hpp). As tf.feature_column (TensorFlow 1.15). Errors are invalid_argument.
#pragma once
#include <cmath>
#include <optional>
#include <span>

#include "../ops/embedding.hpp"
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

struct embedding_column_options {
  gradus::combiner combiner = gradus::combiner::mean;
  std::optional<gradus::initializer> initializer = {};  // none: truncated_normal of deviation 1 / sqrt(dimension)
  // Where the table comes from, both or none: train/warm_start_columns.hpp loads it.
  std::string ckpt_to_load_from = {}, tensor_name_in_ckpt = {};
  double max_norm = 0;  // above 0: a row is first scaled down to this L2 norm if it is longer
  bool trainable = true;
};

// Of a table that is cut by rows into parts of contiguous blocks ("div"), the larger ones first: 13 rows in 5 parts are
// blocks of 3, 3, 3, 2 and 2.
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

// A table [rows, dimension] in one part or several, of float32.
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

// The rows of the ids of every example, combined, into `out` [examples, dimension]. Ids below 0 are passed over, and
// unless the combiner is sum also ids whose weight is 0 or less; an example without any gives zeros. Errors: an id that
// the table has not; another size of `out`.
void look_up_embeddings(const embedding_table& table, const id_lists& ids, combiner how, double max_norm,
                        std::span<float> out);

class embedding_column {
public:
  embedding_column(categorical_column column, std::int64_t dimension, embedding_column_options o = {});

  const std::string& name() const { return name_; }
  // The name of the table's variable below its layer's scope: "<this>/embedding_weights".
  const std::string& table_name() const { return table_; }
  const categorical_column& categorical() const { return column_; }
  std::int64_t dimension() const { return dimension_; }
  std::int64_t width() const { return dimension_; }
  const embedding_column_options& options() const { return o_; }

  // A batch, with a table [num_buckets, dimension] of your own, into `out` [rows, dimension].
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

// Columns with one table between them, each "<column>_shared_embedding". The table has the given name, or the sorted
// names of all: "<a>_<b>_shared_embedding". Error: the columns differ in num_buckets.
std::vector<embedding_column> shared_embedding_columns(const std::vector<categorical_column>& columns,
                                                       std::int64_t dimension, const embedding_column_options& o = {},
                                                       std::string shared_embedding_collection_name = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "embedding_column.ipp"
#endif
