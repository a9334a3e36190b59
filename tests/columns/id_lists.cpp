#include <gradus/columns/id_lists.hpp>

#include <doctest/doctest.h>

#include "feature_data.hpp"

using namespace gradus;
using columns_test::id_list;

TEST_CASE("lists of ids become arrays, short rows filled with -1 and weight 0") {
  id_lists a;
  a.add(4), a.add(2), a.end_row();
  a.end_row();
  a.add(7), a.end_row();
  CHECK(a.rows() == 3);
  CHECK(a.longest() == 2);
  CHECK(a.padded() == id_list{4, 2, -1, -1, 7, -1});
  CHECK(a.padded(3) == id_list{4, 2, -1, -1, -1, -1, 7, -1, -1});
  CHECK(a.padded_weights() == std::vector<float>{1, 1, 0, 0, 1, 0});
  a.weights = {0.5f, -1, 3};
  CHECK(a.padded_weights(2) == std::vector<float>{0.5f, -1, 0, 0, 3, 0});
  CHECK(columns_test::refusal_of([&] { a.padded(1); }) ==
        "example 0 of the batch has 2 ids, expected at most 1; give more room");
  id_list small(5);
  CHECK(columns_test::refusal_of([&] { a.pad_ids(2, small); }) ==
        "ids of 3 examples, 2 each: expected room for 6 of them, found 5");
  a.clear();
  CHECK(a == id_lists{});
  CHECK(a.padded().empty());
}
