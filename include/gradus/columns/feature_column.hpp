// A row of a model's input consists of columns of numbers, one beside the other.
//
//   const feature_columns columns{numeric_column("age"),
//                                 indicator_column(categorical_column_with_vocabulary_list("sex", {"f", "m"})),
//                                 bucketized_column(numeric_column("hours"), {20, 40})};
//   columns.width();               // 1 + 2 + 3
//   columns.dense(batch, out);     // [rows, 6]: age, hours_bucketized, sex_indicator
//
// Columns stand in the order of their names, as in TensorFlow's input_layer. Errors are invalid_argument.
#pragma once
#include <variant>

#include "../base/sort.hpp"
#include "crossed_column.hpp"
#include "embedding_column.hpp"
#include "numeric_column.hpp"
#include "vocabulary_column.hpp"
#include "weighted_column.hpp"

namespace gradus::inline GRADUS_BUILD {

// How often an example has each id, as num_buckets numbers; of a weighted column the sum of the weights. Ids below 0
// count nowhere. (TensorFlow refuses an id that is twice in a weighted example.)
class indicator_column {
public:
  explicit indicator_column(categorical_column column) : column_(std::move(column)) {}
  std::string name() const { return column_.name() + "_indicator"; }
  std::int64_t width() const { return column_.num_buckets(); }
  const categorical_column& categorical() const { return column_; }

private:
  categorical_column column_;
};

// One of the columns that are numbers.
class dense_column {
public:
  dense_column(numeric_column c) : what_(std::move(c)) {}
  dense_column(bucketized_column c) : what_(std::move(c)) {}
  dense_column(indicator_column c) : what_(std::move(c)) {}
  dense_column(embedding_column c) : what_(std::move(c)) {}

  std::string name() const;
  // Numbers in an example.
  std::int64_t width() const;
  const numeric_column* numeric() const { return std::get_if<numeric_column>(&what_); }
  const embedding_column* embedding() const { return std::get_if<embedding_column>(&what_); }
  // Of all but a numeric column: the ids under it.
  const categorical_column* categorical() const;
  std::vector<feature_need> needs() const { return numeric() != nullptr ? numeric()->needs() : categorical()->needs(); }

  // The numbers of a batch, those of example r at out + r * stride; not of an embedding, which needs a table.
  void read(const features& examples, float* out, std::int64_t stride) const;

private:
  std::variant<numeric_column, bucketized_column, indicator_column, embedding_column> what_;
};

// Names all of which differ.
namespace detail {
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
// The features that columns read, each once. Error: one that columns want as two kinds.
void join_needs(std::vector<feature_need>& into, std::vector<feature_need> more);
}  // namespace detail

class feature_columns {
public:
  // The table of an embedding_column.
  using table_source = std::function<embedding_table(const embedding_column&)>;

  feature_columns(std::initializer_list<dense_column> list) : feature_columns(std::vector<dense_column>(list)) {}
  explicit feature_columns(std::vector<dense_column> list);
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }
  std::int64_t width() const;
  // Returns the features that are read, each once: what a parser of examples has to give.
  std::vector<feature_need> needs() const;

  // A batch as numbers [rows, width()], float32. Embeddings take their tables from `table_of`.
  void dense(const features& examples, std::span<float> out, const table_source& table_of = {}) const;
  std::vector<float> dense(const features& examples, const table_source& table_of = {}) const;

private:
  std::vector<dense_column> list_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "feature_column.ipp"
#endif
