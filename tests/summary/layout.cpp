#include <gradus/summary/layout.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a layout: charts of lines and of margins, in categories") {
  const auto v = layout_summary(
      {{"c", {{.title = "l", .lines = {"a", "b"}}, {.title = "m", .margins = {{"v", "lo", "hi"}}}}, true}});
  REQUIRE(v.size() == 1);
  CHECK(v[0].tag == "custom_scalars__config__");
  CHECK(v[0].kind == value_kind::tensor);
  // TensorProto of one string, which is Layout { category { title, chart { title, multiline | margin }, closed } }.
  const char expected[] =
      "\x08\x07\x12\x00\x42\x28"
      "\x12\x26\x0a\x01"
      "c"
      "\x12\x0b\x0a\x01"
      "l\x12\x06\x0a\x01"
      "a\x0a\x01"
      "b"
      "\x12\x12\x0a\x01"
      "m\x1a\x0d\x0a\x0b\x0a\x01"
      "v\x12\x02lo\x1a\x02hi"
      "\x18\x01";
  const std::string_view bytes(reinterpret_cast<const char*>(v[0].bytes.data()), v[0].bytes.size());
  CHECK(bytes == std::string_view(expected, sizeof expected - 1));
  CHECK_THROWS_WITH_AS(layout_summary({{"c", {{.title = "x", .lines = {"a"}, .margins = {{"v", "l", "u"}}}}}}),
                       "layout_summary: the chart \"x\" has lines and margins; make two charts of it",
                       invalid_argument);
}
