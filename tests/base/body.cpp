#include <gradus/base/body.hpp>

#include <doctest/doctest.h>

namespace {

GRADUS_BODY int three() { return 3; }

TEST_CASE("a body is inline, or a program's own when the library is compiled") { CHECK(three() == 3); }

}  // namespace

// Constant expressions evaluate it in both forms. tests/doors/doors.py looks at the code that a program's own file has.
namespace body_test {
GRADUS_CARD_FUNCTION void doubles(int& x) { x *= 2; }
}  // namespace body_test
static_assert([] {
  int x = 3;
  body_test::doubles(x);
  return x;
}() == 6);
