#include <gradus/input/repeat.hpp>

#include "pipelines.hpp"

using namespace pipelines;
using list = std::vector<std::int32_t>;

TEST_CASE("repeat, take, skip of elements") {
  const auto four = iota(4);
  const auto all = [&](auto d) { return drain(d, 9); };
  CHECK(all(numbers(four).repeat(2)) == list{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(all(numbers(four).repeat()) == list{0, 1, 2, 3, 0, 1, 2, 3, 0});
  CHECK(all(numbers(four).repeat(0)) == list{});
  CHECK(all(numbers(four).take(3)) == list{0, 1, 2});
  CHECK(all(numbers(four).take(9)) == four);
  auto asked_for_more = numbers(four).take(3).batch(4);
  CHECK(drain_batches(asked_for_more) == std::vector<list>{{0, 1, 2}});
  CHECK(all(numbers(four).take(-1)) == four);
  CHECK(all(numbers(four).take(0)) == list{});
  CHECK(all(numbers(four).skip(1)) == list{1, 2, 3});
  CHECK(all(numbers(four).skip(4)) == list{});
  CHECK(all(numbers(four).skip(-1)) == list{});
  CHECK(all(numbers(four).repeat().skip(-1)) == list{});
  CHECK(all(numbers(four).skip(1).take(2).repeat(3)) == list{1, 2, 1, 2, 1, 2});
  CHECK(all(numbers(four).repeat(3).take(6).skip(3)) == list{3, 0, 1});
  CHECK(all(numbers(four).take(0).repeat()) == list{});
  CHECK(all(numbers(four).repeat(2).repeat()) == list{0, 1, 2, 3, 0, 1, 2, 3, 0});
}

TEST_CASE("repeat, take, skip of batches") {
  const auto five = iota(5);
  const auto all = [&](auto d) { return drain_batches(d, 5); };
  CHECK(all(numbers(five).batch(2).repeat(2)) == std::vector<list>{{0, 1}, {2, 3}, {4}, {0, 1}, {2, 3}});
  CHECK(all(numbers(five).batch(2).take(2)) == std::vector<list>{{0, 1}, {2, 3}});
  CHECK(all(numbers(five).batch(2).skip(1)) == std::vector<list>{{2, 3}, {4}});
  CHECK(all(numbers(five).batch(2).skip(1).repeat().take(3)) == std::vector<list>{{2, 3}, {4}, {2, 3}});
  CHECK(all(numbers(five).batch(2).repeat().skip(4)) == std::vector<list>{{2, 3}, {4}, {0, 1}, {2, 3}, {4}});
}

TEST_CASE("a position at the end of a round is in a round that gave something") {
  for (std::size_t k = 0; k <= 8; ++k) {
    CAPTURE(k);
    auto first = counted(4).repeat(2);
    auto joined = drain(first, k);
    auto second = counted(4).repeat(2);
    restore(second, position_of(first));
    for (const auto i : drain(second)) joined.push_back(i);
    CHECK(joined == list{0, 1, 2, 3, 0, 1, 2, 3});
  }
}

TEST_CASE("rewind begins again") {
  const auto four = iota(4);
  auto d = numbers(four).skip(1).repeat(2).take(5);
  const list expected = {1, 2, 3, 1, 2};
  CHECK(drain(d) == expected);
  CHECK(drain(d).empty());
  d.rewind();
  CHECK(drain(d, 2) == list{1, 2});
  d.rewind();
  CHECK(drain(d) == expected);
}

TEST_CASE("a batch above a repeat runs across the seam") {
  const auto three = iota(3);
  auto d = numbers(three).repeat().batch(4);
  CHECK(drain_batches(d, 3) == std::vector<list>{{0, 1, 2, 0}, {1, 2, 0, 1}, {2, 0, 1, 2}});
}

TEST_CASE("taken and skipped are still indexed") {
  const auto ten = iota(10);
  auto d = numbers(ten).skip(6).take(3);
  CHECK(d.size() == 3);
  CHECK(numbers(ten).skip(20).size() == 0);
  CHECK(numbers(ten).take(20).size() == 10);
  std::int32_t value = 0;
  const tensor_view view{std::span<std::int32_t>(&value, 1)};
  d.element(2, {&view, 1}, 0);
  CHECK(value == 8);
}

TEST_CASE("counts below -1") {
  const auto ten = iota(10);
  CHECK(message_of(status::invalid_argument, [&] { numbers(ten).take(-2); }) ==
        "take(-2): expected a count, or -1 for no limit");
  CHECK(message_of(status::invalid_argument, [&] { numbers(ten).repeat(-3); }) ==
        "repeat(-3): expected a count, or -1 for no limit");
}

TEST_CASE("how many there are") {
  const auto ten = iota(10);
  CHECK(numbers(ten).cardinality() == 10);
  CHECK(numbers(ten).repeat(3).take(25).skip(4).cardinality() == 21);
  CHECK(numbers(ten).repeat().cardinality() == infinite_cardinality);
  CHECK(numbers(ten).repeat().take(7).shuffle(3).batch(2).cardinality() == 4);
  CHECK(numbers(ten).batch(3, true).repeat(2).prefetch(1).cardinality() == 6);
  CHECK(counted(10).take(3).cardinality() == unknown_cardinality);
}
