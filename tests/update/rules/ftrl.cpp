// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/ftrl.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
ftrl make(const golden::json& p) {
  ftrl rule;
  set(rule.rate, p, "learning_rate");
  set(rule.learning_rate_power, p, "learning_rate_power");
  set(rule.initial_accumulator_value, p, "initial_accumulator_value");
  set(rule.l1, p, "l1_regularization_strength");
  set(rule.l2, p, "l2_regularization_strength");
  set(rule.l2_shrinkage, p, "l2_shrinkage_regularization_strength");
  set(rule.beta, p, "beta");
  return rule;
}
}  // namespace

TEST_CASE("ftrl follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("Ftrl", make) == 17);
}

TEST_CASE("ftrl refuses what TensorFlow refuses") {
  trajectory::refused(ftrl{.rate = 0.0}, "rate");
  trajectory::refused(ftrl{.rate = -0.1}, "rate");
  trajectory::refused(ftrl{.rate = 0.1, .learning_rate_power = 0.1}, "learning_rate_power");
  trajectory::refused(ftrl{.rate = 0.1, .initial_accumulator_value = -0.1}, "initial_accumulator_value");
  trajectory::refused(ftrl{.rate = 0.1, .l1 = -0.1}, "l1");
  trajectory::refused(ftrl{.rate = 0.1, .l2 = -0.1}, "l2");
  trajectory::refused(ftrl{.rate = 0.1, .l2_shrinkage = -0.1}, "l2_shrinkage");
  trajectory::refused(ftrl{.rate = 0.1, .l2 = std::nan("")}, "l2");
}

TEST_CASE("a scheduled rate of 0 is refused before anything is changed") {
  updater<sweeps<fast>, ftrl, constant> u{ftrl{}, constant{0}};
  std::vector<double> w{1, 2};
  u.track("w", w);
  CHECK_THROWS_AS(u.apply({{"w", std::vector<double>{1, 1}}}), invalid_argument);
  CHECK(w == std::vector<double>{1, 2});
}

TEST_CASE("ftrl is adagrad or gradient descent without its penalties") {
  for (const double power : {-0.5, 0.0}) {
    updater<sweeps<fast>, ftrl> u{ftrl{.rate = 0.3, .learning_rate_power = power, .initial_accumulator_value = 0.1}};
    std::vector<double> w{0, 0};
    u.track("w", w);
    double want = 0, a = 0.1;
    for (int i = 0; i < 10; ++i) {
      const double g = 0.7 - 0.2 * i;
      u.apply({{"w", std::vector<double>{g, 0}}});
      a += g * g;
      want -= 0.3 * g / (power == 0 ? 1 : std::sqrt(a));
      CHECK(w[0] == doctest::Approx(want).epsilon(1e-12));
      CHECK(w[1] == 0);
    }
  }
}

TEST_CASE("ftrl counts l2 twice as TensorFlow does, or once as the paper does") {
  const auto stepped = [](const ftrl& rule) {
    updater<sweeps<fast>, ftrl> u{rule};
    std::vector<double> w{0};
    u.track("w", w);
    for (int i = 0; i < 3; ++i) u.apply({{"w", std::vector<double>{1.5}}});
    return w[0];
  };
  const double once = stepped({.rate = 0.2, .l2 = 0.4, .beta = 1, .l2_convention = ftrl_l2::mcmahan});
  CHECK(once == stepped({.rate = 0.2, .l2 = 0.2, .beta = 1}));
  // The paper's algorithm 1, in its own words.
  double n = 0.1, z = 0, w = 0;
  for (int i = 0; i < 3; ++i) {
    const double sigma = (std::sqrt(n + 2.25) - std::sqrt(n)) / 0.2;
    z += 1.5 - sigma * w, n += 2.25;
    w = -1 / ((1 + std::sqrt(n)) / 0.2 + 0.4) * z;
  }
  CHECK(once == doctest::Approx(w).epsilon(1e-12));
}

TEST_CASE("ftrl where nothing is known gives 0, and a NaN shows") {
  updater<sweeps<fast>, ftrl> u{ftrl{.rate = 0.3, .initial_accumulator_value = 0}};
  std::vector<double> w{5, 5};
  u.track("w", w);
  u.apply({{"w", std::vector<double>{0, std::nan("")}}});
  CHECK(w[0] == 0);
  CHECK(std::isnan(w[1]));
}

TEST_CASE("a power that is chosen before the loop gives the bits of the formula that looks at every number") {
  for (const double power : {-0.5, -0.3, -1.0, 0.0}) {
    const ftrl rule{.rate = 0.3, .learning_rate_power = power, .l1 = 1e-3, .l2 = 0.01, .l2_shrinkage = 0.02, .beta = 1};
    const composed update{rule};
    const auto c = update.template prepare<float>(0);
    constexpr std::size_t n = 37;
    std::vector<float> theta(n), accum(n, 0.1f), linear(n), g(n);
    random_stream r{5, 0};
    for (std::size_t i = 0; i < n; ++i)
      theta[i] = static_cast<float>(r.below(2001)) / 1000 - 1, g[i] = static_cast<float>(r.below(2001)) / 500 - 2;
    auto want_theta = theta, want_accum = accum, want_linear = linear;
    using number = detail::lane<float, fast>;
    const detail::ready_step<number, composed<ftrl>::first_type> k(c, 1.0f);
    for (std::size_t i = 0; i < n; ++i) {
      number a(want_accum[i]), z(want_linear[i]);
      want_theta[i] = rule.step(number(want_theta[i]), number(g[i]), k.rule, a, z).v;
      want_accum[i] = a.v, want_linear[i] = z.v;
    }
    float* const mirrors[] = {accum.data(), linear.data(), nullptr};
    sweep<fast>(update.single(), c, 1.0f, theta.data(), g.data(), mirrors, n);
    CHECK(theta == want_theta);
    CHECK(accum == want_accum);
    CHECK(linear == want_linear);
  }
}
