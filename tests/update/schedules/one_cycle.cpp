#include <gradus/update/schedules/one_cycle.hpp>

#include <doctest/doctest.h>

#include "../schedule_cases.hpp"

using namespace gradus;
using golden::json, golden::take;

TEST_CASE("one_cycle gives PyTorch's rates") {
  const int n = golden::check_cases("one_cycle", [](const json& a) {
    one_cycle s{.peak = a["max_lr"].get<double>()};
    take(a, "total_steps", s.total_steps), take(a, "pct_start", s.pct_start), take(a, "div_factor", s.div_factor);
    take(a, "final_div_factor", s.final_div_factor), take(a, "three_phase", s.three_phase);
    if (a.value("anneal", "cos") == "linear") s.anneal = annealing::linear;
    return s;
  });
  CHECK(n == 2);
  constexpr one_cycle linear{.peak = 8,
                             .total_steps = 21,
                             .pct_start = 5.0 / 21,
                             .anneal = annealing::linear,
                             .div_factor = 2,
                             .final_div_factor = 4};
  CHECK(linear(0) == 4);
  CHECK(linear(2) == doctest::Approx(6).epsilon(1e-14));
  CHECK(linear(4) == doctest::Approx(8).epsilon(1e-14));
  CHECK(linear(12) == doctest::Approx(4.5).epsilon(1e-14));
  CHECK(linear(20) == 1);
  CHECK(linear(21) == 1);
  CHECK(linear(1'000'000'000'000) == 1);
  golden::check_pure(linear);
}

TEST_CASE("three phases: up, as far down, and down to the end") {
  constexpr one_cycle s{.peak = 8,
                        .total_steps = 20,
                        .pct_start = 0.25,
                        .anneal = annealing::linear,
                        .div_factor = 2,
                        .final_div_factor = 4,
                        .three_phase = true};
  static_assert(s(0) == 4 && s(2) == 6 && s(4) == 8);  // corners at 0.25 * 20 - 1 = 4, 8 and 19
  static_assert(s(6) == 6 && s(8) == 4 && s(19) == 1 && s(20) == 1);
  CHECK(s(12) == doctest::Approx(4 - 3 * 4.0 / 11).epsilon(1e-14));
}

TEST_CASE("the onecycles give Optax's rates") {
  const auto make = [](const json& a, auto s) {
    s.peak = a["peak"].template get<double>();
    take(a, "transition_steps", s.transition_steps), take(a, "pct_start", s.pct_start);
    take(a, "div_factor", s.div_factor), take(a, "final_div_factor", s.final_div_factor);
    return s;
  };
  CHECK(golden::check_cases("one_cycle_int", [&](const json& a) { return make(a, cosine_onecycle{}); }) == 1);
  constexpr cosine_onecycle c{
      .transition_steps = 10, .peak = 8, .pct_start = 0.45, .div_factor = 2, .final_div_factor = 4};
  static_assert(c(0) == 4 && c(2) == 6 && c(4) == 8 && c(7) == 4.5 && c(10) == 1 && c(11) == 1);
  constexpr linear_onecycle l{.transition_steps = 20, .peak = 8, .div_factor = 2, .final_div_factor = 4};
  static_assert(l(0) == 4 && l(3) == 6 && l(6) == 8 && l(17) == 4 && l(20) == 1 && l(21) == 1);  // 0.3, 0.85 of 20
  CHECK(l(12) == doctest::Approx(8 - 4 * 6.0 / 11).epsilon(1e-14));
  // No steps to rise in: the peak comes first.
  CHECK(cosine_onecycle{.transition_steps = 10, .peak = 8, .pct_start = 0.05}(0) == 8);
  golden::check_pure(c);
  golden::check_pure(l);
}

TEST_CASE("a momentum moves the other way") {
  const one_cycle m{
      .peak = 0.85, .total_steps = 101, .pct_start = 31.0 / 101, .div_factor = 0.85 / 0.95, .final_div_factor = 1};
  CHECK(m(0) == doctest::Approx(0.95));
  CHECK(m(30) == doctest::Approx(0.85));
  CHECK(m(100) == doctest::Approx(0.95));
}
