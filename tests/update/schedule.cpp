#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include <gradus/update/composed.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedules/sequence.hpp>
#include <gradus/update/schedules/warmup.hpp>

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

namespace {
double falling(std::int64_t step) { return step == 0 ? 0.5 : 0.25; }
struct falling_functor {
  double operator()(std::int64_t step) const { return falling(step); }
};
struct falling_schedule {
  using policy_for = kind::schedule;
  double operator()(std::int64_t step) const { return falling(step); }
};
// Every place that takes a schedule, with one whose values are 0.5, then 0.25. Where it is a function, this is the
// function itself, as if it were named there. They are the rates of two steps of an update.
template <class Schedule>
void everywhere_as(const Schedule& s) {
  const auto gives = [](const auto& update, double share = 1) {
    CHECK(update.rate(0) == 0.5 * share);
    CHECK(update.rate(1) == 0.25 * share);
  };
  const auto is = [](const auto& schedule) {
    CHECK(schedule(0) == 0.5);
    CHECK(schedule(1) == 0.25);
  };
  const gradient_descent rule;
  gives(composed{rule, s});
  gives(detail::compose_update(rule, s));  // what all doors call
  gives(composed{rule, vary<&gradient_descent::rate>(s)});
  gives(composed{multi{on{all_variables{}, rule, s}}});
  gives(composed{multi{on{all_variables{}, rule, s, 2.0}}}, 2);
  is(scaled(s, 1));
  is(product_of(s, constant{1}));
  is(product_of(constant{1}, s));
  is(sequence(s, 2, s));
  is(sequence(constant{9}, 0, s));
  is(sequence(constant{9}, 0, constant{9}, 0, s));
  is(sequence(constant{9}, 0, constant{9}).then(0, s));
  is(linear_warmup{.peak = 9, .warmup_steps = 0}.then(s));
  composed varied{momentum{.rate = 1}, vary<&momentum::decay>(s)};
  varied.begin(0);
  CHECK(varied.rule().decay == 0.5);
  varied.begin(1);
  CHECK(varied.rule().decay == 0.25);
}
}  // namespace
TEST_CASE("a schedule is a function by its name, a pointer to one, a lambda, a functor or an object") {
  everywhere_as(falling);
  everywhere_as(&falling);
  everywhere_as([](std::int64_t step) { return falling(step); });
  everywhere_as(falling_functor{});
  everywhere_as(std::function<double(std::int64_t)>(falling));
  everywhere_as(falling_schedule{});
}
