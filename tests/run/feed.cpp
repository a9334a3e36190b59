#include <gradus/run/feed.hpp>

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

using namespace gradus;

TEST_CASE("a fetch is a tensor or a name") {
  graph g;
  const value x = g.placeholder("x", {2});
  const fetch by_value(x), by_name("x"), by_text(std::string_view("x"));
  CHECK((by_value.g == &g && by_value.id == x.id && by_value.name.empty()));
  CHECK((by_name.g == nullptr && by_name.name == "x" && by_text.name == "x"));
}

TEST_CASE("a feed looks at vectors, spans and views, with their types and extents") {
  graph g;
  const value x = g.placeholder("x", {2});
  const std::vector<float> floats{1, 2, 3};
  const feed a(x, floats), b("x", std::span(floats).first(2));
  CHECK((a.g == &g && a.id == x.id && a.data.type == float32 && a.data.size() == 3));
  CHECK((b.g == nullptr && b.name == "x" && b.data.size() == 2));
  CHECK(a.data.data == reinterpret_cast<const std::byte*>(floats.data()));
  const std::array<std::int64_t, 4> four{1, 2, 3, 4};
  const feed c("x", const_tensor_view(int64, {2, 2}, reinterpret_cast<const std::byte*>(four.data())));
  CHECK((c.data.type == int64 && c.data.dims == extents{2, 2}));
}

TEST_CASE("a feed of a number holds a copy of it") {
  graph g;
  const value x = g.placeholder("x", {}, float64);
  std::vector<feed> feeds;
  for (const double number : {0.5, 1.5, 2.5}) feeds.push_back({x, number});
  const std::vector<feed> copies = feeds;
  feeds.clear();
  CHECK((copies[1].id == x.id && copies[1].data.type == float64 && copies[1].data.dims == extents{}));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(*reinterpret_cast<const double*>(copies[i].data.data) == 0.5 + static_cast<double>(i));
  feed one("y", std::int32_t{3});
  one = copies[2];
  CHECK(*reinterpret_cast<const double*>(one.data.data) == 2.5);
  one = feed("flag", true);
  CHECK((one.data.type == boolean && one.data.size() == 1 && *reinterpret_cast<const bool*>(one.data.data)));
}
