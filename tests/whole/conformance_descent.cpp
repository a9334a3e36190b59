// without sanitizers: arithmetic; conformance_norms and conformance_matrix run the same loops under them
// one thread: nothing here runs at the same time
// Rules without a second moment.
#include <gradus/update/rules/add_sign.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/momentumw.hpp>
#include <gradus/update/rules/power_sign.hpp>
#include <gradus/update/rules/proximal_gradient_descent.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("gradient_descent conforms") { conforms(gradient_descent{}); }
TEST_CASE("proximal_gradient_descent conforms") { conforms(proximal_gradient_descent{.l1 = 0.1, .l2 = 0.2}); }
TEST_CASE("momentum conforms") {
  conforms(momentum{});
  conforms(momentum{.use_nesterov = true}, {.wrappers = false});
}
TEST_CASE("momentumw conforms") {
  conforms(momentumw{.weight_decay = 0.01});
  conforms(momentumw{.use_nesterov = true, .weight_decay = 0.01}, {.wrappers = false});
}
TEST_CASE("add_sign conforms") {
  conforms(add_sign{});
  conforms(add_sign{.sparse = sparse_mode::lazy}, {.wrappers = false});
}
TEST_CASE("power_sign conforms") {
  conforms(power_sign{});
  conforms(power_sign{.sparse = sparse_mode::lazy}, {.wrappers = false});
}
