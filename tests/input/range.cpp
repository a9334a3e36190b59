#include <gradus/input/range.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("numbers in a row") {
  CHECK(all_of(range_dataset(3)) == ints{0, 1, 2});
  CHECK(all_of(range_dataset(5, 12, 3)) == ints{5, 8, 11});
  CHECK(all_of(range_dataset(5, 11, 3)) == ints{5, 8});
  CHECK(all_of(range_dataset(5, 0, -2)) == ints{5, 3, 1});
  CHECK(all_of(range_dataset(5, 1, -2)) == ints{5, 3});
  CHECK(all_of(range_dataset(5, 5)).empty());
  CHECK(all_of(range_dataset(0, 5, -1)).empty());
  CHECK(range_dataset(5, 12, 3).cardinality() == 3);
  CHECK(message_of(status::invalid_argument, [] { range_dataset(0, 5, 0); }).find("not 0") != std::string::npos);
  CHECK(message_of(status::invalid_argument, [] {
          range_dataset(-2, std::numeric_limits<std::int64_t>::max());
        }).find("int64") != std::string::npos);
  static_assert(indexed_dataset<range_dataset>);
  resumes([] { return range_dataset(5, 12, 3).repeat(2); });
}

TEST_CASE("numbers for ever") {
  CHECK(all_of(counter_dataset(4, -2), 4) == ints{4, 2, 0, -2});
  CHECK(all_of(counter_dataset(std::numeric_limits<std::int64_t>::max()), 2)[1] ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(counter_dataset().cardinality() == infinite_cardinality);
  resumes([] { return counter_dataset(4, -2).take(9); });
}

TEST_CASE("random numbers") {
  const auto some = all_of(random_dataset(1), 3), again = all_of(random_dataset(1), 3);
  CHECK(some == again);
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(some[i] == philox(1).word(0, i));
  CHECK(all_of(random_dataset(2), 3) != some);
  auto skipped = random_dataset(1).skip(2);
  CHECK(all_of(skipped, 1)[0] == some[2]);
  resumes([] { return random_dataset(3).take(7).repeat(2); });
}

TEST_CASE("without a seed: state outside, and the position holds it all the same") {
  auto d = random_dataset();
  std::vector<std::byte> at;
  CHECK(message_of(status::failed_precondition, [&] { d.save(at); }).find("random_dataset without a seed") !=
        std::string::npos);
  d.save(at, external_state_policy::ignore, [](auto) {});
  auto other = random_dataset();
  other.load(at);
  CHECK(all_of(other, 5) == all_of(d, 5));
}
