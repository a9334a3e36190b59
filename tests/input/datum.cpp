#include <gradus/input/datum.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("arrays by number and by name") {
  datum d({{"x", float32, {2, 3}}, {"n", int64, {}}, {"word", uint8, {any_extent}}});
  CHECK(d.size() == 3);
  CHECK(d[0].dims == extents{2, 3});
  CHECK(d["word"].dims == extents{0});
  d.set<std::int64_t>("n", 7);
  CHECK(d.value<std::int64_t>(1) == 7);
  d.values<float>("x")[5] = 2.5F;
  CHECK(std::as_const(d).values<float>(0)[5] == 2.5F);
  d.resize("word", {4});
  CHECK(d.values<std::uint8_t>(2).size() == 4);
  CHECK(message_of(status::not_found, [&] { d["y"]; }) ==
        "no component is called \"y\"; give one of the names x, n, word");
  CHECK(message_of(status::out_of_range, [&] { d[3]; }) ==
        "there is no component 3; give a number below 3, or one of the names x, n, word");
  CHECK(message_of(status::invalid_argument, [&] { d.values<double>("x"); }) ==
        "component \"x\" holds float32, not float64; read it as float32, or make it float64");
  CHECK(message_of(status::invalid_argument, [] {
          datum(vectors).value<std::int64_t>(0);
        }).find("has no first value") != std::string::npos);
}

TEST_CASE("a negative extent") {
  datum d(vectors);
  CHECK(message_of(status::invalid_argument, [&] { d.resize(0, {-2}); }) ==
        "\"value\": an array in memory has extents from 0 on, not [-2]");
}

TEST_CASE("equal by content, and what it had before does not matter") {
  datum a(scalar), b;
  b.add("other", float32, {9});
  b.conform(scalar);
  CHECK(a == b);
  a.set<std::int64_t>(0, 1);
  CHECK(a != b);
  b = a;
  CHECK(a == b);
  datum rows;
  rows.conform(scalar, 4);
  CHECK(rows[0].dims == extents{4});
  rows.cut(2);
  CHECK(rows[0].dims == extents{2});
}

TEST_CASE("in a position; what is damaged is refused before memory is asked for") {
  datum a(vectors);
  a.resize(0, {3});
  a.set<std::int64_t>(0, 5);
  std::vector<std::byte> bytes;
  position_writer to(bytes);
  a.write(to);
  REQUIRE(bytes.size() == 8 + 8 + 24);
  datum b;
  position_reader from(bytes, true);
  b.read(from, vectors);
  CHECK(a == b);
  for (const int at : {0, 8, 13, 15}) {
    auto bad = bytes;
    bad[static_cast<std::size_t>(at)] = std::byte{0x7f};
    position_reader reader(bad, true);
    message_of(status::data_loss, [&] { b.read(reader, vectors); });
  }
  position_reader fixed(bytes, true);
  CHECK(message_of(status::data_loss, [&] {
          b.read(fixed, {{"value", int64, {4}}});
        }).find("an extent of an array") != std::string::npos);
}

TEST_CASE("specs") {
  components a = {{"x", float32, {2, 3}}};
  CHECK(has_fixed_size(a));
  CHECK(detail::unite(a, {{"x", float32, {2, 4}}}));
  CHECK(a[0].dims == extents{2, any_extent});
  CHECK(!has_fixed_size(a));
  CHECK(!detail::unite(a, {{"x", float64, {2, 4}}}));
  CHECK(detail::agrees({2, 9}, a[0].dims));
  CHECK(!detail::agrees({3, 9}, a[0].dims));
}
