#include "gradus/base/deferred.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace detail = gradus::detail;

TEST_CASE("const_span and text_bytes are views of what they are given") {
  const std::array<double, 3> numbers{1, 2, 3};
  const auto two = detail::const_span(numbers.data() + 1, 2);
  CHECK(two.data() == &numbers[1]);
  CHECK(two.size() == 2);
  CHECK(two[1] == 3);
  std::vector<std::string> words{"a", "bc"};
  const auto all = detail::const_span(words);
  CHECK(all.data() == words.data());
  CHECK(all.size() == 2);
  CHECK(detail::const_span(std::vector<int>{}).empty());
  const std::string text = "bytes";
  const auto bytes = detail::text_bytes(text);
  REQUIRE(bytes.size() == 5);
  CHECK(std::memcmp(bytes.data(), "bytes", 5) == 0);
}

TEST_CASE("resize_to and append_to do what std::vector's functions do") {
  std::vector<std::string> list{"first"};
  std::string last = "last";
  detail::append_to(list, last);
  detail::append_to(list, std::string("moved"));
  CHECK(list == std::vector<std::string>{"first", "last", "moved"});
  detail::resize_to(list, 1);
  CHECK(list == std::vector<std::string>{"first"});
  detail::resize_to(list, 2);
  CHECK(list[1].empty());
}
