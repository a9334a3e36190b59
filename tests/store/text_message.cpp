#include <gradus/store/text_message.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {

std::string refusal(std::string_view content) {
  try {
    for (text_message_reader in(content); in.next();) {
    }
  } catch (const data_loss& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
template <class Take>
std::string refusal_of_value(std::string_view content, Take take) {
  text_message_reader in(content);
  REQUIRE(in.next());
  try {
    take(in);
  } catch (const data_loss& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
const auto as_string = [](text_message_reader& in) { in.string(); };
const auto as_integer = [](text_message_reader& in) { in.integer(); };
const auto as_boolean = [](text_message_reader& in) { in.boolean(); };
const auto as_message = [](text_message_reader& in) { in.enter(); };

}  // namespace

TEST_CASE("text messages: every form of a field; what is not taken is skipped") {
  text_message_reader in(R"(# a comment
    name: "a" skipped: 5, also { deep < x: "}" > list: [1, 2] };
    number: -7; flag: true
    inner { name: 'b' }
    inner: < name: "c" "d" 'e' >
    words: ["x", "y"]  none_of: []
    inner: [{ name: "f" }, { }]
    last: "\n\t\"\'\\\101\x41\xe4?" # the end)");
  std::vector<std::string> names, words, inner;
  std::string last;
  std::int64_t number = 0;
  bool flag = false;
  while (in.next()) {
    names.push_back(in.name());
    if (in.name() == "number") {
      number = in.integer();
    } else if (in.name() == "flag") {
      flag = in.boolean();
    } else if (in.name() == "words") {
      words.push_back(in.string());
    } else if (in.name() == "last") {
      last = in.string();
    } else if (in.name() == "inner") {
      std::string name = "-";
      for (in.enter(); in.next();) name = in.string();
      inner.push_back(name);
    }
  }
  CHECK(names == std::vector<std::string>{"name", "skipped", "also", "number", "flag", "inner", "inner", "words",
                                          "words", "inner", "inner", "last"});
  CHECK(number == -7);
  CHECK(flag);
  CHECK(inner == std::vector<std::string>{"b", "cde", "f", "-"});
  CHECK(words == std::vector<std::string>{"x", "y"});
  CHECK(last == "\n\t\"'\\AA\xe4?");
}

TEST_CASE("text messages: what is malformed is named by its byte") {
  CHECK(refusal("a") == "malformed text message: at byte 1 expected ':', found the end");
  CHECK(refusal("a: 1 }") == "malformed text message: at byte 5 expected a field, found '}'");
  CHECK(refusal("a { b: 1") == "malformed text message: at byte 8 expected a field or '}', found the end");
  CHECK(refusal("a { b: 1 >") == "malformed text message: at byte 9 expected a field or '}', found '>'");
  CHECK(refusal("a < b: 1 }") == "malformed text message: at byte 9 expected a field or '>', found '}'");
  CHECK(refusal("a: [1, 2") == "malformed text message: at byte 8 expected ',' or ']', found the end");
  CHECK(refusal("a: [1 2]") == "malformed text message: at byte 6 expected ',' or ']', found '2'");
  CHECK(refusal("a: \"b") == "malformed text message: at byte 5 expected the quote that ends a string, found the end");
  CHECK(refusal("a: \"b\nc\"").find("the quote that ends a string") != std::string::npos);
  CHECK(refusal("a: \"\\q\"").find("expected an escape") != std::string::npos);
  CHECK(refusal("a: \"\\777\"").find("expected an escape") != std::string::npos);
  CHECK(refusal("a:").find("expected a value, found the end") != std::string::npos);
  CHECK(refusal("[ext.x]: 1").find("expected a field's name, found '['") != std::string::npos);
  CHECK(refusal(std::string_view("a: 1 \0 b: 2", 11)).find("found byte 0") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a {";
  CHECK(refusal(deep).find("no more than 64 messages in one another") != std::string::npos);

  CHECK(refusal_of_value("a: 5", as_string).find("at byte 3 expected a string, found '5'") != std::string::npos);
  CHECK(refusal_of_value("a: \"5\"", as_integer).find("expected a whole number of 64 bits") != std::string::npos);
  CHECK(refusal_of_value("a: 5.5", as_integer).find("at byte 3 expected a whole number") != std::string::npos);
  CHECK(refusal_of_value("a: 9223372036854775808", as_integer).find("whole number of 64 bits") != std::string::npos);
  CHECK(refusal_of_value("a: 2", as_boolean).find("expected true or false") != std::string::npos);
  CHECK(refusal_of_value("a: 2", as_message).find("expected a message") != std::string::npos);
}

TEST_CASE("text messages: what was written is read; indented as the official writer does it") {
  std::string out;
  text_message_writer w(out);
  w.string("s", "a\n\"\\\x01\xff'");
  w.integer("i", -5);
  w.message("m", [](text_message_writer& m) {
    m.boolean("yes", true);
    m.message("empty", [](text_message_writer&) {});
  });
  w.boolean("no", false);
  CHECK(out == "s: \"a\\n\\\"\\\\\\001\\377\\'\"\ni: -5\nm {\n  yes: true\n  empty {\n  }\n}\nno: false\n");
  text_message_reader in(out);
  REQUIRE(in.next());
  CHECK(in.string() == "a\n\"\\\x01\xff'");
  REQUIRE(in.next());
  CHECK(in.integer() == -5);
  REQUIRE(in.next());
  REQUIRE(in.next());
  CHECK(in.name() == "no");
  CHECK(!in.boolean());
  CHECK(!in.next());
}
