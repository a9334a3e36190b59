#include "gradus/store/json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "gradus/base/random.hpp"

using namespace gradus;

namespace {

// Why `text` is refused, or nothing.
std::string problem_of(std::string_view text, int depth = 4) {
  json_reader in(text, depth);
  in.skip();
  in.finish();
  return in.problem();
}
bool accepts(std::string_view text) { return problem_of(text).empty(); }

// What our reader makes of a text, as nlohmann's value: containers and strings and numbers by our own functions.
nlohmann::json value_of(json_reader& in) {
  std::string s;
  std::uint64_t n = 0;
  if (in.peek() == '{') {
    auto out = nlohmann::json::object();
    in.begin_object();
    while (in.next_key(s)) {
      auto v = value_of(in);
      out[s] = v;
    }
    return out;
  }
  if (in.peek() == '[') {
    auto out = nlohmann::json::array();
    in.begin_array();
    while (in.next_element()) out.push_back(value_of(in));
    return out;
  }
  if (in.peek() == '"') return in.string(s), s;
  if (in.null()) return nullptr;
  return in.natural(n), n;
}

const std::string header =
    R"({"__metadata__":{"format":"pt","\u00e9\ud83d\ude00\\\/\b\f\n\r\t\"":"\u0000"},"w":{"dtype":"F32","shape":[2, 3],)"
    R"("data_offsets":[0,24]},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]},"é":[[18446744073709551615,null]]}   )";

}  // namespace

TEST_CASE("json: a header is read, piece by piece") {
  json_reader in(R"( { "a" : [1, 22 ,333], "b":{"c":"x\u0041\ud83d\ude00y"} , "d":null, "e":[[-1.5e3]] } )");
  std::string key, s;
  std::uint64_t n = 0, sum = 0;
  CHECK(in.begin_object());
  CHECK((in.next_key(key) && key == "a" && in.begin_array()));
  while (in.next_element() && in.natural(n)) sum += n;
  CHECK(sum == 356);
  CHECK((in.next_key(key) && key == "b" && in.begin_object()));
  CHECK((in.next_key(key) && key == "c" && in.string(s) && s == "xA😀y"));
  CHECK(!in.next_key(key));
  CHECK((in.next_key(key) && key == "d" && in.null()));
  CHECK((in.next_key(key) && key == "e" && in.skip()));
  CHECK(!in.next_key(key));
  CHECK(in.finish());
  CHECK(in.values() == 11);
}

TEST_CASE("json: what is no JSON, or more than one meaning, is refused and says where") {
  CHECK(accepts(header));
  for (const char* good :
       {"{}", "[]", "null", "\"\"", "0", "-0", "1e5", "-1.25E-3", "[true,false]", " [ ] ", "\"\x7f\""})
    CHECK_MESSAGE(accepts(good), good);
  for (const char* bad : {"",
                          " ",
                          "{",
                          "[",
                          "[1,]",
                          "[,1]",
                          "[1 2]",
                          "{,}",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{1:2}",
                          "{} x",
                          "nul",
                          "True",
                          "01",
                          "-",
                          "1.",
                          ".5",
                          "1e",
                          "+1",
                          "0x10",
                          "NaN",
                          "1e999",
                          "'a'",
                          "\"a",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\ud800\"",
                          "\"\\ud800\\u0041\"",
                          "\"\\udc00\"",
                          "\"\n\"",
                          "\"\xff\"",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "\"\xf5\x80\x80\x80\"",
                          "\"\xe2\x82\"",
                          "\xef\xbb\xbf{}",
                          "[1}",
                          "{\"a\":1]",
                          "/**/1",
                          "\"\xe0\x80\x80\"",
                          "\"\xf0\x80\x80\x80\"",
                          "\"\xf4\x90\x80\x80\"",
                          "[\"\\",
                          "[\"\\u"})
    CHECK_MESSAGE(!accepts(bad), bad);
  CHECK(!accepts(std::string_view("{}\0", 3)));
  CHECK(!accepts(std::string_view("\"a\0\"", 4)));
  CHECK(problem_of(R"({"a":1,"b":2,"a":3})") == "the key \"a\" stands in the object that ends at byte 18 twice");
  CHECK(problem_of(R"([{"a":1,"\u0061":3}])") == "the key \"a\" stands in the object that ends at byte 18 twice");
  CHECK(accepts(R"([{"a":1},{"a":3,"b":{"a":1}}])"));
  CHECK(accepts("[[[[1]]]]"));
  CHECK(problem_of("[[[[[1]]]]]") == "at byte 4 expected no more than 4 containers in one another, found '['");
  CHECK(problem_of(std::string(1000000, '['), 64).find("at byte 64 ") == 0);
  CHECK(problem_of("[1, 2") == "at byte 5 expected ',' or ']', found the end");
  CHECK(problem_of("[\x01") == "at byte 1 expected a value, found byte 1");
}

