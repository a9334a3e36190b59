#include "gradus/cluster/protocol/hold.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("one worker holds at a time, and what it said before is of no use any more") {
  hold_place h(2);
  CHECK((!h.is_held() && h.next(100) == never_due));
  CHECK(h.take({0, 5, 1}, 3, 10));
  CHECK(h.take({0, 5, 1}, 3, 50));  // again: since the first
  CHECK(h.next(100) == 110);
  CHECK(!h.take({1, 5, 1}, 0, 50));
  h.release({1, 5, 1});
  h.release({0, 5, 0}), h.release({0, 4, 9});
  CHECK(h.is_held());
  h.release({0, 5, 1});
  CHECK(!h.is_held());
  CHECK(!h.take({0, 5, 1}, 3, 60));  // it came late
  CHECK(!h.take({1, 5, 1}, 0, 60));  // released before it was there
  CHECK(h.take({1, 5, 2}, 0, 60));
  CHECK(h.holder() == contribution_id{1, 5, 2});
  // The same worker, later: the release was lost.
  CHECK(h.take({1, 5, 3}, 0, 90));
  CHECK(!h.take({1, 5, 2}, 0, 90));
  CHECK(h.holder() == contribution_id{1, 5, 3});
  CHECK(h.next(100) == 190);
  // A new incarnation begins to count again.
  h.forget(0);
  CHECK(h.is_held());
  h.forget(1);
  CHECK(!h.is_held());
  CHECK(h.take({1, 6, 1}, 0, 100));
}

TEST_CASE("a hold ends by its deadline, and when its worker is heard to go on") {
  hold_place h(2);
  h.take({0, 5, 1}, 3, 10);
  h.expire(109, 100);
  CHECK(h.is_held());
  h.expire(110, 100);
  CHECK(!h.is_held());
  CHECK(!h.take({0, 5, 1}, 3, 120));  // the worker has to hold anew
  CHECK(h.take({0, 5, 2}, 3, 120));
  h.goes_on(0, 5, 3), h.goes_on(0, 4, 4), h.goes_on(1, 5, 4);
  CHECK(h.is_held());
  h.goes_on(0, 5, 4);
  CHECK(!h.is_held());
}
