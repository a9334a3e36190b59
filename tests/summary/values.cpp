#include <gradus/summary/values.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;

namespace {
std::vector<std::byte> from(std::initializer_list<int> numbers) {
  std::vector<std::byte> out;
  for (int n : numbers) out.push_back(static_cast<std::byte>(n));
  return out;
}
}  // namespace

TEST_CASE("a scalar is the specification's bytes") {
  event e;
  e.wall_time = 2;
  e.step = 7;
  e.what = event_kind::summary;
  e.values = scalar_summary("loss", 0.25f);
  std::vector<std::byte> out;
  encode_event(out, e);
  CHECK(out == from({0x09, 0,    0,    0,    0,   0,   0,   0,   0x40, 0x10, 0x07, 0x2a, 0x0d,
                     0x0a, 0x0b, 0x0a, 0x04, 'l', 'o', 's', 's', 0x15, 0,    0,    0x80, 0x3e}));
}

TEST_CASE("several tags with a value each") {
  const std::vector<std::string> tags{"a", "b"};
  const std::vector<float> two{1, 2}, one{1};
  CHECK(scalar_summary(tags, two) == merge_summaries({scalar_summary("a", 1), scalar_summary("b", 2)}));
  CHECK_THROWS_WITH_AS(scalar_summary(tags, one), "scalar_summary: expected a value for each of the 2 tags, got 1",
                       invalid_argument);
}

TEST_CASE("text is a tensor of strings for the plugin \"text\"") {
  const auto v = text_summary("t", "hi");
  REQUIRE(v.size() == 1);
  CHECK(v[0].kind == value_kind::tensor);
  // TensorProto: dtype 7, an empty shape, "hi"; SummaryMetadata: plugin_data { plugin_name "text" }.
  CHECK(v[0].bytes == from({0x08, 7, 0x12, 0, 0x42, 2, 'h', 'i'}));
  CHECK(v[0].metadata == from({0x0a, 6, 0x0a, 4, 't', 'e', 'x', 't'}));

  const std::vector<std::string> cells{"a", "b"};
  const std::vector<std::int64_t> extents{1, 2};
  CHECK(text_summary("t", cells, extents)[0].bytes ==
        from({0x08, 7, 0x12, 8, 0x12, 2, 0x08, 1, 0x12, 2, 0x08, 2, 0x42, 1, 'a', 0x42, 1, 'b'}));
  const std::vector<std::int64_t> wrong{2, 2}, negative{-1};
  CHECK_THROWS_WITH_AS(text_summary("t", cells, wrong),
                       "text_summary(\"t\"): expected 4 cells for these extents, got 2", invalid_argument);
  CHECK_THROWS_AS(text_summary("t", cells, negative), invalid_argument);
}

TEST_CASE("merging keeps the order and refuses a tag that stands twice") {
  const auto all = merge_summaries({scalar_summary("a", 1), scalar_summary("", 2), scalar_summary("", 3)});
  REQUIRE(all.size() == 3);
  CHECK(all[0].tag == "a");
  CHECK(all[2].simple_value == 3);
  CHECK_THROWS_WITH_AS(merge_summaries({scalar_summary("a", 1), scalar_summary("a", 2)}),
                       "Duplicate tag a found in summary inputs; give one of them another name", invalid_argument);
  CHECK(merge_summaries(std::span<const summary_values>()).empty());
  CHECK(merge_summary({scalar_summary("a", 1), scalar_summary("b", 2)}).size() == 2);
}

TEST_CASE("the fraction of zeros") {
  const std::vector<float> x{0, -0.0f, 1, NAN};
  CHECK(zero_fraction(std::span<const float>(x)) == 0.5f);
  CHECK(std::isnan(zero_fraction(std::span<const float>())));
}
