#include "gradus/input/features.hpp"

#include <doctest/doctest.h>

using namespace gradus;

namespace {
feature words(std::int64_t rows) {
  feature f{.name = "words", .kind = feature_kind::text, .dims = {-1}};
  f.splits = {0};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < r; ++i) f.texts.push_back(std::string(static_cast<std::size_t>(i), 'a'));
    f.splits.push_back(static_cast<std::int64_t>(f.texts.size()));
  }
  return f;
}
}  // namespace

TEST_CASE("a batch holds dense and ragged features, each example its own values") {
  features batch(3);
  batch.add({.name = "x", .dims = {2}, .splits = {}, .floats = {1, 2, 3, 4, 5, 6}});
  batch.add(words(3));
  CHECK(batch.size() == 2);
  const feature& x = batch["x"];
  CHECK_FALSE(x.ragged());
  CHECK(x.begin(1) == 2);
  CHECK(x.end(1) == 4);
  const feature& w = batch["words"];
  CHECK(w.begin(0) == w.end(0));  // the first has none
  CHECK(w.end(2) - w.begin(2) == 2);
  CHECK(w.texts[w.begin(2)] == "");
  CHECK(w.texts[w.begin(2) + 1] == "a");
}

TEST_CASE("a list of texts is cut") {
  text_list t;
  for (const auto s : {"a", "", "bc"}) t.push_back(s);
  t.cut(2);
  CHECK(t.size() == 2);
  t.push_back("d");
  CHECK(t[2] == "d");
  t.cut(0);
  CHECK(t.empty());
  t.push_back("e");
  CHECK(t[0] == "e");
}

TEST_CASE("what does not fit the number of examples is refused") {
  features batch(2);
  CHECK_THROWS_WITH_AS(batch.add({.name = "x", .dims = {2}, .splits = {}, .floats = {1, 2, 3}}),
                       "feature \"x\": expected 2 examples of [2], found 3 values", error);
  CHECK_THROWS_AS(batch.add(words(3)), error);
  feature f = words(2);
  f.splits = {0, 2, 1};
  CHECK_THROWS_AS(batch.add(f), error);
  f = words(2);
  f.places = {1, 2};
  CHECK_THROWS_AS(batch.add(f), error);
  batch.add(words(2));
  CHECK_THROWS_WITH_AS(batch.add(words(2)), "there is a feature \"words\" already", error);
  CHECK_THROWS_WITH_AS(batch["word"], "no feature is called \"word\"; there are words", error);
}
