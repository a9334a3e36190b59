#include <gradus/input/example_spec.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a spec numbers the keys that it needs") {
  const example_spec spec{
      {"image", fixed_len_feature{{2, 3}, float32}},  {"label", fixed_len_feature{{}, int64, -1}},
      {"words", var_len_feature{feature_kind::text}}, {"terms", sparse_feature{"ids", "weights", float32, 100}},
      {"same ids", var_len_feature{int64}},           {"tokens", fixed_len_sequence_feature{{2}, int64, true}}};
  CHECK(spec.keys() == std::vector<std::string>{"image", "label", "words", "weights", "ids", "same ids", "tokens"});
  for (std::size_t i = 0; i < spec.keys().size(); ++i) CHECK(spec.find(spec.keys()[i]) == static_cast<int>(i));
  CHECK(spec.find("terms") == -1);
  CHECK(spec.find("") == -1);
  const auto& e = spec.entries();
  CHECK(e[0].count == 6);
  CHECK_FALSE(e[0].may_be_missing);
  CHECK(e[1].default_value.ints == std::vector<std::int64_t>{-1});
  CHECK(e[3].key == 3);
  CHECK(e[3].index_key == 4);
  CHECK(e[5].default_value.ints == std::vector<std::int64_t>{0});
  CHECK(example_spec({}).find("x") == -1);
  std::vector<example_feature> many;
  for (int i = 0; i < 500; ++i) many.push_back({text("f", i), var_len_feature{}});
  const example_spec large(many);
  for (int i = 0; i < 500; ++i) REQUIRE(large.find(text("f", i)) == i);
}

TEST_CASE("defaults: one for all places, or all; whole numbers for floats") {
  const auto of = [](const fixed_len_feature& f) { return example_spec{{"x", f}}.entries()[0].default_value; };
  CHECK(of({{3}, float32, 1}).floats == std::vector<float>{1, 1, 1});
  CHECK(of({{2}, float32, {0.5, 2.0}}).floats == std::vector<float>{0.5F, 2});
  CHECK(of({{2}, int64, std::vector<std::int64_t>{4, 5}}).ints == std::vector<std::int64_t>{4, 5});
  CHECK(of({{2}, feature_kind::text, "a"}).texts[1] == "a");
  CHECK(of({{2}, feature_kind::text, {"a", "b"}}).texts[1] == "b");
}

TEST_CASE("what is refused") {
  const auto refused = [](const std::vector<example_feature>& list) -> std::string {
    try {
      const example_spec spec(list);
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(refused({{"x", var_len_feature{}}, {"x", var_len_feature{}}}) == "the feature \"x\" is wanted twice");
  CHECK(refused({{"x", var_len_feature{}}, {"s", sparse_feature{"x", "v", float32, 3}}}) ==
        "the key \"x\" is wanted both as float32 and as int64");
  CHECK(refused({{"x", fixed_len_feature{{2, -1}, float32}}}) ==
        "feature \"x\": expected known extents that fit into memory, found [2, -1]");
  CHECK(refused({{"x", fixed_len_feature{{1 << 30, 1 << 30, 1 << 30}, float32}}}).find("fit into memory") !=
        std::string::npos);
  CHECK(refused({{"x", fixed_len_feature{{2}, float32, {1, 2, 3}}}}) ==
        "feature \"x\": expected a default of 1 or 2 values, found 3");
  CHECK(refused({{"x", fixed_len_feature{{2}, int64, 0.5}}}) == "feature \"x\": its default is not of its kind, int64");
  CHECK(refused({{"x", sparse_feature{"i", "v", float32, 0}}}) ==
        "feature \"x\": expected a size of 1 or more, found 0");
  CHECK(refused({{"x", fixed_len_sequence_feature{{0}, float32}}}) == "feature \"x\": steps of [0] cannot be counted");
  CHECK_THROWS_WITH_AS(list_kind{float64},
                       "an Example holds float32, int64 and text (feature_kind::text), not float64; convert after "
                       "parsing",
                       invalid_argument);
}
