// feature_columns turns a batch of features into the rows of a model's input, which consist of columns of numbers, side
// by side.
//
//   const feature_columns columns{numeric_column("age"),
//                                 indicator_column(categorical_column_with_vocabulary_list("sex", {"f", "m"})),
//                                 bucketized_column(numeric_column("hours"), {20, 40})};
//   columns.width();               // 1 + 2 + 3
//   columns.dense(batch, out);     // [rows, 6]: age, hours_bucketized, sex_indicator
//
// The columns are in the order of their names, as in TensorFlow's input_layer. Wrong settings and features that do not
// fit raise invalid_argument.
#pragma once
#include "../base/build.hpp"

#include <variant>

#include "../base/sort.hpp"
#include "crossed_column.hpp"
#include "embedding_column.hpp"
#include "numeric_column.hpp"
#include "vocabulary_column.hpp"
#include "weighted_column.hpp"

namespace gradus::inline GRADUS_BUILD {

// Gives num_buckets numbers: how often an example has each id, or, for a weighted column, the sum of the weights of
// each id. Ids below 0 are not counted. (TensorFlow refuses an id that comes twice in a weighted example.)
class indicator_column {
public:
  explicit indicator_column(categorical_column column) : column_(std::move(column)) {}
  std::string name() const { return column_.name() + "_indicator"; }
  std::int64_t width() const { return column_.num_buckets(); }
  const categorical_column& categorical() const { return column_; }

private:
  categorical_column column_;
};

// One of the columns that give numbers.
class dense_column {
public:
  dense_column(numeric_column c) : what_(std::move(c)) {}
  dense_column(bucketized_column c) : what_(std::move(c)) {}
  dense_column(indicator_column c) : what_(std::move(c)) {}
  dense_column(embedding_column c) : what_(std::move(c)) {}

  std::string name() const;
  // Returns how many numbers an example has.
  std::int64_t width() const;
  const numeric_column* numeric() const { return std::get_if<numeric_column>(&what_); }
  const embedding_column* embedding() const { return std::get_if<embedding_column>(&what_); }
  // Returns the column that gives the ids; null for a numeric column.
  const categorical_column* categorical() const;
  std::vector<feature_need> needs() const { return numeric() != nullptr ? numeric()->needs() : categorical()->needs(); }

  // Returns whether both give the same numbers (numeric_column::same_as), or take their ids from one column.
  bool same_as(const dense_column& other) const;

  // Writes the numbers of a batch, those of example r at out + r * stride. Raises invalid_argument for an embedding,
  // which needs a table.
  void read(const features& examples, float* out, std::int64_t stride) const;

private:
  std::variant<numeric_column, bucketized_column, indicator_column, embedding_column> what_;
};

namespace detail {
// Checks that there are columns, and, in a sorted list, that their names differ.
void check_columns(const auto& list, std::string_view what) {
  if (list.empty()) raise(status::invalid_argument, text(what, ": expected columns, found none"));
  for (std::size_t i = 1; i < list.size(); ++i)
    if (list[i].name() == list[i - 1].name())
      raise(status::invalid_argument, text(what, ": there are two columns \"", list[i].name(), "\"; keep one"));
}
void sort_columns(auto& list, std::string_view what) {
  sort_stably(list, [](const auto& a, const auto& b) { return a.name() < b.name(); });
  check_columns(list, what);
}
// Adds to `into` the features that columns read, each once, and marks those for which columns have two default values.
// Raises invalid_argument for a feature that columns want as two kinds.
void join_needs(std::vector<feature_need>& into, std::vector<feature_need> more);
}  // namespace detail

class feature_columns {
public:
  // Returns the table of an embedding_column.
  using table_source = std::function<embedding_table(const embedding_column&)>;

  feature_columns(std::initializer_list<dense_column> list) : feature_columns(std::vector<dense_column>(list)) {}
  explicit feature_columns(std::vector<dense_column> list);
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }
  std::int64_t width() const;
  // Returns the features that are read, each once. A parser of examples has to provide them.
  std::vector<feature_need> needs() const;

  // Writes a batch as numbers [rows, width()], float32. Embeddings take their tables from `table_of`.
  void dense(const features& examples, std::span<float> out, const table_source& table_of = {}) const;
  std::vector<float> dense(const features& examples, const table_source& table_of = {}) const;

private:
  std::vector<dense_column> list_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "feature_column.ipp"
#endif
