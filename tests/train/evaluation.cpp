#include "gradus/train/evaluation.hpp"

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("evaluation: a name that it has not is refused with those that it has") {
  const evaluation nothing;
  CHECK(nothing.values().empty());
  CHECK(nothing.global_step() == 0);
  CHECK_THROWS_AS(nothing["accuracy"], error_of<status::not_found>);
  CHECK(predictions{}.size() == 0);
}
