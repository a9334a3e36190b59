#include <gradus/columns/vocabulary_column.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <fstream>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("a list: the place is the id, what it does not hold has the default or a bucket behind it") {
  const auto batch =
      batch_of(3, {ragged_texts("sex", {{"m", "f"}, {}, {"x", ""}}), dense_ints("zip", 1, {8002, -1, 7})});
  const auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});
  CHECK(sex.num_buckets() == 2);
  const id_lists ids = sex.ids(batch);
  CHECK(ids.splits == id_list{0, 2, 2, 4});
  CHECK(ids.ids == id_list{1, 0, -1, -1});
  CHECK(categorical_column_with_vocabulary_list("sex", {"f", "m"}, {.default_value = 1}).ids(batch).ids ==
        id_list{1, 0, 1, 1});
  const auto buckets = categorical_column_with_vocabulary_list("sex", {"f", "m"}, {.num_oov_buckets = 3});
  CHECK(buckets.num_buckets() == 5);
  // fingerprint64("") = 0x9ae16a3b2f90404f, as in tests/columns/fingerprint.cpp
  const auto x = static_cast<std::int64_t>(2 + fingerprint64("x") % 3);
  CHECK(buckets.ids(batch).ids == id_list{1, 0, x, static_cast<std::int64_t>(2 + 0x9ae16a3b2f90404fu % 3)});

  const auto zip = categorical_column_with_vocabulary_list("zip", {8001, 8002}, {.num_oov_buckets = 2});
  CHECK(zip.ids(batch).splits == id_list{0, 1, 1, 2});
  CHECK(zip.ids(batch).ids == id_list{1, static_cast<std::int64_t>(2 + fingerprint64("7") % 2)});
  CHECK(zip.needs() == std::vector<feature_need>{{.key = "zip", .kind = feature_kind::int64}});
  const std::vector<std::string> from_program{"m", "f"};
  CHECK(categorical_column_with_vocabulary_list("sex", from_program).ids(batch).ids == id_list{0, 1, -1, -1});
}

TEST_CASE("what a list refuses") {
  CHECK(refusal_of([] { categorical_column_with_vocabulary_list("s", std::vector<std::string>{}); }) ==
        "categorical_column_with_vocabulary_list \"s\": expected a vocabulary, found none");
  CHECK(refusal_of([] {
          categorical_column_with_vocabulary_list("s", {"a", "b", "a"});
        }) == "categorical_column_with_vocabulary_list \"s\": \"a\" is in the vocabulary twice; keep one");
  CHECK(refusal_of([] {
          categorical_column_with_vocabulary_list("s", {1, 2, 1});
        }) == "categorical_column_with_vocabulary_list \"s\": \"1\" is in the vocabulary twice; keep one");
  CHECK(refusal_of([] { categorical_column_with_vocabulary_list("s", {"a"}, {.num_oov_buckets = -1}); }) ==
        "categorical_column_with_vocabulary_list \"s\": expected num_oov_buckets of 0 or more, found -1");
  CHECK(refusal_of([] {
          categorical_column_with_vocabulary_list("s", {"a"}, {.default_value = 0, .num_oov_buckets = 2});
        }) == "categorical_column_with_vocabulary_list \"s\": expected num_oov_buckets or a default_value, found both");
  const auto batch = batch_of(1, {dense_ints("s", 1, {3})});
  CHECK(refusal_of([&] { categorical_column_with_vocabulary_list("s", {"a"}).ids(batch); }) ==
        "column \"s\": expected a feature of string, found int64; set the column's dtype, or read the feature as that");
}

TEST_CASE("a file: the line is the id") {
  const testing::temp_dir dir;
  const auto file_with = [&](const char* name, std::string_view content) {
    const std::string path = dir / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  const std::string three = file_with("three", "omar\nstringer\r\nmarlo"),
                    numbers = file_with("numbers", "7\n-2\n70\n"), again = file_with("again", "a\nb\na\n"),
                    empty = file_with("empty", "");
  const auto batch =
      batch_of(2, {ragged_texts("wire", {{"marlo", "skywalker"}, {"omar"}}), ragged_ints("n", {{-2, 8}, {70}})});

  const auto wire = categorical_column_with_vocabulary_file("wire", three);
  CHECK(wire.num_buckets() == 3);
  CHECK(wire.ids(batch).ids == id_list{2, -1, 0});
  const auto first = categorical_column_with_vocabulary_file("wire", three, {.vocabulary_size = 2, .default_value = 1});
  CHECK(first.num_buckets() == 2);
  CHECK(first.ids(batch).ids == id_list{1, 1, 0});
  // 'skywalker' with 100 buckets behind 3 lines is id 33: 3 + 0x73a16cdc0e8cb39e (FarmHash's own) mod 100.
  const auto more = categorical_column_with_vocabulary_file("wire", three, {.num_oov_buckets = 100});
  CHECK(more.num_buckets() == 103);
  CHECK(more.ids(batch).ids == id_list{2, 33, 0});
  CHECK(more.vocabulary().vocabulary_file == three);
  CHECK(more.vocabulary().vocabulary_size == 3);
  CHECK(more.vocabulary().num_oov_buckets == 100);
  CHECK(categorical_column_with_vocabulary_file("n", numbers, {.dtype = feature_kind::int64}).ids(batch).ids ==
        id_list{1, -1, 2});

  const auto refused = [&](const std::string& path, const vocabulary_file_options& o = {}) {
    const std::string words = refusal_of([&] { categorical_column_with_vocabulary_file("w", path, o); });
    const std::string front = "categorical_column_with_vocabulary_file \"w\": ";
    return words.starts_with(front) ? words.substr(front.size()) : words;
  };
  CHECK(refused("") == "expected the path of a vocabulary file, found \"\"");
  CHECK(refused(dir / "none") == text("there is no file \"", dir / "none", "\""));
  CHECK(refused(three, {.vocabulary_size = 0}) ==
        "expected a vocabulary_size of at least 1, found 0; leave it away to use all lines");
  CHECK(refused(three, {.vocabulary_size = 4}) ==
        text("expected a vocabulary_size of at most 3, the lines of \"", three, "\", found 4"));
  CHECK(refused(three, {.num_oov_buckets = -1}) == "expected num_oov_buckets of 0 or more, found -1");
  CHECK(refused(three, {.num_oov_buckets = 1, .default_value = -1}) ==
        "expected num_oov_buckets or a default_value, found both");
  CHECK(refused(three, {.dtype = feature_kind::int64}) ==
        text("expected a whole number in line 1 of \"", three, "\", found \"omar\""));
  CHECK(refused(three, {.dtype = feature_kind::float32}) == "expected dtype string or int64, found float32");
  CHECK(refused(empty) == text('"', empty, "\" has no lines"));
  CHECK(refused(again) == text("another kind of error: categorical_column_with_vocabulary_file \"w\": line 3 of \"",
                               again, "\" holds \"a\" again; remove one of them"));
}
