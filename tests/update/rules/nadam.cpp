// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/nadam.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
nadam make(const golden::json& p) {
  nadam rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  set(rule.momentum_decay, p, "momentum_decay");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("nadam follows PyTorch's NAdam") { CHECK(trajectory::replay_all("NAdam", make) == 3); }

TEST_CASE("nadam in the constant form follows Optax's nadam and nadamw") {
  CHECK(trajectory::replay_all("NAdamConst", [](const auto& p) {
          nadam rule = make(p);
          rule.form = nadam_form::constant;
          return rule;
        }) == 3);
}

TEST_CASE("nadam in the tensorflow form follows contrib's NadamOptimizer, dense and sparse") {
  CHECK(trajectory::replay_all("NadamTF", [](const auto& p) {
          nadam rule = make(p);
          rule.form = nadam_form::tensorflow;
          return rule;
        }) == 2);
}
