// without sanitizers: arithmetic; whole/conformance_{norms,matrix} run the same loops under them
// The optimizers of TensorFlow 1.x.
#include "convergence.hpp"

#include <gradus/update/rules/adadelta.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adagrad_da.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/add_sign.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lars.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/momentumw.hpp>
#include <gradus/update/rules/power_sign.hpp>
#include <gradus/update/rules/proximal_adagrad.hpp>
#include <gradus/update/rules/proximal_gradient_descent.hpp>
#include <gradus/update/rules/rmsprop.hpp>

using namespace gradus;
using convergence::converges;

TEST_CASE("gradient_descent converges") { converges(gradient_descent{.rate = 0.05}); }
TEST_CASE("momentum converges") {
  converges(momentum{.rate = 0.02});
  converges(momentum{.rate = 0.02, .use_nesterov = true});
}
TEST_CASE("adagrad converges") { converges(adagrad{.rate = 1}); }
TEST_CASE("adagrad_da converges") { converges(adagrad_da{.rate = 1}); }
TEST_CASE("adadelta converges") { converges(adadelta{.rate = 0.1, .epsilon = 0.01}); }
TEST_CASE("rmsprop converges") {
  converges(rmsprop{.rate = 0.005});
  converges(rmsprop{.rate = 0.001, .momentum = 0.9});
}
TEST_CASE("centered_rmsprop converges") { converges(centered_rmsprop{.rate = 0.005}); }
TEST_CASE("adam converges") { converges(adam{.rate = 0.05}); }
TEST_CASE("ftrl converges") { converges(ftrl{.rate = 1}); }
TEST_CASE("the proximal rules converge") {
  converges(proximal_gradient_descent{.rate = 0.05});
  converges(proximal_adagrad{.rate = 1});
}
TEST_CASE("momentumw converges") { converges(momentumw{.rate = 0.02}); }
TEST_CASE("add_sign and power_sign converge") {
  converges(add_sign{.rate = 0.05});
  converges(power_sign{.rate = 0.05});
}
TEST_CASE("lars converges") { converges(lars{.rate = 1, .weight_decay = 0}); }
