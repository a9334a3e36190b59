#include <gradus/columns/weighted_column.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("a weighted column pairs each value with its weight; a missing value drops out with it") {
  const auto day = categorical_column_with_identity("day", 7);
  const auto column = weighted_categorical_column(day, "w");
  CHECK(column.name() == "day_weighted_by_w");
  CHECK(column.num_buckets() == 7);
  CHECK(column.weighted());
  CHECK(column.needs() == std::vector<feature_need>{{.key = "day", .kind = feature_kind::int64},
                                                    {.key = "w", .kind = feature_kind::float32}});

  const id_lists ragged =
      column.ids(batch_of(3, {ragged_ints("day", {{3, 5}, {}, {6}}), ragged_floats("w", {{0.5f, -2}, {}, {1.5f}})}));
  CHECK(ragged.splits == id_list{0, 2, 2, 3});
  CHECK(ragged.ids == id_list{3, 5, 6});
  CHECK(ragged.weights == std::vector<float>{0.5f, -2, 1.5f});

  const id_lists dense = column.ids(
      batch_of(2, {dense_ints("day", 3, {-1, 2, 4, 0, -1, -1}), dense_floats("w", 3, {9, 0, 0.25f, 2, 0, 0})}));
  CHECK(dense.splits == id_list{0, 2, 3});
  CHECK(dense.ids == id_list{2, 4, 0});
  CHECK(dense.weights == std::vector<float>{0, 0.25f, 2});

  // One dense and filled up, the other not.
  const id_lists mixed =
      column.ids(batch_of(2, {ragged_ints("day", {{3}, {2, 1}}), dense_floats("w", 3, {2, 0, 0, 4, 5, 0})}));
  CHECK(mixed.weights == std::vector<float>{2, 4, 5});
  CHECK(column.ids(batch_of(1, {dense_ints("day", 2, {3, -1}), ragged_floats("w", {{8}})})).weights ==
        std::vector<float>{8});
  // Whole weights.
  const auto counted = weighted_categorical_column(day, "n", {.dtype = feature_kind::int64});
  CHECK(counted.ids(batch_of(1, {ragged_ints("day", {{3}}), ragged_ints("n", {{7}})})).weights ==
        std::vector<float>{7});
}

TEST_CASE("weights that do not fit are refused") {
  const auto day = categorical_column_with_identity("day", 7);
  const auto column = weighted_categorical_column(day, "w");
  CHECK(refusal_of([&] { weighted_categorical_column(day, ""); }) ==
        "weighted_categorical_column: expected the name of a feature, found \"\"");
  CHECK(refusal_of([&] { weighted_categorical_column(day, "w", {.dtype = feature_kind::text}); }) ==
        "weighted_categorical_column \"day_weighted_by_w\": expected weights of dtype float32 or int64, found string");
  CHECK(refusal_of([&] { weighted_categorical_column(column, "v"); }) ==
        "weighted_categorical_column: expected a column without weights, found \"day_weighted_by_w\"; multiply the two "
        "features");
  CHECK(refusal_of([&] {
          column.ids(batch_of(1, {ragged_ints("day", {{3}}), ragged_ints("w", {{7}})}));
        }) == "column \"day_weighted_by_w\": expected weights of float32, found int64; set the column's dtype");
  CHECK(refusal_of([&] {
          column.ids(batch_of(2, {ragged_ints("day", {{3}, {2, 1}}), ragged_floats("w", {{7}, {8}})}));
        }) ==
        "column \"day_weighted_by_w\": example 1 of the batch has 2 values and 1 weights; expected a weight for each "
        "value");
  CHECK(refusal_of([&] {
          column.ids(batch_of(1, {ragged_ints("day", {{3}}), ragged_floats("w", {{7, 8}})}));
        }) ==
        "column \"day_weighted_by_w\": example 0 of the batch has 1 values and 2 weights; expected a weight for each "
        "value");
  CHECK_THROWS_AS(column.ids(batch_of(1, {ragged_ints("day", {{3}})})), not_found);
}
