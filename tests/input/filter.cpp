#include <gradus/input/filter.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("what it keeps") {
  const auto odd = [](const datum& e) { return value_of(e) % 2 == 1; };
  CHECK(all_of(range_dataset(7).filter(odd)) == ints{1, 3, 5});
  CHECK(range_dataset(7).filter(odd).cardinality() == unknown_cardinality);
  CHECK(range_dataset(7).filter(odd, {.stateful = true}).external_state() == "a function of filter");
  resumes([&] { return range_dataset(11).filter(odd); });
}
