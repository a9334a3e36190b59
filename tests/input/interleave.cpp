#include <gradus/input/interleave.hpp>

#include <gradus/base/sort.hpp>
#include <gradus/input/dataset.hpp>

#include <algorithm>

#include "data.hpp"

using namespace data_tests;

namespace {
any_dataset repeated_six(const datum& e) { return range_dataset(value_of(e), value_of(e) + 1).repeat(6); }
any_dataset below(const datum& e) { return range_dataset(value_of(e)); }
}  // namespace

TEST_CASE("flat_map: one after the other") {
  CHECK(all_of(range_dataset(5).flat_map(scalar, below)) == ints{0, 0, 1, 0, 1, 2, 0, 1, 2, 3});
  resumes([] { return range_dataset(6).shuffle(3, 1).flat_map(scalar, below); });
}

// The example of tf.data.Dataset.interleave's documentation.
TEST_CASE("interleave: by turns, read ahead or not") {
  const ints expected = {1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5};
  for (const bool parallel : {false, true}) {
    const interleave_options how{.cycle_length = 2, .block_length = 4, .parallel = parallel};
    CHECK(all_of(range_dataset(1, 6).interleave(scalar, repeated_six, how)) == expected);
    resumes([&] { return range_dataset(7).interleave(scalar, below, how); });
  }
}

TEST_CASE("in any order: the same elements, each dataset's in its order; and so after a restart") {
  const interleave_options how{.cycle_length = 3, .block_length = 2, .parallel = true, .deterministic = false};
  const auto make = [&] {
    return range_dataset(1, 6).interleave(
        scalar,
        [](const datum& e) {
          const auto v = value_of(e) * 10;
          return range_dataset(v, v + 6);
        },
        how);
  };
  for (std::size_t cut = 0; cut <= 30; cut += 5) {
    any_dataset d = make(), other = make();
    datum e;
    ints seen;
    for (std::size_t i = 0; i < cut && d.next(e); ++i) seen.push_back(value_of(e));
    std::vector<std::byte> at;
    d.save(at);
    other.load(at);
    while (other.next(e)) seen.push_back(value_of(e));
    gradus::detail::sort_stably(seen, [](auto a, auto b) { return a / 10 < b / 10; });
    ints expected;
    for (std::int64_t v = 10; v <= 50; v += 10)
      for (int i = 0; i < 6; ++i) expected.push_back(v + i);
    CHECK(seen == expected);
  }
}

TEST_CASE("what cannot be") {
  CHECK(message_of(status::invalid_argument, [] {
          range_dataset(3).interleave(scalar, below, {.cycle_length = 0});
        }).find("cycle_length") != std::string::npos);
  CHECK(message_of(status::invalid_argument, [] { all_of(range_dataset(3).flat_map(vectors, below)); }) ==
        "interleave: expected a function that makes datasets of value int64 [-1], it made one of value int64 []");
  const auto random = [](const datum&) { return random_dataset().take(1); };
  CHECK(message_of(status::invalid_argument, [&] {
          all_of(range_dataset(3).flat_map(scalar, random));
        }).find("declare it with .stateful = true") != std::string::npos);
  CHECK(all_of(range_dataset(3).flat_map(scalar, random, {.stateful = true})).size() == 3);
  CHECK(range_dataset(3).flat_map(scalar, random, {.stateful = true}).external_state() == "a function of flat_map");
}
