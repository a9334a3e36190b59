#include <gradus/columns/crossed_column.hpp>
#include <gradus/columns/embedding_column.hpp>
#include <gradus/columns/numeric_column.hpp>
#include <gradus/columns/weighted_column.hpp>

#include <doctest/doctest.h>

#include <set>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("crosses have the ids that TensorFlow's own tests expect") {
  const bucketized_column b(numeric_column("a", {.shape = {2}}), {0, 1});
  const auto batch =
      batch_of(2, {dense_floats("a", 2, {-1, 0.5f, 0.5f, 1}), ragged_texts("c", {{"cA"}, {"cB", "cC"}}),
                   ragged_texts("d1", {{"d1A"}, {"d1B", "d1C"}}), ragged_texts("d2", {{"d2A"}, {"d2B", "d2C"}})});
  // feature_column_test.py (TensorFlow 1.15): test_get_sparse_tensors_simple
  const auto simple = crossed_column({b, "c"}, 5, {.hash_key = 5});
  CHECK(simple.name() == "a_bucketized_X_c");
  CHECK(simple.num_buckets() == 5);
  const id_lists ids = simple.ids(batch);
  CHECK(ids.splits == id_list{0, 2, 6});
  CHECK(ids.ids == id_list{1, 0, 1, 3, 4, 2});
  // ... test_get_sparse_tensors: a cross within a cross is taken apart
  const auto nested = crossed_column({b, "c", crossed_column({"d1", "d2"}, 10)}, 15, {.hash_key = 5});
  CHECK(nested.name() == "a_bucketized_X_c_X_d1_X_d2");
  const id_lists all = nested.ids(batch);
  CHECK(all.splits == id_list{0, 2, 18});
  CHECK(all.ids == id_list{6, 14, 0, 13, 8, 8, 10, 12, 2, 0, 1, 9, 8, 12, 2, 0, 10, 11});
  std::vector<std::string> keys;
  for (const auto& n : nested.needs()) keys.push_back(n.key);
  CHECK(keys == std::vector<std::string>{"a", "c", "d1", "d2"});

  // sparse_cross_op_test.py: test_hashed_no_hash_key, test_hashed_output
  const auto three = batch_of(1, {ragged_texts("x", {{"batch1-FC1-F1"}}), ragged_texts("y", {{"batch1-FC2-F1"}}),
                                  ragged_texts("z", {{"batch1-FC3-F1"}})});
  CHECK(crossed_column({"x", "y", "z"}, 100).ids(three).ids == id_list{83});
  CHECK(crossed_column({"x", "y", "z"}, 100, {.hash_key = 0xDECAFCAFFE + 1}).ids(three).ids == id_list{31});
}

TEST_CASE("a cross is a product: of all combinations, of none if one has no value") {
  const auto batch =
      batch_of(3, {ragged_texts("x", {{"a", "b", "c"}, {"a"}, {}}), ragged_texts("y", {{"k"}, {}, {"k"}}),
                   ragged_texts("z", {{"p", "q"}, {"p"}, {"p"}})});
  const id_lists ids = crossed_column({"x", "y", "z"}, 1000).ids(batch);
  CHECK(ids.splits == id_list{0, 6, 6, 6});
  CHECK(std::set<std::int64_t>(ids.ids.begin(), ids.ids.end()).size() == 6);
}

TEST_CASE("integers enter as themselves, dense features behind the others and with what is missing elsewhere") {
  const auto chained = [](std::initializer_list<std::uint64_t> prints) {
    std::uint64_t h = 0xDECAFCAFFE;
    for (const auto p : prints) h = chain_fingerprints(h, p);
    return static_cast<std::int64_t>(h % 1000);
  };
  const auto batch = batch_of(1, {dense_ints("n", 2, {3, -1}), ragged_texts("t", {{"v"}}), dense_texts("d", 1, {""})});
  const auto v = fingerprint64("v"), none = fingerprint64("");
  CHECK(crossed_column({"n", "t"}, 1000).ids(batch).ids == id_list{chained({v, 3}), chained({v, ~std::uint64_t{0}})});
  CHECK(crossed_column({"d", "t"}, 1000).ids(batch).ids == id_list{chained({v, none})});
  // Of a column, what is missing is no id.
  CHECK(crossed_column({"t", categorical_column_with_identity("n", 9)}, 1000).ids(batch).ids ==
        id_list{chained({v, 3})});
}

TEST_CASE("what a cross refuses") {
  CHECK(refusal_of([] { crossed_column({"x"}, 10); }) == "crossed_column: expected at least 2 keys, found 1");
  CHECK(refusal_of([] {
          crossed_column({"x", "y"}, 0);
        }) == "crossed_column: expected a hash_bucket_size of at least 1, found 0");
  CHECK(refusal_of([] {
          crossed_column({"x", ""}, 10);
        }) == "crossed_column: expected the name of a feature, found \"\"");
  CHECK(
      refusal_of([] {
        crossed_column({"x", categorical_column_with_hash_bucket("y", 5)}, 10);
      }) ==
      "crossed_column: expected no column that is hashed already, found \"y\"; give the name of its feature, which is "
      "hashed here");
  CHECK(refusal_of([] {
          crossed_column({"x", weighted_categorical_column(categorical_column_with_identity("y", 5), "w")}, 10);
        }) == "crossed_column: expected columns without weights, found \"y_weighted_by_w\"");
  const auto batch = batch_of(1, {dense_floats("f", 1, {1}), dense_texts("t", 1, {"a"})});
  CHECK(refusal_of([&] {
          crossed_column({"t", "f"}, 10).ids(batch);
        }) ==
        "crossed column \"f_X_t\": expected string or int64, found \"f\" of float32; cross a bucketized_column of it");
}

TEST_CASE("the crosses of one example have a limit outside of graphs too") {
  const std::vector<std::string> many(1 << 11, "x"), half(1 << 10, "x"), few(1 << 9, "x");
  const auto all = crossed_column({"a", "b"}, 10);
  const auto batch = batch_of(1, {ragged_texts("a", {many}), ragged_texts("b", {half})});
  const auto refusal = text("column \"a_X_b\": example 0 of the batch has more than ", 1 << 20,
                            " crosses; give more room (id_lists::most; ids_per_example or ids_of of a feature_layout)");
  CHECK(refusal_of([&] { all.ids(batch); }) == refusal);
  CHECK(refusal_of([&] { weighted_categorical_column(all, "w").ids(batch); }) == refusal);
  const std::vector<float> table(10, 1.0f);
  float out[1];
  CHECK(refusal_of([&] { embedding_column(all, 1).look_up(table, batch, out); }) == refusal);
  CHECK(all.ids(batch_of(1, {ragged_texts("a", {many}), ragged_texts("b", {few})})).ids.size() == 1 << 20);
  id_lists roomy;
  roomy.most = 1 << 21;
  all.ids(batch, roomy);
  CHECK(roomy.ids.size() == 1 << 21);
}
