// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/lars.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
lars make(const golden::json& p) {
  lars rule;
  set(rule.rate, p, "learning_rate");
  set(rule.momentum, p, "momentum");
  set(rule.weight_decay, p, "weight_decay");
  set(rule.trust_coefficient, p, "eeta");
  set(rule.trust_coefficient, p, "trust_coefficient");
  set(rule.epsilon, p, "epsilon");
  set(rule.use_nesterov, p, "use_nesterov");
  return rule;
}
}  // namespace

TEST_CASE("lars follows contrib's LARSOptimizer, dense and sparse") {
  CHECK(trajectory::replay_all("LARSTF", make) == 2);
}

TEST_CASE("lars in the optax form follows Optax's lars") {
  CHECK(trajectory::replay_all("Lars", [](const auto& p) {
          lars rule = make(p);
          rule.form = lars_form::optax;
          return rule;
        }) == 3);
}

TEST_CASE("lars refuses what TensorFlow refuses") {
  trajectory::refused(lars{.rate = 0.1, .momentum = -0.1}, "momentum");
  trajectory::refused(lars{.rate = 0.1, .weight_decay = -0.1}, "weight_decay");
}

TEST_CASE("lars leaves variables of its skip list to plain momentum") {
  updater<sweeps<fast>, lars> u{
      lars{.rate = 0.5, .momentum = 0.9, .weight_decay = 0.1, .trust_coefficient = 0.1, .skip_list = {"norm", "bias"}}};
  std::vector<double> kernel{3, 4}, bias{3, 4};
  u.track("layer/kernel", kernel), u.track("layer/bias", bias);
  const std::vector<double> g{1, 0};
  u.apply({{"layer/kernel", g}, {"layer/bias", g}});
  CHECK(bias[0] == doctest::Approx(3 - 0.5));
  CHECK(bias[1] == 4);
  const double trust = 0.1 * 5 / (1 + 0.1 * 5);
  CHECK(kernel[0] == doctest::Approx(3 - 0.5 * trust * (1 + 0.1 * 3)));
  CHECK(kernel[1] == doctest::Approx(4 - 0.5 * trust * 0.1 * 4));
}

TEST_CASE("lars takes trust 1 where a norm is 0") {
  for (const auto form : {lars_form::tensorflow, lars_form::optax}) {
    updater<sweeps<fast>, lars> u{lars{.rate = 0.5, .form = form}};
    std::vector<double> w{0, 0};
    u.track("w", w);
    u.apply({{"w", std::vector<double>{1, -2}}});
    CHECK(w == std::vector<double>{-0.5, 1});
  }
}
