#include <gradus/input/batch.hpp>

#include "pipelines.hpp"

using namespace pipelines;
using list = std::vector<std::int32_t>;

TEST_CASE("batches and the remainder") {
  const auto five = iota(5);
  const auto all = [](auto d) { return drain_batches(d); };
  CHECK(all(numbers(five).batch(2)) == std::vector<list>{{0, 1}, {2, 3}, {4}});
  CHECK(all(numbers(five).batch(2, true)) == std::vector<list>{{0, 1}, {2, 3}});
  CHECK(all(numbers(five).batch(5)) == std::vector<list>{five});
  CHECK(all(numbers(five).batch(9)) == std::vector<list>{five});
  CHECK(all(numbers(five).batch(9, true)).empty());
  auto rounds = numbers(five).batch(2, true).repeat(2);
  CHECK(drain_batches(rounds) == std::vector<list>{{0, 1}, {2, 3}, {0, 1}, {2, 3}});
}

TEST_CASE("a batch of nothing") {
  const auto five = iota(5);
  CHECK(message_of(status::invalid_argument, [&] { numbers(five).batch(0); }) ==
        "batch(0): expected a batch of at least one element");
}
