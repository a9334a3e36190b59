#include <gradus/columns/numeric_column.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

namespace {
std::vector<float> read_all(const numeric_column& c, const features& batch) {
  std::vector<float> out(static_cast<std::size_t>(batch.rows() * c.width()));
  for (std::int64_t r = 0; r < batch.rows(); ++r) c.read(batch, r, out.data() + r * c.width());
  return out;
}
}  // namespace

TEST_CASE("a numeric column gives numbers as they are, normalized, or the default") {
  const auto batch =
      batch_of(2, {dense_floats("x", 2, {1, 2, 3, 4}), dense_ints("n", 1, {5, -6}), ragged_floats("r", {{}, {7, 8}})});
  CHECK(read_all(numeric_column("x", {.shape = {2}}), batch) == std::vector<float>{1, 2, 3, 4});
  CHECK(read_all(numeric_column("n"), batch) == std::vector<float>{5, -6});
  CHECK(read_all(numeric_column("r", {.shape = {2}, .default_value = {-1}}), batch) ==
        std::vector<float>{-1, -1, 7, 8});
  // The normalizer also sees the default.
  const auto shifted = [](float v) { return (v - 3) * 2; };
  CHECK(read_all(numeric_column("r", {.shape = {2}, .default_value = {1, 5}, .normalizer_fn = shifted}), batch) ==
        std::vector<float>{-4, 4, 8, 10});
  CHECK(read_all(numeric_column("absent", {.default_value = {9}}), batch) == std::vector<float>{9, 9});
  const numeric_column square("s", {.shape = {2, 3}, .default_value = {1}});
  CHECK(square.width() == 6);
  CHECK(square.needs() ==
        std::vector<feature_need>{
            {.key = "s", .kind = feature_kind::float32, .ragged = false, .dims = {2, 3}, .default_value = {1}}});
}

TEST_CASE("what a numeric column refuses") {
  CHECK(refusal_of([] { numeric_column(""); }) == "numeric_column: expected the name of a feature, found \"\"");
  CHECK(refusal_of([] {
          numeric_column("x", {.shape = {2, 0}});
        }) == "numeric_column \"x\": expected extents of at least 1, found shape [2, 0]");
  CHECK(refusal_of([] {
          numeric_column("x", {.shape = {3}, .default_value = {1, 2}});
        }) == "numeric_column \"x\": expected 1 or 3 default values, found 2");
  const auto batch =
      batch_of(2, {dense_floats("x", 2, {1, 2, 3, 4}), dense_texts("t", 1, {"1", "2"}), ragged_floats("r", {{3}, {}})});
  CHECK(refusal_of([&] { read_all(numeric_column("x"), batch); }) ==
        "column \"x\": expected 1 numbers in each example, found 2 of float32 in example 0 of the batch; give the "
        "column's shape or a default_value");
  CHECK(refusal_of([&] { read_all(numeric_column("t"), batch); }) ==
        "column \"t\": expected 1 numbers in each example, found 1 of string in example 0 of the batch; give the "
        "column's shape or a default_value");
  CHECK(refusal_of([&] { read_all(numeric_column("r"), batch); }) ==
        "column \"r\": expected 1 numbers in each example, found 0 of float32 in example 1 of the batch; give the "
        "column's shape or a default_value");
  CHECK_THROWS_AS(read_all(numeric_column("absent"), batch), not_found);
}

TEST_CASE("buckets are closed on the left, and each number of an example has buckets of its own") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const bucketized_column by(numeric_column("x"), {0, 10, 20});
  CHECK(by.name() == "x_bucketized");
  CHECK(by.num_buckets() == 4);
  const float below_10 = std::nextafter(10.0f, 0.0f);
  const id_lists ids = by.ids(batch_of(8, {dense_floats("x", 1, {-1, 0, below_10, 10, 19, 20, inf, -inf})}));
  CHECK(ids.ids == id_list{0, 1, 1, 2, 2, 3, 3, 0});
  CHECK(ids.rows() == 8);
  CHECK(bucketized_column(numeric_column("x"), {5}).ids(batch_of(1, {dense_floats("x", 1, {std::nanf("")})})).ids ==
        id_list{1});

  const bucketized_column two(numeric_column("x", {.shape = {2}, .normalizer_fn = [](float v) { return v + 1; }}),
                              {0, 1});
  CHECK(two.num_buckets() == 6);
  // After the normalizer -1 .5 and .5 1: feature_column_test.py's example (TensorFlow 1.15), ids 0 4, 1 5.
  CHECK(two.ids(batch_of(2, {dense_floats("x", 2, {-2, -0.5f, -0.5f, 0})})).ids == id_list{0, 4, 1, 5});
}

TEST_CASE("what a bucketized column refuses") {
  CHECK(refusal_of([] {
          bucketized_column(numeric_column("x", {.shape = {2, 2}}), {1});
        }) == "bucketized_column \"x_bucketized\": expected a numeric_column of one axis, found shape [2, 2]");
  CHECK(refusal_of([] { bucketized_column(numeric_column("x"), {}); }) ==
        "bucketized_column \"x_bucketized\": expected boundaries, found none");
  CHECK(refusal_of([] {
          bucketized_column(numeric_column("x"), {1, 2, 2});
        }) == "bucketized_column \"x_bucketized\": expected boundaries that rise, found 2 at place 2");
  CHECK(refusal_of([] {
          bucketized_column(numeric_column("x"), {2, 1});
        }) == "bucketized_column \"x_bucketized\": expected boundaries that rise, found 1 at place 1");
}
