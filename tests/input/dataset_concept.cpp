#include <gradus/input/dataset_concept.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

static_assert(indexed_dataset<range_dataset> && !datum_dataset<range_dataset>);
static_assert(dataset<counter_dataset> && !indexed_dataset<counter_dataset>);
static_assert(batched_dataset<batches<range_dataset>> && !indexed_dataset<batches<range_dataset>>);
static_assert(datum_dataset<any_dataset> && !dataset<int>);

TEST_CASE("units as data: elements, batches with their rows") {
  datum e;
  auto elements = range_dataset(2);
  CHECK(detail::read_unit(elements, e));
  CHECK(e[0].dims == extents{});
  auto units = range_dataset(3).batch(2);
  CHECK(detail::read_unit(units, e));
  CHECK(e[0].dims == extents{2});
  CHECK(detail::read_unit(units, e));
  CHECK(e[0].dims == extents{1});
  CHECK(!detail::read_unit(units, e));
  CHECK(detail::counted<batches<range_dataset>>(5) == 1);
  CHECK(detail::counted<range_dataset>(5) == 5);
}
