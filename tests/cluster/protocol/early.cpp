#include "gradus/cluster/protocol/early.hpp"

#include <doctest/doctest.h>

using namespace gradus::detail;

TEST_CASE("decisions wait for their turn, each once, and no more than are allowed") {
  early_decisions all;
  early_decisions::decision d;
  const contribution_id a[] = {{1, 2, 3}}, b[] = {{4, 5, 6}, {7, 8, 9}};
  all.add(12, a, 2);
  all.add(12, b, 2);
  all.add(11, b, 2);
  all.add(13, b, 2);  // one too many
  CHECK(all.size() == 2);
  CHECK_FALSE(all.take(10, d));
  REQUIRE(all.take(11, d));
  CHECK((d.order == 11 && d.ids.size() == 2 && d.ids[1] == b[1]));
  CHECK_FALSE(all.take(11, d));
  REQUIRE(all.take(20, d));
  CHECK((d.order == 12 && d.ids.size() == 1 && d.ids[0] == a[0]));
  CHECK(all.size() == 0);
}
