#include <gradus/base/or_none.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

TEST_CASE("or_none: a value, none, and what none is where a value is needed") {
  constexpr or_none<int> nothing, said = none, five = 5, zero = 0;
  static_assert(!nothing.has_value() && !said.has_value() && five.has_value() && zero.has_value());
  static_assert(nothing == 0 && five == 5 && five.value() == 5 && zero == 0);
  const or_none<std::string> words = "five", no_words = none, empty = "";
  CHECK((words.has_value() && words.value() == "five"));
  CHECK((!no_words.has_value() && no_words.value().empty() && empty.has_value()));
  or_none<std::string> copy = words;
  CHECK(copy.value() == "five");
  copy = none;
  CHECK(!copy.has_value());
  CHECK(copy.value().empty());
}

TEST_CASE("interval: left out, none, a number") {
  constexpr interval out, never = none, hundred = 100;
  static_assert(!out.given() && never.given() && hundred.given());
  static_assert(!out.has_value() && !never.has_value() && hundred.has_value());
  static_assert(!out.active() && !never.active() && hundred.active() && !interval(0).active());
  CHECK(hundred.value() == 100);
}
