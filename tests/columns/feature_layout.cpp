#include <gradus/columns/feature_layout.hpp>
#include <gradus/columns/parse_example_spec.hpp>
#include <gradus/input/batch.hpp>
#include <gradus/input/map.hpp>
#include <gradus/input/memory.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "../message.hpp"
#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

namespace {
// Text as data has it: bytes along the last axis, filled up with zeros.
void put_texts(datum& d, std::string_view name, std::initializer_list<std::string_view> list, std::int64_t each,
               std::int64_t longest) {
  const auto rows = static_cast<std::int64_t>(list.size()) / each;
  std::uint8_t* at = (each == 1 ? d.add(name, uint8, {rows, longest}) : d.add(name, uint8, {rows, each, longest}))
                         .mutable_as<std::uint8_t>()
                         .data();
  for (const auto s : list) {
    std::copy(s.begin(), s.end(), at);
    at += longest;
  }
}
template <class T>
void put(datum& d, std::string_view name, const extents& dims, const std::vector<T>& list) {
  const auto to = d.add(name, dtype_of<T>, dims).template mutable_as<T>();
  REQUIRE(to.size() == list.size());
  std::copy(list.begin(), list.end(), to.begin());
}
template <class T>
std::vector<T> all_of(const datum& d, std::string_view name) {
  const auto v = d.values<T>(name);
  return {v.begin(), v.end()};
}
}  // namespace

TEST_CASE("a batch of data becomes what a graph takes: numbers of dense columns, padded ids, weights, what is kept") {
  const auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});
  const auto terms =
      weighted_categorical_column(categorical_column_with_vocabulary_list("terms", {"a", "bb", "c"}), "tf");
  const bucketized_column hours(numeric_column("hours"), {20, 40});
  const feature_layout layout({.input_layer = {numeric_column("age"), embedding_column(sex, 2),
                                               embedding_column(terms, 3), indicator_column(sex), hours},
                               .linear_model = {sex, hours, crossed_column({sex, hours}, 50), numeric_column("age")},
                               .ids_of = {{"terms", 3}},
                               .keep = {{"label", int32, {}}, {"name", uint8, {2}}}});
  CHECK(layout.parts() == components{{"age", float32, {1}},
                                     {"hours_bucketized", float32, {3}},
                                     {"sex/ids", int64, {1}},
                                     {"sex_indicator", float32, {2}},
                                     {"terms_weighted_by_tf/ids", int64, {3}},
                                     {"terms_weighted_by_tf/weights", float32, {3}},
                                     {"hours_bucketized/ids", int64, {1}},
                                     {"hours_bucketized_X_sex/ids", int64, {1}},
                                     {"label", int32, {}},
                                     {"name", uint8, {2}}});
  std::vector<std::string> keys;
  for (const auto& n : layout.needs()) keys.push_back(n.key);
  CHECK(keys == std::vector<std::string>{"age", "hours", "sex", "terms", "tf"});

  datum from, to;
  put<std::int32_t>(from, "age", {3}, {30, 40, 50});
  put<float>(from, "hours", {3}, {10, 20, 60});
  put_texts(from, "sex", {"m", "", "f"}, 1, 4);
  put_texts(from, "terms", {"bb", "a", "", "", "c", "x"}, 2, 2);
  put<float>(from, "tf", {3, 2}, {2, 3, 0, 0, 0.5f, 7});
  put<std::int32_t>(from, "label", {3}, {1, 0, 1});
  put_texts(from, "name", {"xy", "z", ""}, 1, 2);
  layout(from, to);
  detail::check_unit(to, layout.parts(), true, "the layout");
  CHECK(all_of<float>(to, "age") == std::vector<float>{30, 40, 50});
  CHECK(all_of<float>(to, "hours_bucketized") == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(all_of<std::int64_t>(to, "sex/ids") == id_list{1, -1, 0});
  CHECK(all_of<float>(to, "sex_indicator") == std::vector<float>{0, 1, 0, 0, 1, 0});
  CHECK(all_of<std::int64_t>(to, "terms_weighted_by_tf/ids") == id_list{1, 0, -1, -1, -1, -1, 2, -1, -1});
  CHECK(all_of<float>(to, "terms_weighted_by_tf/weights") == std::vector<float>{2, 3, 0, 0, 0, 0, 0.5f, 7, 0});
  CHECK(all_of<std::int64_t>(to, "hours_bucketized/ids") == id_list{0, 1, 2});
  CHECK(all_of<std::int64_t>(to, "hours_bucketized_X_sex/ids")[1] == -1);  // no sex, no cross
  CHECK(all_of<std::int32_t>(to, "label") == std::vector<std::int32_t>{1, 0, 1});
  CHECK(all_of<std::uint8_t>(to, "name") == std::vector<std::uint8_t>{'x', 'y', 'z', 0, 0, 0});

  // The same of a parsed batch: text of any number.
  datum parsed;
  layout.write(batch_of(1, {dense_floats("age", 1, {7}), dense_floats("hours", 1, {30}), ragged_texts("sex", {{"f"}}),
                            ragged_texts("terms", {{"c", "a", "a"}}), ragged_floats("tf", {{1, 2, 3}})}),
               parsed);
  CHECK(all_of<std::int64_t>(parsed, "terms_weighted_by_tf/ids") == id_list{2, 0, 0});
  CHECK(all_of<float>(parsed, "age") == std::vector<float>{7});
}

