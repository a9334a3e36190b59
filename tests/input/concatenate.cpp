#include <gradus/input/concatenate.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>

TEST_CASE("one after the other") {
  CHECK(all_of(range_dataset(3).concatenate(range_dataset(7, 9))) == ints{0, 1, 2, 7, 8});
  CHECK(range_dataset(3).concatenate(range_dataset(7, 9)).cardinality() == 5);
  auto b = range_dataset(3).batch(2).concatenate(range_dataset(4).batch(3));
  CHECK(b.batch_size() == 3);
  CHECK(lists_of(std::move(b)) == std::vector<ints>{{0, 1}, {2}, {0, 1, 2}, {3}});
  std::int64_t values[8];
  const tensor_view view(std::span<std::int64_t>(values), {8});
  auto d = range_dataset(3).concatenate(range_dataset(7, 9));
  CHECK(d.next_batch({&view, 1}, 8) == 5);  // across the seam
  CHECK(values[4] == 8);
  CHECK(message_of(status::invalid_argument, [] { range_dataset(3).concatenate(range_dataset(0, 1, 1, "other")); }) ==
        "concatenate: expected two datasets of the same components, found value int64 [] and other int64 []");
  resumes([] { return range_dataset(3).concatenate(range_dataset(5).shuffle(5, 1)).repeat(2); });
}
