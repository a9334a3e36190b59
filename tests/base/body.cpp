#include <gradus/base/body.hpp>

#include <doctest/doctest.h>

namespace {

GRADUS_BODY int three() { return 3; }

TEST_CASE("a body is inline, or a program's own when the library is compiled") { CHECK(three() == 3); }

}  // namespace