TEST_CASE("room for ids: so many of a feature, a product for a cross") {
  const auto x = categorical_column_with_hash_bucket("x", 10);
  const bucketized_column b(numeric_column("b", {.shape = {2}}), {1});
  const feature_layout layout({.linear_model = {x}, .ids_per_example = 2, .ids_of = {{"y", 5}}});
  CHECK(layout.room(x) == 2);
  CHECK(layout.room(b) == 2);
  CHECK(layout.room(crossed_column({"x", "y"}, 10)) == 10);
  CHECK(layout.room(crossed_column({"z", b, "y"}, 10)) == 20);
  CHECK(layout.room(weighted_categorical_column(categorical_column_with_hash_bucket("y", 3), "w")) == 5);
}

TEST_CASE("a column's default stands for a component that the data has not") {
  const feature_layout layout({.input_layer = {numeric_column("age", {.default_value = {4}}), numeric_column("x")}});
  datum from, to;
  put<double>(from, "x", {2}, {1.5, 2.5});
  layout(from, to);
  CHECK(all_of<float>(to, "age") == std::vector<float>{4, 4});
  CHECK(all_of<float>(to, "x") == std::vector<float>{1.5f, 2.5f});
}

TEST_CASE("a part that a batch lacks is zero, whatever the batch before it had") {
  const feature_layout layout({.input_layer = {numeric_column("age")}, .keep = {{"label", int32, {}}}});
  datum to;
  layout.write(batch_of(2, {dense_floats("age", 1, {1, 2}), dense_ints("label", 1, {7, 8})}), to);
  CHECK(all_of<std::int32_t>(to, "label") == std::vector<std::int32_t>{7, 8});
  layout.write(batch_of(2, {dense_floats("age", 1, {1, 2})}), to);
  CHECK(all_of<std::int32_t>(to, "label") == std::vector<std::int32_t>{0, 0});
}

TEST_CASE("a number that is kept as int32 fits it, or is refused") {
  const feature_layout layout({.input_layer = {numeric_column("age")}, .keep = {{"label", int32, {}}}});
  constexpr std::int64_t least = INT32_MIN, most = INT32_MAX;
  datum to;
  layout.write(batch_of(2, {dense_floats("age", 1, {1, 2}), dense_ints("label", 1, {least, most})}), to);
  CHECK(all_of<std::int32_t>(to, "label") == std::vector<std::int32_t>{INT32_MIN, INT32_MAX});
  for (const std::int64_t x : {least - 1, most + 1, (std::int64_t{1} << 32) + 1})
    CHECK(says(
        message_of(status::invalid_argument,
                   [&] {
                     layout.write(batch_of(2, {dense_floats("age", 1, {1, 2}), dense_ints("label", 1, {0, x})}), to);
                   }),
        text("as int32, found ", x, "; keep it as int64")));
}

TEST_CASE("a cross makes no more ids than there is room for, whatever lists come") {
  const feature_layout layout({.linear_model = {crossed_column({"a", "b"}, 1000)}, .ids_of = {{"a", 3}, {"b", 2}}});
  datum to;
  const std::vector<std::string> long_list(1 << 20, "");
  layout.write(batch_of(1, {ragged_texts("a", {{"x", "y", "z"}}), ragged_texts("b", {{"x", "y"}})}), to);
  CHECK(
      says(message_of(status::invalid_argument,
                      [&] {
                        layout.write(batch_of(1, {ragged_texts("a", {long_list}), ragged_texts("b", {long_list})}), to);
                      }),
           "example 0 of the batch has more than 6 crosses; give more room"));
  layout.write(batch_of(1, {ragged_texts("a", {long_list}), ragged_texts("b", {{}})}), to);  // no cross
}

TEST_CASE("a default that is NaN is one default") {
  const auto age = numeric_column("age", {.default_value = {std::numeric_limits<float>::quiet_NaN()}});
  const feature_layout layout({.input_layer = {age}, .linear_model = {bucketized_column(age, {30})}});
  CHECK_NOTHROW(example_columns{layout});
  const auto other = numeric_column("age", {.default_value = {1}});
  CHECK_THROWS_AS(
      example_columns(feature_layout({.input_layer = {other}, .linear_model = {bucketized_column(age, {30})}})),
      invalid_argument);
}

