#include <gradus/testing/clock.hpp>

#include <doctest/doctest.h>

TEST_CASE("a clock that is turned by hand: copies agree, the wall clock can be set, monotonic time cannot") {
  const gradus::testing::hand_clock mine(100), theirs = mine;
  CHECK(theirs.now() == 100);
  CHECK(theirs.elapsed() == 0);
  mine.advance(2.5);
  CHECK(theirs.now() == 102.5);
  CHECK(theirs.elapsed() == 2.5);
  theirs.set(7);
  CHECK(mine.now() == 7);
  CHECK(mine.elapsed() == 2.5);
  CHECK(gradus::testing::hand_clock().elapsed() == 0);
}
