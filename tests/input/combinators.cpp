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

TEST_CASE("a component without a dtype, or a second one of its name, is refused where it is announced") {
  const auto nothing = [](const datum&, datum&) {};
  const auto none = [](const datum&) -> any_dataset { return range_dataset(1); };
  const auto refused = [&](const components& to, std::string_view stage, const std::string& words) {
    const std::function<void()> all[] = {
        [&] { range_dataset(3).map(to, nothing); },
        [&] { range_dataset(3).flat_map(to, none); },
        [&] { range_dataset(3).interleave(to, none, {}); },
        [&] {
          range_dataset(3).group_by_window(
              to, [](const datum&) { return std::int64_t{0}; }, [](std::int64_t, any_dataset w) { return w; },
              [](std::int64_t) { return std::int64_t{2}; });
        },
        [&] { from_generator(to, [] { return [](datum&) { return false; }; }); },
        [&] { from_elements(to, {}); },
    };
    int said = 0;
    for (const auto& make : all) {
      const std::string message = message_of(status::invalid_argument, make);
      INFO(message);
      CHECK(message.find(words) != std::string::npos);
      said += message.starts_with(stage);
    }
    CHECK(said == 1);
  };
  refused({{"x", float32, {}}, {"y", dtype::none, {}}}, "map: ", "component \"y\" has no dtype; write {\"y\", float32");
  refused({{"y", float32, {}}, {"y", int32, {}}}, "from_generator: ", "two components are called \"y\"; rename one");
}
