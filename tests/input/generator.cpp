#include <gradus/input/generator.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
generated_dataset numbers(int size, bool stateful = false) {
  return from_generator(scalar,
                        [size] {
                          return [i = 0, size](datum& e) mutable {
                            e.set<std::int64_t>(0, i);
                            return i++ < size;
                          };
                        },
                        {.stateful = stateful});
}
}  // namespace

TEST_CASE("a function's elements") {
  CHECK(all_of(numbers(4).repeat(2)) == ints{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(all_of(numbers(9).batch(4).take(2)) == ints{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(numbers(4).cardinality() == unknown_cardinality);
  resumes([] { return numbers(7).repeat(2); });
  CHECK(message_of(status::invalid_argument, [] {
          all_of(from_generator(scalar, [] { return [](datum& e) { return e.resize(0, {2}), true; }; }));
        }).starts_with("from_generator's function: expected elements of value int64 []"));
}

TEST_CASE("it may be another one after a restart, so saving asks") {
  auto d = numbers(5, true);
  std::vector<std::byte> at;
  CHECK(message_of(status::failed_precondition, [&] { d.save(at); }).find("position: from_generator; say") !=
        std::string::npos);
  CHECK(from_generator(scalar, [] { return [](datum&) { return false; }; }).external_state() == "from_generator");
  datum e;
  for (int i = 0; i < 3; ++i) d.next(e);
  d.save(at, external_state_policy::ignore, [](auto) {});
  auto shorter = numbers(2);
  shorter.load(at);
  CHECK(message_of(status::data_loss, [&] {
          shorter.next(e);
        }).find("after 3 elements, but the function made only 2") != std::string::npos);
}

TEST_CASE("a function that raises while it is moved to its position is moved again by the next call") {
  int raises_at = -1;
  const auto made = [&] {
    return from_generator(scalar,
                          [&] {
                            return [&, i = 0](datum& e) mutable {
                              if (i == raises_at) raises_at = -1, raise(status::unavailable, "a device that is away");
                              e.set<std::int64_t>(0, i++);
                              return true;
                            };
                          },
                          {.stateful = false});
  };
  auto first = made();
  datum e;
  for (int i = 0; i < 10; ++i) first.next(e);
  std::vector<std::byte> position;
  first.save(position);
  auto again = made();
  again.load(position);
  raises_at = 5;
  CHECK_THROWS_AS(again.next(e), unavailable);
  REQUIRE(again.next(e));
  CHECK(e.value<std::int64_t>(0) == 10);
}
