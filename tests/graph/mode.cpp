#include <gradus/graph/mode.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("modes have the names, which logs and errors show") {
  static_assert(name_of(mode::train) == "train");
  static_assert(name_of(mode::evaluate) == "evaluate");
  CHECK(name_of(mode::predict) == "predict");
}
