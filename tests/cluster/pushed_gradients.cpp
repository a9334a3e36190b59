// A step's gradients as slices by shard, in whatever order a step computes them.
#include <gradus/cluster/pushed_gradients.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"

using namespace gradus;
using detail::pushed_gradients;
using detail::slice_role;

TEST_CASE("dense gradients lie where they were, rows are copied with wide numbers") {
  pushed_gradients p(2);
  p.expect({.name = "a"});
  p.expect({.name = "table", .takes_rows = true, .shard = 1});
  p.expect({.name = "b", .shard = 1});
  p.expect({.name = "c"});
  std::vector<float> a{1, 2}, b{3}, c{4, 5, 6}, rows_of{7, 8, 9, 10};
  std::vector<std::int32_t> rows{3, 1};
  for (int step = 0; step < 2; ++step) {
    p.restart();
    p.add({"c", c});
    p.add({"table",
           indexed_slices(rows, const_tensor_view(float32, {2, 2}, reinterpret_cast<std::byte*>(rows_of.data())))});
    rows_of.assign(4, 0), rows.assign(2, 0);  // later calls of the step write there
    p.add({"a", a});
    p.add({"b", b});
    const auto parts = p.by_shard();
    REQUIRE(parts.size() == 2);
    REQUIRE(parts[0].size() == 2);
    CHECK(parts[0][0].name == "a");
    CHECK(parts[0][0].bytes.data() == reinterpret_cast<const std::byte*>(a.data()));
    CHECK(parts[0][0].count() == 2);
    CHECK(parts[0][1].name == "c");
    CHECK(parts[0][1].bytes.data() == reinterpret_cast<const std::byte*>(c.data()));
    REQUIRE(parts[1].size() == 3);
    CHECK(parts[1][0].name == "table");
    CHECK(parts[1][0].role == slice_role::rows);
    CHECK(parts[1][0].type == int64);
    const auto* wide = reinterpret_cast<const std::int64_t*>(parts[1][0].bytes.data());
    CHECK(wide[0] == (step == 0 ? 3 : 30));
    CHECK(wide[1] == (step == 0 ? 1 : 10));
    CHECK(parts[1][1].role == slice_role::values);
    CHECK(reinterpret_cast<const float*>(parts[1][1].bytes.data())[3] == (step == 0 ? 10 : 20));
    CHECK(parts[1][2].name == "b");
    rows = {30, 10}, rows_of = {7, 8, 9, 20};
  }
}

TEST_CASE("dense gradients are sent ahead once there are enough of a shard's, and the rest is what was not") {
  pushed_gradients p(2);
  for (const char* name : {"a", "b", "nothing", "c"}) p.expect({.name = name});
  p.expect({.name = "table", .takes_rows = true});
  p.expect({.name = "d", .shard = 1});
  std::vector<float> a{1, 2}, b{3}, c{4, 5, 6}, d{9}, none, rows_of{7, 8};
  std::vector<std::int32_t> rows{3};
  for (const bool sends : {false, true, false}) {
    CAPTURE(sends);
    std::vector<std::string> sent;
    const auto add = [&](const named_gradient& g) {
      p.add(g);
      if (sends)
        p.send_ahead(12, [&](std::uint32_t k, std::span<const detail::wire_slice> some) {
          for (const detail::wire_slice& s : some) sent.push_back(text(k, " ", s.name, "[", s.count(), "]"));
          sent.back() += ".";
        });
    };
    p.restart();
    add({"b", b});
    add({"table",
         indexed_slices(rows, const_tensor_view(float32, {1, 2}, reinterpret_cast<std::byte*>(rows_of.data())))});
    add({"d", d});  // of another shard
    add({"a", a});
    add({"nothing", none});
    add({"c", c});
    CHECK(p.by_shard()[0].size() == 6);
    CHECK(p.by_shard()[1].size() == 1);
    if (!sends) {
      CHECK(p.rest().empty());
      continue;
    }
    CHECK(sent == std::vector<std::string>{"0 b[1]", "0 a[2].", "0 nothing[0]", "0 c[3]."});
    REQUIRE(p.rest().size() == 2);
    REQUIRE(p.rest()[0].size() == 2);
    CHECK((p.rest()[0][0].role == slice_role::rows && p.rest()[0][1].role == slice_role::values));
    REQUIRE(p.rest()[1].size() == 1);
    CHECK(p.rest()[1][0].name == "d");
  }
}