TEST_CASE("an integer feature of two columns: both ways that the refusal names give the ids of TensorFlow's chain") {
  const std::vector<std::int64_t> towns{5, 6}, days{3, 1};
  const auto id_of = [](std::initializer_list<std::uint64_t> prints) {
    std::uint64_t h = 0xDECAFCAFFE;
    for (const auto p : prints) h = chain_fingerprints(h, p);
    return static_cast<std::int64_t>(h % 100);
  };
  const auto ids_of = [](const feature_layout& layout, auto data, const char* column) {
    auto batches = std::move(data).batch(2).map(layout.parts(), layout);
    datum d;
    REQUIRE(batches.next(d));
    const auto ids = d.values<std::int64_t>(text(column, "/ids"));
    return std::vector<std::int64_t>(ids.begin(), ids.end());
  };
  const auto day = categorical_column_with_identity("day", 7);
  const auto data = from_spans("town", towns, extents{}, "day", days);
  CHECK(refusal_of([&] {
          feature_layout({.linear_model = {day, crossed_column({"town", "day"}, 100)}});
        }).starts_with("columns want the feature \"day\" as int64"));
  const feature_layout by_column({.linear_model = {day, crossed_column({"town", day}, 100)}});
  CHECK(ids_of(by_column, data, "day_X_town") == std::vector{id_of({3, 5}), id_of({1, 6})});
  const feature_layout by_copy({.linear_model = {numeric_column("day"), crossed_column({"town", "date"}, 100)}});
  const components copied{{"town", int64, {}}, {"day", int64, {}}, {"date", int64, {}}};
  const auto copy = [](const datum& from, datum& to) {
    to.set("town", from.value<std::int64_t>("town"));
    to.set("day", from.value<std::int64_t>("day")), to.set("date", from.value<std::int64_t>("day"));
  };
  CHECK(ids_of(by_copy, data.map(copied, copy), "date_X_town") == std::vector{id_of({5, 3}), id_of({6, 1})});
}

TEST_CASE("what a layout refuses") {
  const auto x = categorical_column_with_hash_bucket("x", 10), again = categorical_column_with_hash_bucket("x", 20);
  CHECK(refusal_of([] { feature_layout({}); }) == "feature_layout: expected columns, found none");
  CHECK(refusal_of([&] { feature_layout({.linear_model = {x}, .ids_per_example = 0}); }) ==
        "feature_layout: expected ids_per_example of 1 or more, found 0");
  CHECK(refusal_of([&] {
          feature_layout({.linear_model = {x, x}});
        }) == "linear_model: there are two columns \"x\"; keep one");
  CHECK(refusal_of([&] { feature_layout({.input_layer = {embedding_column(x, 2)}, .linear_model = {again}}); }) ==
        "feature_layout: \"x\" is two different columns; make the column once and use it in both places");
  const auto tenth = [](float v) { return v / 10; };
  const numeric_column plain("n"), scaled("n", {.normalizer_fn = tenth}), filled("n", {.default_value = {3}});
  for (const auto& [one, two] : {std::pair(plain, scaled), std::pair(plain, filled), std::pair(filled, scaled),
                                 std::pair(scaled, numeric_column("n", {.normalizer_fn = tenth}))}) {
    CHECK(refusal_of([&] { feature_layout({.input_layer = {one}, .linear_model = {two}}); }) ==
          "feature_layout: \"n\" is two different columns; make the column once and use it in both places");
    CHECK(refusal_of([&] { feature_layout({.input_layer = {two}, .linear_model = {one}}); }) != "");
  }
  for (const auto& same : {plain, scaled, filled}) feature_layout({.input_layer = {same}, .linear_model = {same}});
  feature_layout({.input_layer = {plain}, .linear_model = {numeric_column("n")}});
  CHECK(refusal_of([&] {
          feature_layout({.linear_model = {numeric_column("y")}, .keep = {{"y", float32, {}}}});
        }) ==
        "feature_layout: \"y\" would be two components; rename the one that is kept, or let a map copy it "
        "under another name and keep the copy");
  const feature_layout layout(
      {.input_layer = {numeric_column("n")}, .linear_model = {x}, .keep = {{"label", float32, {}}}});
  const auto refused = [&](auto fill) {
    datum from, to;
    fill(from);
    return refusal_of([&] { layout(from, to); });
  };
  CHECK(refused([](datum& d) { put<float>(d, "n", {}, {1}); }) ==
        "feature_layout: expected a batch; put .map behind .batch or .padded_batch");
  CHECK(refused([](datum& d) {
          put<float>(d, "n", {2}, {1, 2});
          put<float>(d, "x", {2}, {1, 2});
        }) == "feature \"x\": expected uint8 text in a batch, found float32 [2]");
  CHECK(refused([](datum& d) {
          put<float>(d, "n", {2}, {1, 2});
          put_texts(d, "x", {"a", "b", "c", "d"}, 2, 1);
        }) == "example 0 of the batch has 2 ids, expected at most 1; give more room");
  CHECK(refused([](datum& d) {
          put<float>(d, "n", {2}, {1, 2});
          put_texts(d, "x", {"a", "b"}, 1, 1);
          put<float>(d, "label", {2, 1}, {1, 2});
        }) == "feature_layout keeps \"label\" as float32 [] of each example, found float32 [2, 1] in a batch of 2");
  datum from, to;
  put<float>(from, "n", {2}, {1, 2});
  CHECK_THROWS_AS(layout(from, to), not_found);
}
