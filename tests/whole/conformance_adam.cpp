// without sanitizers: arithmetic; whole/conformance_{norms,matrix} run the same loops under them
// Adam and its nearest.
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/adamax.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/amsgrad.hpp>
#include <gradus/update/rules/nadam.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("adam conforms") {
  conforms(adam{});
  conforms(adam{.sparse = sparse_mode::decay_all});
}
TEST_CASE("adamw conforms") {
  conforms(adamw{});
  for (const auto form : {adamw_form::keras, adamw_form::tensorflow})
    for (const auto sparse : {sparse_mode::lazy, sparse_mode::decay_all})
      conforms(adamw{.form = form, .sparse = sparse}, {.wrappers = false});
}
TEST_CASE("nadam conforms") {
  conforms(nadam{});
  for (const auto form : {nadam_form::constant, nadam_form::tensorflow})
    for (const auto sparse : {sparse_mode::lazy, sparse_mode::decay_all})
      conforms(nadam{.weight_decay = 0.1, .form = form, .sparse = sparse}, {.wrappers = false});
}
TEST_CASE("adamax conforms") {
  conforms(adamax{});
  conforms(adamax{.form = adamax_form::tensorflow}, {.wrappers = false});
}
TEST_CASE("amsgrad conforms") {
  conforms(amsgrad{});
  for (const auto form : {amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
    conforms(amsgrad{.form = form, .sparse = sparse_mode::lazy}, {.wrappers = false});
}
