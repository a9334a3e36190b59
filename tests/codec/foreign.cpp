#include "gradus/codec/foreign.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("foreign: a step is a number as we would write it") {
  CHECK(step_in("12") == 12);
  CHECK(step_in("-3") == -3);
  CHECK(step_in("9223372036854775807") == INT64_MAX);
  for (const char* other : {"", "0", "012", "+1", " 1", "1 ", "1.0", "9223372036854775808", "last"})
    CHECK_MESSAGE(!step_in(other), other);
}

TEST_CASE("foreign: names are a JSON list, and anything else is none") {
  CHECK(names_as_text({"a", "b\"\n", "ü"}) == R"(["a","b\"\n","ü"])");
  CHECK(names_in(R"(["a","b\"\n","ü"])") == std::vector<std::string>{"a", "b\"\n", "ü"});
  for (const char* other : {"", "[]", "a", "[1]", "[\"a\"", "[\"a\"]]", "{}", "[[\"a\"]]"})
    CHECK_MESSAGE(!names_in(other), other);
}

TEST_CASE("foreign: notes go into the metadata and come back") {
  const std::byte two[2] = {};
  snapshot s{7, {{"library", "x"}}, {}};
  s.records = {{"z", uint8, {2}, two, true}, {"a", uint8, {2}, two, true}, {"h", bfloat16, {1}, two, false}};
  CHECK(with_notes(s, "x") == metadata{{"library", "x"}, {"step", "7"}, {"blobs", R"(["a","z"])"}});
  auto notes = with_notes(s, "x", {bfloat16});
  CHECK(notes.at("bfloat16") == R"(["h"])");
  notes.erase("bfloat16");
  snapshot back{0, {}, s.records};
  for (auto& r : back.records) r.blob = false;
  take_notes(std::move(notes), back);
  CHECK(back.step == 7);
  CHECK(back.about == s.about);
  CHECK((back.records[0].blob && back.records[1].blob && !back.records[2].blob));
  CHECK(with_notes({}, "x", {bfloat16}).empty());
}

TEST_CASE("foreign: what a stranger means by our keys stays metadata, and our own saver does not write such") {
  const metadata strange{{"step", "last"}, {"blobs", R"(["nothing of this name"])"}};
  snapshot back;
  take_notes(metadata(strange), back);
  CHECK(back.about == strange);
  CHECK(back.step == 0);
  const auto refused = [](snapshot s) {
    try {
      with_notes(s, "npz", {bfloat16});
    } catch (const invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string needed =
      "this state cannot be saved as npz: its metadata has the key \"step\", which the format needs itself; choose "
      "another";
  CHECK(refused({0, {{"step", "last"}}, {}}).empty());
  CHECK(refused({0, {{"step", "12"}}, {}}) == needed);
  CHECK(refused({1, {{"step", "last"}}, {}}) == needed);
  CHECK(!refused({0, {{"blobs", "[\"a\"]"}}, {}}).empty());
  CHECK(!refused({0, {{"bfloat16", "[\"a\"]"}}, {}}).empty());
}
