#include <gradus/input/iterate.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("a loop takes what it reads") {
  auto d = range_dataset(6);
  ints seen;
  for (const datum& e : d) {
    seen.push_back(value_of(e));
    if (seen.size() == 2) break;
  }
  for (const datum& e : d) seen.push_back(value_of(e));
  CHECK(seen == ints{0, 1, 2, 3, 4, 5});
}
