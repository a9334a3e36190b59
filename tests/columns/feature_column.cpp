#include <gradus/columns/feature_column.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("columns become rows of numbers, in the order of their names") {
  const auto batch = batch_of(3, {dense_floats("hours", 1, {40, 10, 20}), dense_ints("age", 1, {30, 40, 50}),
                                  ragged_texts("sex", {{"m"}, {"f", "f"}, {"x"}}),
                                  ragged_ints("day", {{1}, {0, 1}, {}}), ragged_floats("w", {{0.5f}, {2, 3}, {}})});
  const auto day = categorical_column_with_identity("day", 2);
  const feature_columns columns{
      numeric_column("age", {.normalizer_fn = [](float v) { return v / 10; }}),
      indicator_column(categorical_column_with_vocabulary_list("sex", {"f", "m"})),
      bucketized_column(numeric_column("hours"), {20, 40}),
      indicator_column(weighted_categorical_column(day, "w")),
  };
  std::vector<std::string> names;
  for (const auto& c : columns) names.push_back(c.name());
  CHECK(names == std::vector<std::string>{"age", "day_weighted_by_w_indicator", "hours_bucketized", "sex_indicator"});
  CHECK(columns.width() == 8);
  CHECK(columns.dense(batch) == std::vector<float>{3, 0, 0.5f, 0, 0, 1, 0, 1,  //
                                                   4, 2, 3,    1, 0, 0, 2, 0,  // "f" twice
                                                   5, 0, 0,    0, 1, 0, 0, 0});
  std::vector<std::string> keys;
  for (const auto& n : columns.needs()) keys.push_back(n.key);
  CHECK(keys == std::vector<std::string>{"age", "day", "w", "hours", "sex"});
}

TEST_CASE("an embedding among them takes its table") {
  const auto id = categorical_column_with_identity("id", 2);
  const feature_columns columns{numeric_column("z"), embedding_column(id, 2), numeric_column("a")};
  const auto batch =
      batch_of(2, {dense_floats("a", 1, {1, 2}), dense_floats("z", 1, {8, 9}), ragged_ints("id", {{0, 1}, {}})});
  const std::vector<float> table{10, 20, 30, 40};
  const auto out = columns.dense(batch, [&](const embedding_column& c) {
    CHECK(c.table_name() == "id_embedding");
    return embedding_table(table, 2, 2);
  });
  CHECK(out == std::vector<float>{1, 20, 30, 8, 2, 0, 0, 9});
  CHECK(refusal_of([&] { columns.dense(batch); }) ==
        "column \"id_embedding\": its numbers are in a table; give the table");
}

TEST_CASE("what a row of columns refuses") {
  CHECK(refusal_of([] { feature_columns{}; }) == "feature_columns: expected columns, found none");
  CHECK(refusal_of([] {
          feature_columns{numeric_column("a"), numeric_column("b"), numeric_column("a")};
        }) == "feature_columns: there are two columns \"a\"; keep one");
  const feature_columns columns{numeric_column("a")};
  std::vector<float> out(3);
  CHECK(refusal_of([&] {
          columns.dense(batch_of(2, {dense_floats("a", 1, {1, 2})}), out);
        }) == "feature_columns: 2 examples of 1 numbers: expected room for 2, found 3");
  const feature_columns both{numeric_column("a"), indicator_column(categorical_column_with_hash_bucket("a", 5))};
  CHECK(refusal_of([&] { both.needs(); }) ==
        "columns want the feature \"a\" as float32 [1], and as string, any number of them; let a map copy the feature "
        "under another name for one of them, or, in a cross, take a column of it (bucketized_column, "
        "categorical_column_with_identity) in place of its name");
}
