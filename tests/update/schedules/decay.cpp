#include <gradus/update/schedules/decay.hpp>

#include <doctest/doctest.h>

#include <gradus/base/error.hpp>

#include "../schedule_cases.hpp"

using namespace gradus;
using golden::json, golden::take;

namespace {
template <class S>
S falling(const json& a) {
  S s{.initial = a["lr"].get<double>()};
  take(a, "decay_steps", s.decay_steps), take(a, "decay_rate", s.decay_rate), take(a, "staircase", s.staircase);
  return s;
}
}  // namespace

TEST_CASE("natural_exp_decay and inverse_time_decay give TensorFlow's rates") {
  CHECK(golden::check_cases("natural_exp_decay", falling<natural_exp_decay>) == 5);
  CHECK(golden::check_cases("inverse_time_decay", falling<inverse_time_decay>) == 4);
  static_assert(inverse_time_decay{.initial = 1, .decay_steps = 2, .decay_rate = 3}(2) == 0.25);
  static_assert(natural_exp_decay{.initial = 0.5, .decay_steps = 10, .decay_rate = 3, .staircase = true}(9) == 0.5);
  golden::check_pure(natural_exp_decay{.initial = 0.5, .decay_steps = 7, .decay_rate = 0.3});
}

TEST_CASE("polynomial_decay gives TensorFlow's rates") {
  const int n = golden::check_cases("polynomial_decay", [](const json& a) {
    polynomial_decay s{.initial = a["lr"].get<double>()};
    take(a, "decay_steps", s.decay_steps), take(a, "end_learning_rate", s.end), take(a, "power", s.power);
    take(a, "cycle", s.cycle);
    return s;
  });
  CHECK(n == 7);
  // The spots of a cycle: a multiple of decay_steps has the end's rate, the step after starts a longer period.
  constexpr polynomial_decay cycle{.initial = 1, .decay_steps = 10, .end = 0, .cycle = true};
  static_assert(cycle(0) == 1 && cycle(10) == 0 && cycle(15) == 0.25 && cycle(20) == 0 && cycle(25) > 0.16);
  constexpr polynomial_decay once{.initial = 1, .decay_steps = 10, .end = 0.125, .power = 2};
  static_assert(once(0) == 1 && once(5) == 0.34375 && once(10) == 0.125 && once(1'000'000'000'000) == 0.125);
  CHECK(polynomial_decay{.initial = 0.4, .decay_steps = 4, .end = 0.4}(3) == 0.4);
}

TEST_CASE("piecewise_constant gives TensorFlow's rates") {
  const int n = golden::check_cases("piecewise_constant", [](const json& a) {
    const auto boundaries = a["boundaries"].get<std::vector<std::int64_t>>();
    const auto values = a["values"].get<std::vector<double>>();
    return piecewise_constant{.boundaries = boundaries, .values = values};  // the program's own arrays
  });
  CHECK(n == 2);
  constexpr piecewise_constant s{.boundaries = {100, 110, 120}, .values = {1, 0.1, 0.01, 0.001}};
  static_assert(s(-999) == 1 && s(100) == 1 && s(101) == 0.1 && s(110) == 0.1 && s(120) == 0.01 && s(121) == 0.001);
  static_assert(piecewise_constant{.values = {0.5}}(7) == 0.5);
  // Boundaries that do not rise are not refused.
  static_assert(piecewise_constant{.boundaries = {10, 5}, .values = {1, 2, 3}}(7) == 1);
  static_assert(piecewise_constant{.boundaries = {10, 5}, .values = {1, 2, 3}}(11) == 3);
  golden::check_pure(s);
}

TEST_CASE("piecewise_constant refuses lists that do not fit") {
  const piecewise_constant none{};
  CHECK_THROWS_WITH_AS(none(0), "piecewise_constant: 0 boundaries need 1 values, found 0", invalid_argument);
  const piecewise_constant few{.boundaries = {1, 2}, .values = {1, 2}};
  CHECK_THROWS_WITH_AS(few(0), "piecewise_constant: 2 boundaries need 3 values, found 2", invalid_argument);
  const std::vector<std::int64_t> many(17);
  CHECK_THROWS_WITH_AS(((void)piecewise_constant{.boundaries = many, .values = {1}}),
                       "this list holds at most 16 numbers, found 17", invalid_argument);
  const std::vector<std::int64_t> most{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const std::vector<double> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const piecewise_constant full{.boundaries = most, .values = values};
  for (std::int64_t s = 0; s < 16; ++s) CHECK(full(s) == static_cast<double>(s));
  CHECK(full(16) == 16);
}
