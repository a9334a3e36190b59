// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adamw.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
adamw make(const golden::json& p) {
  adamw rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("adamw follows PyTorch's and Optax's AdamW") { CHECK(trajectory::replay_all("AdamW", make) == 3); }

TEST_CASE("adamw in the tensorflow form follows contrib's AdamWOptimizer, dense and sparse") {
  CHECK(trajectory::replay_all("AdamWTF", [](const auto& p) {
          adamw rule = make(p);
          rule.form = adamw_form::tensorflow;
          return rule;
        }) == 2);
}

TEST_CASE("adamw in the keras form is the torch form with another epsilon") {
  updater<sweeps<fast>, adamw> torch{adamw{.beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1}},
      keras{adamw{.beta2 = 0.9, .epsilon = 1e-3 * std::sqrt(1 - 0.9), .weight_decay = 0.1, .form = adamw_form::keras}};
  std::vector<double> a{1, -2}, b = a;
  torch.track("w", a), keras.track("w", b);
  torch.apply({{"w", std::vector<double>{0.5, 0.01}}}), keras.apply({{"w", std::vector<double>{0.5, 0.01}}});
  CHECK(a[0] == doctest::Approx(b[0]).epsilon(1e-14));
  CHECK(a[1] == doctest::Approx(b[1]).epsilon(1e-14));
  CHECK(a[0] != 1);
}

TEST_CASE("adamw's sparse modes: rows that are not listed move and decay, move only, or stay") {
  const auto second_row = [](const adamw& rule) {
    updater<sweeps<fast>, adamw> u{rule};
    std::vector<double> w{1, 1};
    u.track("w", w);
    const std::vector<std::int64_t> row{0};
    u.apply({{"w", std::vector<double>{0.5, 0.5}}});
    const double before = w[1];
    u.apply({{"w", indexed_slices{row, std::vector<double>{0.5}}}});
    return std::pair(before, w[1]);
  };
  const auto [at, both] = second_row({.weight_decay = 0.5});
  const auto [at_tf, moved] = second_row({.weight_decay = 0.5, .form = adamw_form::tensorflow});
  const auto [at_lazy, stayed] = second_row({.weight_decay = 0.5, .sparse = sparse_mode::lazy});
  CHECK(stayed == at_lazy);
  CHECK(moved < at_tf);
  CHECK(at_tf - moved < 0.002);  // no decay by half
  CHECK(at - both == doctest::Approx(at_tf - moved + 0.001 * 0.5 * at));
}
