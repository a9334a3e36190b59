#include <gradus/update/setting.hpp>

#include "trajectory.hpp"

using namespace gradus;
using trajectory::set;

TEST_CASE("check_setting names rule, setting, what was expected and what came") {
  check_setting(true, "Rule", "size", 0, "> 0");
  CHECK_THROWS_WITH_AS(check_setting(false, "Rule", "size", -2.5, "> 0"), "Rule: expected `size` > 0, found -2.5",
                       invalid_argument);
}