TEST_CASE(
    "each part of a variable has its own rows of the gradient, the first of a table all if their norm is needed") {
  pushed_gradients p(2);
  p.expect({.name = "a"});
  p.expect({.name = "w/part_0", .dims = {2, 2}, .shard = 1, .whole = "w", .whole_dims = {3, 2}});
  p.expect({.name = "w/part_1", .dims = {1, 2}, .whole = "w", .whole_dims = {3, 2}, .first_row = 2});
  for (const bool all : {false, true}) {
    p.expect({.name = text("t", all ? 1 : 0, "/part_0"),
              .dims = {2, 1},
              .takes_rows = true,
              .whole = all ? "t1" : "t0",
              .whole_dims = {5, 1},
              .all_rows = all});
    p.expect({.name = text("t", all ? 1 : 0, "/part_1"),
              .dims = {3, 1},
              .takes_rows = true,
              .shard = 1,
              .whole = all ? "t1" : "t0",
              .whole_dims = {5, 1},
              .first_row = 2});
  }
  std::vector<float> a{9}, w{1, 2, 3, 4, 5, 6}, values{10, 20, 30, 40, 50};
  std::vector<std::int32_t> rows{4, 1, 2, 1, 4};
  const auto floats = [](const detail::wire_slice& s) {
    const auto* x = reinterpret_cast<const float*>(s.bytes.data());
    return std::vector<float>(x, x + s.count());
  };
  const auto numbers = [](const detail::wire_slice& s) {
    const auto* x = reinterpret_cast<const std::int64_t*>(s.bytes.data());
    return std::vector<std::int64_t>(x, x + s.count());
  };
  for (int step = 0; step < 2; ++step) {
    p.restart();
    p.add({"w", const_tensor_view(float32, {3, 2}, reinterpret_cast<std::byte*>(w.data()))});
    for (const char* name : {"t1", "t0"})
      p.add({name,
             indexed_slices(rows, const_tensor_view(float32, {5, 1}, reinterpret_cast<std::byte*>(values.data())))});
    p.add({"a", a});
    const auto parts = p.by_shard();
    REQUIRE(parts[0].size() == 6);
    REQUIRE(parts[1].size() == 5);
    CHECK(parts[1][0].name == "w/part_0");
    CHECK(floats(parts[1][0]) == std::vector<float>{1, 2, 3, 4});
    CHECK(parts[0][1].name == "w/part_1");
    CHECK(floats(parts[0][1]) == std::vector<float>{5, 6});
    CHECK(parts[0][1].bytes.data() == reinterpret_cast<const std::byte*>(w.data() + 4));
    CHECK(numbers(parts[0][2]) == std::vector<std::int64_t>{1, 1});
    CHECK(floats(parts[0][3]) == std::vector<float>{20, 40});
    CHECK(numbers(parts[1][1]) == std::vector<std::int64_t>{2, 0, 2});
    CHECK(floats(parts[1][2]) == std::vector<float>{10, 30, 50});
    CHECK(numbers(parts[0][4]) == std::vector<std::int64_t>{4, 1, 2, 1, 4});
    CHECK(floats(parts[0][5]) == values);
    CHECK(floats(parts[1][4]) == std::vector<float>{10, 30, 50});
  }
}

TEST_CASE("a gradient that nobody expects, and one that is missing, are refused") {
  pushed_gradients p(1);
  p.expect({.name = "a"});
  p.expect({.name = "b"});
  std::vector<float> x{1};
  CHECK(says(message_of(status::not_found, [&] { p.add({"c", x}); }), "no variable \"c\" is shared"));
  p.restart();
  p.add({"a", x});
  CHECK(says(message_of(status::internal, [&] { p.by_shard(); }), "a step gave 1 gradients of 2 variables"));
}

TEST_CASE("what is added for all shards ends the lists of this step, and is not sent ahead") {
  pushed_gradients p(2);
  p.expect({.name = "a"});
  p.expect({.name = "b"});
  p.expect({.name = "c", .shard = 1});
  std::vector<float> a{1, 2, 3}, b{4}, c{5};
  const std::vector<std::byte> more(3);
  const auto names = [](const std::vector<detail::wire_slice>& slices) {
    std::string all;
    for (const auto& s : slices) all += s.name;
    return all;
  };
  for (const bool adds : {true, false, true, true}) {
    CAPTURE(adds);
    p.restart();
    if (adds) p.add_to_all({"more", uint8, 0, more});
    p.add({"a", a});
    p.send_ahead(12, [&](std::uint32_t k, std::span<const detail::wire_slice> some) {
      CHECK((k == 0 && some.size() == 1 && some[0].name == "a"));
    });
    p.add({"b", b});
    p.add({"c", c});
    CHECK(names(p.by_shard()[0]) == (adds ? "abmore" : "ab"));
    CHECK(names(p.by_shard()[1]) == (adds ? "cmore" : "c"));
    const auto rest = p.rest();
    REQUIRE(rest.size() == 2);
    CHECK(names(rest[0]) == (adds ? "bmore" : "b"));
    CHECK(names(rest[1]) == (adds ? "cmore" : "c"));
  }
}
