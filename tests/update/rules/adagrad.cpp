// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adagrad.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
adagrad make(const golden::json& p) {
  adagrad rule;
  set(rule.rate, p, "learning_rate");
  set(rule.initial_accumulator_value, p, "initial_accumulator_value");
  return rule;
}
}  // namespace

TEST_CASE("adagrad follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("Adagrad", make) == 6);
}

TEST_CASE("adagrad wants a guard in the denominator") {
  trajectory::refused(adagrad{.rate = 0.1, .initial_accumulator_value = 0}, "initial_accumulator_value");
  trajectory::refused(adagrad{.rate = 0.1, .initial_accumulator_value = -1, .epsilon = 1}, "initial_accumulator_value");
  trajectory::refused(adagrad{.rate = 0.1, .initial_accumulator_value = std::nan("")}, "initial_accumulator_value");
  CHECK_THROWS_WITH_AS((composed{adagrad{.rate = 0.1, .initial_accumulator_value = 0}}),
                       "Adagrad: expected `initial_accumulator_value` > 0 (or 0 with an epsilon > 0), found 0",
                       invalid_argument);
}

TEST_CASE("adagrad with an epsilon and no initial value is PyTorch's Adagrad") {
  updater<sweeps<fast>, adagrad> u{adagrad{.rate = 0.5, .initial_accumulator_value = 0, .epsilon = 0.25}};
  std::vector<double> w{1, 2};
  u.track("w", w);
  u.apply({{"w", std::vector<double>{3, 0}}});
  CHECK(w[0] == doctest::Approx(1 - 0.5 * 3 / (3 + 0.25)));
  CHECK(w[1] == 2);
}
