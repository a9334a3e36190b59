// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/sophia.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
sophia make(const golden::json& p) {
  sophia rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.rho, p, "rho");
  set(rule.weight_decay, p, "weight_decay");
  set(rule.batch_size, p, "batch_size");
  return rule;
}
}  // namespace

TEST_CASE("sophia follows the authors' SophiaG, with its curvature observed before the step") {
  CHECK(trajectory::replay_all("SophiaG", make) == 3);
}

TEST_CASE("sophia in the optax form divides the corrected momentum by the larger of curvature and epsilon") {
  updater<sweeps<fast>, sophia> u{sophia{.rate = 0.5,
                                         .beta1 = 0.8,
                                         .beta2 = 0.9,
                                         .rho = 2,
                                         .weight_decay = 0.1,
                                         .epsilon = 0.5,
                                         .form = sophia_form::optax}};
  std::vector<double> w{1, 1, 1};
  u.track("w", w);
  const std::vector<double> e{4, -0.01, 4}, g{0.25, 0.125, -4};
  u.observe({{"w", e}});
  u.apply({{"w", g}});
  // h = 0.1 e = 0.4, -0.001, 0.4; m' = g; the denominators are 0.8, 0.5, 0.8
  CHECK(w[0] == doctest::Approx(1 - 0.05 - 0.5 * 0.25 / 0.8));
  CHECK(w[1] == doctest::Approx(1 - 0.05 - 0.5 * 0.125 / 0.5));
  CHECK(w[2] == doctest::Approx(1 - 0.05 + 0.5));
}