TEST_CASE("json: natural numbers are that and nothing else") {
  const auto natural = [](std::string_view s, std::uint64_t expected = 0) {
    json_reader in(s);
    std::uint64_t n = 0;
    return in.natural(n) && in.finish() && n == expected;
  };
  CHECK(natural("0", 0));
  CHECK(natural(" 18446744073709551615 ", ~std::uint64_t{0}));
  for (const char* bad :
       {"18446744073709551616", "-1", "-0", "00", "01", "8.0", "2e0", "\"1\"", "", "null", "+1", "1E0"})
    CHECK_MESSAGE(!natural(bad, 0), bad);
}

TEST_CASE("json: whole numbers and truth") {
  const auto integer = [](std::string_view s, std::int64_t expected) {
    json_reader in(s);
    std::int64_t n = 0;
    return in.integer(n) && in.finish() && n == expected;
  };
  CHECK(integer("-12", -12));
  CHECK(integer("-9223372036854775808", INT64_MIN));
  for (const char* bad : {"9223372036854775808", "-", "--1", "- 1", "-01", "1.0", "-1e3", "+1", ""})
    CHECK_MESSAGE(!integer(bad, 0), bad);
  bool yes = false, no = true;
  json_reader in("[true,false,1]");
  CHECK((in.begin_array() && in.next_element() && in.truth(yes) && in.next_element() && in.truth(no)));
  CHECK((yes && !no && in.next_element() && !in.truth(yes)));
  CHECK(in.problem() == "at byte 12 expected true or false, found '1'");
}

TEST_CASE("json: one key twice among thousands is found") {
  std::string text = "{";
  for (int i = 0; i < 20000; ++i) text += gradus::text("\"", i, "\":0,");
  CHECK(accepts(text + "\"x\":1}"));
  CHECK(!accepts(text + "\"19999\":1}"));
}

TEST_CASE("json: what is written is read, by us and by nlohmann, and escaped as serde_json does it") {
  std::string out;
  append_json_string(out, std::string_view("a\"\\/\0\x01\b\t\n\v\f\r\x1f\x7f é😀", 21));
  CHECK(out == "\"a\\\"\\\\/\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\x7f é😀\"");
  random_stream random{3};
  for (int i = 0; i < 500; ++i) {
    std::string s;
    for (std::uint32_t n = random.below(12); n != 0; --n) s += static_cast<char>(random.below(128));
    out.clear();
    append_json_string(out, s + "ü");
    json_reader in(out);
    std::string back;
    CHECK((in.string(back) && in.finish() && back == s + "ü"));
    CHECK(nlohmann::json::parse(out).get<std::string>() == s + "ü");
  }
}

TEST_CASE("json: whatever we accept, nlohmann accepts, with the same content") {
  random_stream random{5};
  const std::string alphabet = "{}[]\",:\\u0123456789eE+-. abdntfrl\n\xc3\xa9\xed\xff";
  int accepted = 0, strict = 0;
  for (int i = 0; i < 8000; ++i) {
    std::string mutated = header;
    for (std::uint32_t k = random.below(3) + 1; k != 0; --k) {
      const auto at = random.below(static_cast<std::uint32_t>(mutated.size()));
      const char c = alphabet[random.below(static_cast<std::uint32_t>(alphabet.size()))];
      switch (random.below(4)) {
      case 0: mutated.insert(at, 1, c); break;
      case 1: mutated.erase(at, random.below(8)); break;
      case 2: mutated.insert(at, mutated.substr(random.below(static_cast<std::uint32_t>(mutated.size())), 9)); break;
      default: mutated[at] = c;
      }
      if (mutated.empty()) mutated = "0";
    }
    const bool ours = accepts(mutated);
    const auto theirs = nlohmann::json::parse(mutated, nullptr, false);
    if (ours) {
      ++accepted;
      REQUIRE_MESSAGE(!theirs.is_discarded(), mutated);
      json_reader in(mutated);
      const auto value = value_of(in);
      if (in.finish()) {
        ++strict;
        REQUIRE_MESSAGE(value == theirs, mutated);
      }
    }
  }
  CHECK(accepted > 300);
  CHECK(strict > 300);
}
