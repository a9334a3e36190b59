#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>

using namespace gradus;

namespace {
constexpr card unknown_card{"Unknown", 1};
}

TEST_CASE("the registry knows the built-in ops, and says what to do about others") {
  using registry = cpu<fast>::registry<>;
  CHECK((registry::find(&cards::matmul).run != nullptr));
  CHECK((registry::find(&cards::add).run == nullptr));  // a formula, part of a fused sweep
  CHECK((registry::find(&cards::add).chunk[cpu<fast>::type_index(int32)] != nullptr));
  CHECK((registry::find(&cards::exp).chunk[cpu<fast>::type_index(int32)] == nullptr));  // not defined for integers
  CHECK_THROWS_WITH_AS(registry::find(&unknown_card), doctest::Contains("the interpreter has no kernel for Unknown"),
                       unimplemented);
}
