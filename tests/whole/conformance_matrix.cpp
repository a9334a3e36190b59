// one thread: nothing here runs at the same time
// Rules on whole matrices.
#include <gradus/update/rules/adafactor.hpp>
#include <gradus/update/rules/muon.hpp>
#include <gradus/update/rules/soap.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("adafactor conforms") {
  conforms(adafactor{.rate = 0.01, .min_dim_size_to_factor = 2});
  conforms(adafactor{.rate = 0.01, .momentum = 0.9}, {.wrappers = false});
  conforms(adafactor{.rate = 0.01, .form = adafactor_form::relative});
}
TEST_CASE("muon conforms") {
  conforms(muon{});
  for (const auto form : {muon_form::original, muon_form::keras}) conforms(muon{.form = form}, {.wrappers = false});
}
TEST_CASE("soap conforms") { conforms(soap{.precondition_frequency = 2}); }
