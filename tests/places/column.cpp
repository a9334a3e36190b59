// A template: tests/places/places.py adds it.
#include <gradus/columns/parity_column.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

TEST_CASE("parity_column: even and odd, -1 in a dense feature is missing") {
  const auto batch = batch_of(2, {ragged_ints("n", {{4, -3}, {}}), dense_ints("one", 1, {-1, 7})});
  CHECK(parity_column("n").ids(batch).ids == id_list{0, 1});
  const id_lists one = parity_column("one").ids(batch);
  CHECK(one.splits == id_list{0, 0, 1});
  CHECK(one.ids == id_list{1});
  CHECK(refusal_of([] { parity_column(""); }) == "parity_column: expected the name of a feature, found \"\"");
}
