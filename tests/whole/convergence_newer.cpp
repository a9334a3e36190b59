// without sanitizers: arithmetic; whole/conformance_{norms,matrix} run the same loops under them
// The optimizers since TensorFlow 1.x.
#include "convergence.hpp"

#include <gradus/update/rules/adafactor.hpp>
#include <gradus/update/rules/adamax.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/amsgrad.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lion.hpp>
#include <gradus/update/rules/muon.hpp>
#include <gradus/update/rules/nadam.hpp>
#include <gradus/update/rules/schedule_free.hpp>
#include <gradus/update/rules/soap.hpp>
#include <gradus/update/rules/sophia.hpp>

using namespace gradus;
using convergence::converges;

TEST_CASE("adamw converges") { converges(adamw{.rate = 0.05, .weight_decay = 1e-6}); }
TEST_CASE("nadam converges") {
  for (const auto form : {nadam_form::torch, nadam_form::constant, nadam_form::tensorflow})
    converges(nadam{.rate = 0.05, .form = form}, {.rosenbrock = 2e-3});
}
TEST_CASE("adamax converges") { converges(adamax{.rate = 0.05}); }
TEST_CASE("amsgrad converges") {
  for (const auto form : {amsgrad_form::raw, amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
    converges(amsgrad{.rate = 0.05, .form = form});
}
TEST_CASE("lamb converges") { converges(lamb{.rate = 0.01}, {.parabola = 2e-3}); }
TEST_CASE("lion converges") { converges(lion{.rate = 0.003}); }
TEST_CASE("sophia converges; without observations it steps by signs, and hovers by the rate") {
  converges(sophia{.rate = 0.003, .weight_decay = 0}, {.parabola = 1e-3});
}
TEST_CASE("schedule_free_adamw converges") { converges(schedule_free_adamw{.rate = 0.1}); }
TEST_CASE("adafactor converges") {
  converges(adafactor{.rate = 0.01, .min_dim_size_to_factor = 2});
  converges(adafactor{.rate = 0.01, .form = adafactor_form::relative});
}
TEST_CASE("muon converges") { converges(muon{.rate = 0.005}); }
TEST_CASE("soap converges") { converges(soap{.rate = 0.02, .weight_decay = 0}); }
