#include <gradus/update/matching.hpp>

#include <gradus/update/freeze.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "steps.hpp"

using namespace gradus;

TEST_CASE("an expression is searched for in the name") {
  CHECK(matching("kernel$")("encoder/kernel", {}));
  CHECK_FALSE(matching("kernel$")("encoder/kernel/Adam", {}));
  CHECK(matching("^encoder/")("encoder/kernel", {}));
  CHECK_FALSE(matching("^encoder/")("my/encoder/kernel", {}));
  CHECK(matching("(bias|gain)")("norm/gain", {}));
  CHECK(matching("")("anything", {}));
  static_assert(variable_mask<matching>);
}
TEST_CASE("what is no expression is refused") {
  steps::refused([] { matching("("); }, "\"(\" is no regular expression");
}
TEST_CASE("a mask in a policy") {
  steps::updater<freeze<matching>, gradient_descent> u{freeze{matching("bias$")}, gradient_descent{.rate = 1}};
  steps::vec kernel{1.0}, bias{1.0};
  u.track("h/kernel", kernel), u.track("h/bias", bias);
  u.apply({{"h/kernel", steps::vec{1.0}}, {"h/bias", steps::vec{1.0}}});
  CHECK(kernel[0] == 0);
  CHECK(bias[0] == 1);
}
