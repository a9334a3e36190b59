#include <gradus/columns/parse_example_spec.hpp>

#include <gradus/input/example.hpp>
#include <gradus/input/parse_example.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("examples are parsed as columns want them, and become rows") {
  const auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});
  const auto day = weighted_categorical_column(categorical_column_with_identity("day", 3), "w");
  const feature_columns columns{numeric_column("age", {.default_value = {40}}), indicator_column(sex),
                                indicator_column(day), numeric_column("two", {.shape = {2}})};
  const example_spec spec = make_parse_example_spec(columns, {{"label", fixed_len_feature{{}, int64}}});
  REQUIRE(spec.entries().size() == 6);
  CHECK(spec.entries()[0].name == "age");
  CHECK(spec.entries()[0].may_be_missing);
  CHECK(spec.entries()[0].default_value.floats == std::vector<float>{40});
  CHECK(spec.entries()[4].dims == extents{2});
  CHECK_FALSE(spec.entries()[4].may_be_missing);

  example_builder a, b;
  a.add_floats("age", {30})
      .add_text("sex", {"m"})
      .add_ints("day", {2, 0})
      .add_floats("w", {0.5f, 2})
      .add_floats("two", {1, 2});
  a.add_ints("label", {1});
  b.add_text("sex", {"f", "f"}).add_floats("two", {3, 4}).add_ints("label", {0});
  const std::vector<std::string> records{
      std::string(reinterpret_cast<const char*>(a.bytes().data()), a.bytes().size()),
      std::string(reinterpret_cast<const char*>(b.bytes().data()), b.bytes().size())};
  const features batch = parse_example(records, spec);
  CHECK(columns.dense(batch) == std::vector<float>{30, 2, 0, 0.5f, 0, 1, 1, 2,  //
                                                   40, 0, 0, 0, 2, 0, 3, 4});
  CHECK(batch["label"].ints == id_list{1, 0});

  const feature_layout layout({.input_layer = {numeric_column("age", {.default_value = {40}})}, .linear_model = {day}});
  CHECK(make_parse_example_spec(layout).keys() == std::vector<std::string>{"age", "day", "w"});
  CHECK(refusal_of([&] {
          make_parse_example_spec(layout, {{"age", fixed_len_feature{}}});
        }) == "the feature \"age\" is wanted twice");
}

TEST_CASE("a feature with two default values is refused, since a parser can fill in only one") {
  const numeric_column filled("age", {.default_value = {40}}), other("age", {.default_value = {0}}), strict("age");
  for (const numeric_column& n : {other, strict}) {
    CHECK(refusal_of([&] {
            make_parse_example_spec(feature_columns{filled, bucketized_column(n, {18, 30})});
          }) ==
          "make_parse_example_spec: columns have different default values for the feature \"age\", and a parser "
          "can fill in only one; give them the same");
    CHECK_THROWS_AS(make_parse_example_spec(feature_layout({.input_layer = {n, bucketized_column(filled, {18})}})),
                    error_of<status::invalid_argument>);
  }
  CHECK(make_parse_example_spec(feature_columns{filled, bucketized_column(filled, {18, 30})}).keys() ==
        std::vector<std::string>{"age"});
  const feature_layout kept({.input_layer = {bucketized_column(filled, {18})}, .keep = {{"age", float32, {1}}}});
  CHECK(make_parse_example_spec(kept).entries()[0].default_value.floats == std::vector<float>{40});
}

TEST_CASE("records become the parts of a layout, one by one, with what it keeps") {
  const auto words = categorical_column_with_vocabulary_list("words", {"a", "b", "c"});
  const feature_layout layout(
      {.input_layer = {numeric_column("age", {.default_value = {40}}), embedding_column(words, 2)},
       .ids_of = {{"words", 3}},
       .keep = {{"label", int32, {}}, {"score", float32, {2}}}});
  example_builder e;
  e.add_text("words", {"c", "a"}).add_ints("label", {-7}).add_floats("score", {0.5f, 2});
  datum record, to(layout.parts());
  const auto bytes = e.bytes();
  std::memcpy(record.add("record", uint8, {static_cast<std::int64_t>(bytes.size())}).mutable_data(), bytes.data(),
              bytes.size());
  example_columns{layout}(record, to);
  detail::check_unit(to, layout.parts(), false, "example_columns");
  CHECK(to.value<float>("age") == 40);
  const auto ids = to.values<std::int64_t>("words/ids");
  CHECK(id_list(ids.begin(), ids.end()) == id_list{2, 0, -1});
  CHECK(to.value<std::int32_t>("label") == -7);
  CHECK(to.values<float>("score")[1] == 2);
  CHECK(refusal_of([&] {
          feature_layout text_kept({.input_layer = {numeric_column("age")}, .keep = {{"name", uint8, {4}}}});
          example_columns{text_kept};
        }) == "feature_layout keeps \"name\" as uint8; of features it can keep float32, int32 and int64");
  datum wrong;
  CHECK(refusal_of([&] {
          layout.write(
              batch_of(1, {dense_floats("age", 1, {1}), ragged_texts("words", {{}}), dense_floats("label", 1, {1})}),
              wrong);
        }) == "feature_layout keeps \"label\" as int32 [] of each example, found a feature of float32, [1]");
}
