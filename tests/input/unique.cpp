#include <gradus/input/unique.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/map.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("each once") {
  const auto mod = [] { return range_dataset(20).map([](datum& e) { e.set(0, value_of(e) * 7 % 5); }); };
  CHECK(all_of(mod().unique()) == ints{0, 2, 4, 1, 3});
  resumes([&] { return mod().unique().repeat(2); });
}
