#include <gradus/input/combinators.hpp>

#include "data.hpp"

using namespace data_tests;

// All of them at random: tests/whole/streams.cpp.
TEST_CASE("in one expression") {
  const auto make = [] {
    return range_dataset(30)
        .shuffle(30, 7)
        .map([](datum& e) { e.set(0, value_of(e) + 1); }, {.parallel = 2})
        .filter([](const datum& e) { return value_of(e) % 2 == 0; })
        .apply([](auto&& d) { return std::move(d).concatenate(counter_dataset().take(3)); })
        .repeat(2)
        .batch(4)
        .prefetch(2);
  };
  auto d = make();
  static_assert(batched_dataset<decltype(d)>);
  CHECK(d.batch_size() == 4);
  CHECK(all_of(std::move(d)).size() == 36);
  resumes([&] { return make(); });
}

TEST_CASE("every stage can be iterated over") {
  auto cached = range_dataset(4).cache();
  auto shuffled = counter_dataset().take(4).shuffle(2);
  ints seen;
  for (const datum& e : cached) seen.push_back(value_of(e));
  CHECK(seen == ints{0, 1, 2, 3});
  for (const datum& e : shuffled) seen.push_back(value_of(e));
  CHECK(seen.size() == 8);
}
