// without sanitizers: arithmetic; whole/conformance_{norms,matrix} run the same loops under them
// Rules that divide by accumulated squares.
#include <gradus/update/rules/adadelta.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adagrad_da.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/proximal_adagrad.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("adagrad conforms") { conforms(adagrad{}); }
TEST_CASE("proximal_adagrad conforms") { conforms(proximal_adagrad{.l1 = 0.01, .l2 = 0.02}); }
TEST_CASE("adadelta conforms") { conforms(adadelta{}); }
TEST_CASE("rmsprop conforms") {
  conforms(rmsprop{});
  conforms(rmsprop{.momentum = 0.9, .initial_rms = 0}, {.wrappers = false});
}
TEST_CASE("centered_rmsprop conforms") { conforms(centered_rmsprop{.momentum = 0.9}); }
TEST_CASE("adagrad_da conforms") { conforms(adagrad_da{.l1 = 0.01, .l2 = 0.02}); }
TEST_CASE("ftrl conforms") {
  conforms(ftrl{.l1 = 0.01, .l2 = 0.02, .l2_shrinkage = 0.01});
  conforms(ftrl{.learning_rate_power = -0.7, .beta = 0.1}, {.wrappers = false});
}
