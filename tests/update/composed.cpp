#include <gradus/update/composed.hpp>

#include <doctest/doctest.h>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>

using namespace gradus;

TEST_CASE("policies compose in any order to the same update") {
  composed a{adam{}, exponential_decay{.initial = 0.1, .decay_steps = 10, .decay_rate = 0.5}, clip_by_global_norm{2.0},
             exponential_moving_average{.decay = 0.9}};
  composed b{exponential_moving_average{.decay = 0.9}, clip_by_global_norm{2.0}, adam{},
             exponential_decay{.initial = 0.1, .decay_steps = 10, .decay_rate = 0.5}};
  a.finish(), b.finish();
  const auto x = a.prepare<float>(10), y = b.prepare<float>(10);
  CHECK(x.rule.alpha == y.rule.alpha);
  CHECK(x.rule.epsilon == 1e-8f);
  CHECK(x.new_share == y.new_share);
  CHECK(a.rate(10) == doctest::Approx(0.05));
  CHECK(a.clip_scale(4.0) == b.clip_scale(4.0));
  // the second step of Adam: t = 2
  CHECK(x.rule.alpha == doctest::Approx(0.05 * std::sqrt(1 - 0.999 * 0.999) / (1 - 0.81)));
}

TEST_CASE("mirrors carry the names of TensorFlow's checkpoints") {
  const composed update{exponential_moving_average{}, adam{}};
  const auto m = update.mirrors();
  REQUIRE(m.size() == 3);
  CHECK(m[0].slot == "m");
  CHECK(m[1].slot == "v");
  CHECK(checkpoint_name("w", m[0]) == "w/Adam");
  CHECK(checkpoint_name("w", m[1]) == "w/Adam_1");
  CHECK(checkpoint_name("w", m[2]) == "w/ExponentialMovingAverage");
  CHECK(m[2].starts_as_variable);
  CHECK(!m[0].starts_as_variable);
}

TEST_CASE("the rate has one owner") {
  CHECK(composed{adam{}}.rate(7) == 0.001);
  CHECK(composed{adam{.rate = 0.5}}.rate(7) == 0.5);
  CHECK(composed{adam{}, constant{0.25}}.rate(7) == 0.25);
  CHECK(composed{momentum{}, constant{0.25}}.rate(7) == 0.25);
  CHECK_THROWS_WITH_AS((composed{constant{0.1}, adam{.rate = 0.5}}),
                       "the learning rate has two owners: Adam's `.rate` and the schedule among the policies; expected "
                       "one, leave `.rate` out or drop the schedule",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(
      composed{momentum{}},
      "the learning rate has no owner: Momentum has no default; expected `.rate = ...` in the rule or a "
      "schedule among the policies",
      invalid_argument);
}
