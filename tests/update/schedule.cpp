#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include <set>

#include "schedule_cases.hpp"

using namespace gradus;

TEST_CASE("exponential_decay gives TensorFlow's rates") {
  const int n = golden::check_cases("exponential_decay", [](const golden::json& a) {
    exponential_decay s{.initial = a["lr"].get<double>()};
    golden::take(a, "decay_steps", s.decay_steps);
    golden::take(a, "decay_rate", s.decay_rate);
    golden::take(a, "staircase", s.staircase);
    return s;
  });
  CHECK(n == 6);
}

TEST_CASE("exponential_decay at its edges") {
  constexpr exponential_decay halving{.initial = 0.5, .decay_steps = 4, .decay_rate = 0.5};
  static_assert(halving(0) == 0.5 && halving(4) == 0.25 && halving(40) == 0.5 / 1024);  // exact, and at compile time
  CHECK(halving(2) == doctest::Approx(0.5 * std::sqrt(0.5)).epsilon(1e-15));
  CHECK(halving(10'000'000) == 0);
  constexpr exponential_decay steps{.initial = 1, .decay_steps = 10, .decay_rate = 0.1, .staircase = true};
  CHECK(steps(9) == 1);
  CHECK(steps(10) == 0.1);
  CHECK(steps(19) == 0.1);
  CHECK(std::isnan(exponential_decay{.initial = 1, .decay_steps = 0, .decay_rate = 0.5}(0)));
  golden::check_pure(halving);
}

TEST_CASE("constant is one rate for ever") {
  static_assert(rate_schedule<constant> && !observing_schedule<constant>);
  CHECK(constant{.rate = 0.25}(0) == 0.25);
  CHECK(constant{.rate = 0.25}(1'000'000'000'000) == 0.25);
}

TEST_CASE("every golden schedule has a test") {
  const std::set<std::string> tested{"exponential_decay",
                                     "natural_exp_decay",
                                     "inverse_time_decay",
                                     "polynomial_decay",
                                     "piecewise_constant",
                                     "cosine_decay",
                                     "cosine_decay_restarts",
                                     "linear_cosine_decay",
                                     "noisy_linear_cosine_decay",
                                     "linear_warmup",
                                     "warmup_cosine",
                                     "one_cycle",
                                     "one_cycle_int",
                                     "wsd",
                                     "inverse_sqrt",
                                     "noam"};
  for (const auto& c : golden::read("schedules.json"))
    if (c["kind"] == "lr_schedule") CHECK(tested.contains(c["fn"].get<std::string>()));
}
