#include <gradus/columns/categorical_column.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("identity: the value is the id, with a default or without") {
  const auto batch =
      batch_of(4, {ragged_ints("day", {{0, 6}, {}, {-1, 7, 3}, {-5}}), dense_ints("one", 1, {0, -1, 6, 2})});
  const auto by_default = categorical_column_with_identity("day", 7, {.default_value = 2});
  CHECK(by_default.name() == "day");
  CHECK(by_default.num_buckets() == 7);
  CHECK_FALSE(by_default.weighted());
  const id_lists ids = by_default.ids(batch);
  CHECK(ids.splits == id_list{0, 2, 2, 5, 6});
  CHECK(ids.ids == id_list{0, 6, 2, 2, 3, 2});
  // Below 0 is no id for a look-up; in a dense feature -1 is a missing value.
  CHECK(categorical_column_with_identity("day", 8).ids(batch).ids == id_list{0, 6, -1, 7, 3, -5});
  const id_lists one = categorical_column_with_identity("one", 7, {.default_value = 1}).ids(batch);
  CHECK(one.splits == id_list{0, 1, 1, 2, 3});
  CHECK(one.ids == id_list{0, 6, 2});
  CHECK(
      refusal_of([&] { categorical_column_with_identity("day", 7).ids(batch); }) ==
      "column \"day\": expected an id below 7, found 7; give more num_buckets, or a default_value for what is outside");
  CHECK(by_default.needs() == std::vector<feature_need>{{.key = "day", .kind = feature_kind::int64}});
}

TEST_CASE("hash buckets: FarmHash's fingerprint of the text, integers as their decimal text") {
  // Fingerprints as in tests/columns/fingerprint.cpp, from FarmHash's own code.
  const auto batch = batch_of(2, {ragged_texts("word", {{"hello", "abc"}, {""}}),
                                  dense_texts("two", 2, {"hello", "", "", "abc"}), ragged_ints("n", {{12345678}, {}})});
  const auto word = categorical_column_with_hash_bucket("word", 1000);
  CHECK(word.ids(batch).ids == id_list{static_cast<std::int64_t>(0xb48be5a931380ce8u % 1000),
                                       static_cast<std::int64_t>(0x24a5b3a074e7f369u % 1000),
                                       static_cast<std::int64_t>(0x9ae16a3b2f90404fu % 1000)});
  const id_lists two = categorical_column_with_hash_bucket("two", 1000).ids(batch);  // dense: "" is missing
  CHECK(two.splits == id_list{0, 1, 2});
  CHECK(two.ids == id_list{static_cast<std::int64_t>(0xb48be5a931380ce8u % 1000),
                           static_cast<std::int64_t>(0x24a5b3a074e7f369u % 1000)});
  CHECK(categorical_column_with_hash_bucket("n", 77, {.dtype = feature_kind::int64}).ids(batch).ids ==
        id_list{static_cast<std::int64_t>(0x2f99d2664a0fb6eau % 77)});
  CHECK(categorical_column_with_hash_bucket("word", 1).ids(batch).ids == id_list{0, 0, 0});  // as TensorFlow's code
}

TEST_CASE("hash buckets of TensorFlow's own tests") {
  // feature_column_test.py (TensorFlow 1.15): test_strings_should_be_hashed; test_sparse_bias.
  const auto batch = batch_of(2, {ragged_texts("wire", {{"omar"}, {"stringer", "marlo"}})});
  CHECK(categorical_column_with_hash_bucket("wire", 10).ids(batch).ids == id_list{6, 4, 1});
  CHECK(categorical_column_with_hash_bucket("wire", 4).ids(batch).ids == id_list{2, 0, 3});
}

TEST_CASE("settings and features that do not fit are refused") {
  CHECK(refusal_of([] { categorical_column_with_identity("x", 0); }) ==
        "categorical_column_with_identity \"x\": expected num_buckets of at least 1, found 0");
  CHECK(refusal_of([] { categorical_column_with_identity("x", 3, {.default_value = 3}); }) ==
        "categorical_column_with_identity \"x\": expected a default_value from 0 to 2, found 3");
  CHECK(refusal_of([] { categorical_column_with_identity("x", 3, {.default_value = -1}); }) ==
        "categorical_column_with_identity \"x\": expected a default_value from 0 to 2, found -1");
  CHECK(refusal_of([] { categorical_column_with_hash_bucket("x", 0); }) ==
        "categorical_column_with_hash_bucket \"x\": expected a hash_bucket_size of at least 1, found 0");
  CHECK(refusal_of([] { categorical_column_with_hash_bucket("", 4); }) ==
        "categorical_column_with_hash_bucket: expected the name of a feature, found \"\"");
  CHECK(refusal_of([] { categorical_column_with_hash_bucket("x", 4, {.dtype = feature_kind::float32}); }) ==
        "categorical_column_with_hash_bucket \"x\": expected dtype string or int64, found float32");
  const auto batch = batch_of(1, {dense_floats("x", 1, {1}), dense_ints("n", 1, {1})});
  CHECK(
      refusal_of([&] { categorical_column_with_identity("x", 4).ids(batch); }) ==
      "column \"x\": expected a feature of int64, found float32; set the column's dtype, or read the feature as that");
  CHECK(refusal_of([&] { categorical_column_with_hash_bucket("n", 4).ids(batch); }) ==
        "column \"n\": expected a feature of string, found int64; set the column's dtype, or read the feature as that");
  CHECK_THROWS_AS(categorical_column_with_hash_bucket("y", 4).ids(batch), not_found);
}
