#include <gradus/columns/embedding_column.hpp>
#include <gradus/columns/weighted_column.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

namespace {
const std::vector<float> some_table{3, 4, 1, 2, -6, 8, 0.5f, 0};  // [4, 2]
std::vector<float> looked_up(const embedding_column& c, const features& batch) {
  std::vector<float> out(static_cast<std::size_t>(batch.rows() * c.dimension()));
  c.look_up(some_table, batch, out);
  return out;
}
void check_near(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(double{got[i]} == doctest::Approx(want[i]).epsilon(1e-6));
}
}  // namespace

TEST_CASE("rows are combined by mean, sum and sqrtn; ids below 0 drop out, empty examples are zeros") {
  const auto id = categorical_column_with_identity("id", 4);
  const auto batch = batch_of(4, {ragged_ints("id", {{0, 2}, {}, {-1, 1, 1}, {-1}})});
  const embedding_column mean(id, 2);
  CHECK(mean.name() == "id_embedding");
  CHECK(mean.table_name() == "id_embedding");
  check_near(looked_up(mean, batch), {-1.5, 6, 0, 0, 1, 2, 0, 0});
  check_near(looked_up({id, 2, {.combiner = combiner::sum}}, batch), {-3, 12, 0, 0, 2, 4, 0, 0});
  const double root = std::sqrt(2.0);
  check_near(looked_up({id, 2, {.combiner = combiner::sqrtn}}, batch),
             {-3 / root, 12 / root, 0, 0, 2 / root, 4 / root, 0, 0});
}

TEST_CASE("weights count: with sum also those below 0, with mean and sqrtn only those above") {
  const auto id = weighted_categorical_column(categorical_column_with_identity("id", 4), "w");
  const auto batch = batch_of(
      3, {ragged_ints("id", {{0, 2}, {1, 2, 0}, {3, 3}}), ragged_floats("w", {{0.5f, 2}, {4, -1, 0}, {-1, 0}})});
  check_near(looked_up({id, 2}, batch), {(1.5 - 12) / 2.5, (2 + 16) / 2.5, 1, 2, 0, 0});
  check_near(looked_up({id, 2, {.combiner = combiner::sum}}, batch), {1.5 - 12, 2 + 16, 4 + 6, 8 - 8, -0.5, 0});
  const double root = std::sqrt(4.25);
  check_near(looked_up({id, 2, {.combiner = combiner::sqrtn}}, batch), {(1.5 - 12) / root, 18 / root, 1, 2, 0, 0});
  CHECK(embedding_column(id, 2).name() == "id_weighted_by_w_embedding");
}

TEST_CASE("rows longer than max_norm are scaled down to it before they are combined") {
  const auto batch = batch_of(1, {ragged_ints("id", {{0, 1, 2}})});
  const auto id = categorical_column_with_identity("id", 4);
  // Norms 5, sqrt 5, 10; at most 2.5.
  check_near(looked_up({id, 2, {.combiner = combiner::sum, .max_norm = 2.5}}, batch), {1.5 + 1 - 1.5, 2 + 2 + 2});
}

TEST_CASE("a table in parts: 13 rows in 5 are blocks of 3, 3, 3, 2 and 2") {
  const std::size_t part_of[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4};
  const std::int64_t row_of[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0, 1};
  for (std::int64_t id = 0; id < 13; ++id) {
    CHECK(block_of(id, 13, 5).part == part_of[id]);
    CHECK(block_of(id, 13, 5).row == row_of[id]);
  }
  std::vector<std::vector<float>> blocks(5);
  for (int id = 0; id < 13; ++id) blocks[part_of[id]].push_back(static_cast<float>(id * id));
  const embedding_table table({blocks.begin(), blocks.end()}, 13, 1);
  for (int id = 0; id < 13; ++id) CHECK(table[id][0] == static_cast<float>(id * id));
  CHECK(refusal_of([&] {
          embedding_table({blocks.begin(), blocks.end()}, 12, 1);
        }) == "embedding table [12, 1], part 2 of 5: expected 2 numbers, found 3");
  // More parts than rows: some are empty.
  CHECK(block_of(1, 2, 4).part == 1);
}

TEST_CASE("columns may share a table, named by all of them") {
  const auto a = categorical_column_with_identity("b", 4), b = categorical_column_with_identity("a", 4);
  const auto both = shared_embedding_columns({a, b}, 2, {.combiner = combiner::sum});
  REQUIRE(both.size() == 2);
  CHECK(both[0].name() == "b_shared_embedding");
  CHECK(both[1].name() == "a_shared_embedding");
  CHECK(both[0].table_name() == "a_b_shared_embedding");
  CHECK(both[1].table_name() == "a_b_shared_embedding");
  CHECK(both[1].options().combiner == combiner::sum);
  CHECK(shared_embedding_columns({a}, 2, {}, "things")[0].table_name() == "things");
  CHECK(refusal_of([&] {
          shared_embedding_columns({a, categorical_column_with_identity("c", 5)}, 2);
        }) == "shared_embedding_columns: expected columns of as many buckets, found 4 of \"b\" and 5 of \"c\"");
  CHECK(refusal_of([&] { shared_embedding_columns({}, 2); }) ==
        "shared_embedding_columns: expected columns, found none");
}

TEST_CASE("what an embedding column refuses") {
  const auto id = categorical_column_with_identity("id", 4);
  CHECK(refusal_of([&] { embedding_column(id, 0); }) ==
        "embedding_column \"id_embedding\": expected a dimension of at least 1, found 0");
  CHECK(refusal_of([&] { embedding_column(id, 2, {.ckpt_to_load_from = "runs/a"}); }) ==
        "embedding_column \"id_embedding\": expected both or none of ckpt_to_load_from and tensor_name_in_ckpt, found "
        "\"runs/a\" and \"\"");
  CHECK(refusal_of([&] { embedding_column(id, 2, {.tensor_name_in_ckpt = "t"}); }) ==
        "embedding_column \"id_embedding\": expected both or none of ckpt_to_load_from and tensor_name_in_ckpt, found "
        "\"\" and \"t\"");
  CHECK(refusal_of([&] { embedding_column(id, 2, {.max_norm = -1}); }) ==
        "embedding_column \"id_embedding\": expected a max_norm above 0, or 0 for none, found -1");
  CHECK(refusal_of([&] { embedding_column(id, 2, {.initializer = variance_scaling(0)}); }) ==
        "embedding_column \"id_embedding\": its initializer cannot be: variance_scaling needs a scale above 0");
  std::vector<float> out(2);
  const embedding_column c(id, 2);
  const auto batch = batch_of(1, {ragged_ints("id", {{1}})});
  CHECK(refusal_of([&] { c.look_up(std::span(some_table).first(6), batch, out); }) ==
        "embedding table [4, 2], part 0 of 1: expected 8 numbers, found 6");
  CHECK(refusal_of([&] { c.look_up(embedding_table(std::span(some_table).first(6), 3, 2), batch, out); }) ==
        "column \"id_embedding\": expected a table [4, 2], found [3, 2]");
  CHECK(refusal_of([&] { c.look_up(some_table, batch, std::span(out).first(1)); }) ==
        "look-up of 1 examples in rows of 2: expected room for 2 numbers, found 1");
  id_lists far;
  far.add(4), far.end_row();
  CHECK(refusal_of([&] {
          look_up_embeddings({some_table, 4, 2}, far, combiner::sum, 0, out);
        }) == "look-up: example 0 of the batch has id 4, but the table has 4 rows");
}
