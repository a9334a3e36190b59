#include <gradus/input/cardinality.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("TensorFlow's rules") {
  using namespace gradus::detail;
  constexpr auto all = std::numeric_limits<std::int64_t>::max();
  CHECK(cardinality_repeated(5, 3) == 15);
  CHECK(cardinality_repeated(5, all) == infinite_cardinality);
  CHECK(cardinality_repeated(0, all) == 0);
  CHECK(cardinality_repeated(unknown_cardinality, 0) == 0);
  CHECK(cardinality_repeated(unknown_cardinality, all) == unknown_cardinality);
  CHECK(cardinality_repeated(all / 2, 3) == unknown_cardinality);
  CHECK(cardinality_taken(infinite_cardinality, 4) == 4);
  CHECK(cardinality_taken(unknown_cardinality, 4) == unknown_cardinality);
  CHECK(cardinality_taken(3, 4) == 3);
  CHECK(cardinality_taken(3, all) == 3);
  CHECK(cardinality_skipped(3, 4) == 0);
  CHECK(cardinality_skipped(9, 4) == 5);
  CHECK(cardinality_skipped(9, all) == 0);
  CHECK(cardinality_skipped(infinite_cardinality, 4) == infinite_cardinality);
  CHECK(cardinality_batched(10, 3, false) == 4);
  CHECK(cardinality_batched(10, 3, true) == 3);
  CHECK(cardinality_concatenated(2, 3) == 5);
  CHECK(cardinality_concatenated(unknown_cardinality, infinite_cardinality) == infinite_cardinality);
  CHECK(cardinality_concatenated(2, unknown_cardinality) == unknown_cardinality);
  CHECK(cardinality_zipped(infinite_cardinality, 3) == 3);
  CHECK(cardinality_zipped(unknown_cardinality, 3) == unknown_cardinality);
  CHECK(cardinality_zipped(unknown_cardinality, 0) == 0);
}
