#include <gradus/input/example.hpp>

#include <doctest/doctest.h>

#include "example_bytes.hpp"

using namespace gradus;
using example_bytes::hex;

TEST_CASE("the published bytes, keys as added or sorted") {
  example_builder e;
  e.add_floats("x", {1, -2}).add_ints("y", {3}).add_text("s", {"hi"});
  CHECK(e.bytes() == hex(example_bytes::xys));
  example_builder sorted(key_order::sorted);
  sorted.add_floats("x", {1, -2}).add_ints("y", {3}).add_text("s", "hi");
  CHECK(sorted.bytes() == hex(example_bytes::sxy));
  sorted.clear();
  CHECK(sorted.bytes() == hex("0a 00"));
  sorted.add_text("s", "hi").add_ints("y", {3}).add_floats("x", {1, -2});
  CHECK(sorted.bytes() == hex(example_bytes::sxy));
}

TEST_CASE("empty lists, negative numbers, bytes") {
  const std::vector<std::int64_t> ints = {-1, 300, INT64_MAX, INT64_MIN};
  const std::vector<std::string_view> texts = {"", std::string_view("\0\xff", 2)};
  example_builder e;
  e.add_floats("a", {}).add_ints("b", ints).add_text("c", texts);
  auto expected = hex(example_bytes::abcd);
  expected.resize(expected.size() - 7);  // "d" has no kind; a builder makes none such
  expected[1] = std::byte{0x49 - 7};
  CHECK(e.bytes() == expected);
  const std::byte two[] = {std::byte{1}, std::byte{0}};
  e.clear();
  e.add_bytes("p", two);
  CHECK(e.bytes() == hex("0a 0d 0a 0b 0a 01 70 12 06 0a 04 0a 02 01 00"));
}

TEST_CASE("a key holds one list") {
  example_builder e;
  e.add_ints("k", {1});
  CHECK_THROWS_WITH_AS(e.add_floats("k", {1}), "the example has \"k\" already; a key holds one list", already_exists);
  CHECK(e.bytes() == hex("0a 0c 0a 0a 0a 01 6b 12 05 1a 03 0a 01 01"));
}

TEST_CASE("sequences") {
  sequence_example_builder s(key_order::sorted);
  s.context().add_ints("n", {2});
  s.add_text("w", {"a", "bc"}).add_text("w", std::span<const std::string_view>()).add_text("w", "d");
  s.add_floats("t", {1, 2}).add_floats("t", {3, 4}).add_list("none");
  CHECK(s.bytes() == hex(example_bytes::sequence));
  s.clear();
  CHECK(s.bytes() == hex("0a 00"));
}
