#include <gradus/input/memory.hpp>

#include "pipelines.hpp"

using namespace pipelines;

TEST_CASE("spans: names, values, extents") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::int32_t y[] = {7, 8, 9};
  const std::vector<double> z = {0.5, 1.5, 2.5};
  auto d = from_spans("x", x, extents{2}, "y", y, "z", z);
  CHECK(d.size() == 3);
  REQUIRE(d.element_spec().size() == 3);
  CHECK(d.element_spec()[0] == component{"x", float32, {2}});
  CHECK(d.element_spec()[1] == component{"y", int32, {}});
  CHECK(d.element_spec()[2] == component{"z", float64, {}});

  float a[8] = {};
  std::int32_t b[4] = {};
  double c[4] = {};
  const tensor_view out[] = {{std::span<float>(a), {4, 2}}, std::span<std::int32_t>(b), std::span<double>(c)};
  CHECK(d.next_batch(out, 2) == 2);
  CHECK((a[0] == 1 && a[3] == 4 && a[4] == 0 && b[1] == 8 && c[1] == 1.5 && c[2] == 0));
  CHECK(d.next_batch(out, 2) == 1);
  CHECK((a[0] == 5 && a[1] == 6 && b[0] == 9 && c[0] == 2.5));
  CHECK(d.next_batch(out, 2) == 0);
  d.rewind();
  CHECK(d.next_batch(out, 4) == 3);
  CHECK((a[5] == 6 && b[2] == 9 && c[2] == 2.5));
}

TEST_CASE("spans in braces") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::int32_t y[] = {7, 8, 9};
  auto d = from_spans({{"x", x, {2}}, {"y", y}});
  CHECK(to_text(d.element_spec()) == "x float32 [2], y int32 []");
  CHECK(d.size() == 3);
  auto one = from_spans({{"y", y}});
  CHECK(to_text(one.element_spec()) == "y int32 []");
}

TEST_CASE("views") {
  const std::uint8_t x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto d = from_memory({{"x", const_tensor_view(std::span<const std::uint8_t>(x), {2, 2, 2})}});
  CHECK(to_text(d.element_spec()) == "x uint8 [2, 2]");
  std::uint8_t out[4] = {};
  const tensor_view view(std::span<std::uint8_t>(out), {2, 2});
  CHECK(d.next({&view, 1}));
  CHECK(d.next({&view, 1}));
  CHECK((out[0] == 5 && out[3] == 8));
  CHECK_FALSE(d.next({&view, 1}));
}

TEST_CASE("no elements") {
  const std::vector<std::int32_t> none;
  auto d = numbers(none);
  CHECK(drain(d).empty());
  auto r = numbers(none).shuffle(3).repeat();
  CHECK(drain(r).empty());
}

TEST_CASE("arrays that make no dataset") {
  const std::vector<float> five(5), six(6);
  const float scalar = 1;
  CHECK(message_of(status::invalid_argument, [&] { from_spans("x", six, "y", five); }) ==
        "the array \"x\" has 6 elements, \"y\" has 5; expected the same number: give as many, or the extents of one "
        "element");
  CHECK(message_of(status::invalid_argument, [&] { from_spans("x", five, extents{2}); }) ==
        "\"x\" has 5 values, which elements of extents [2] (2 values each) do not divide; give the extents of one "
        "element");
  CHECK(message_of(status::invalid_argument, [&] { from_spans("x", five, "x", five); }) ==
        "two arrays are called \"x\"; rename one of them");
  CHECK(message_of(status::invalid_argument, [&] { from_memory({}); }) ==
        "a dataset needs at least one array, found none");
  CHECK(message_of(status::invalid_argument, [&] {
          from_memory({{"x", const_tensor_view(std::span<const float>(&scalar, 1), {})}});
        }) == "the array \"x\" is a scalar; expected its first extent to count the elements");
}
