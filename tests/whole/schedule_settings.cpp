// without sanitizers: arithmetic
// one thread: nothing here runs at the same time
// What every schedule does with a number of steps that was not given, is none, or is no number, and with settings that
// are no numbers: refused where an update is made of it, or at the step whose rate would be none. A schedule that the
// program calls checks nothing. (tests/update/schedules.cpp spoils every number of every schedule of the list; here are
// the words, and what a number means that was left out.)
#include <gradus/cpu/sweeps.hpp>
#include <gradus/schedules.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace gradus;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

// What an update of this schedule is refused with: when it is made, or at one of its first steps; "" if it is not.
template <class S>
std::string refusal(const S& schedule, std::int64_t steps = 20) {
  try {
    composed u{gradient_descent{}, schedule};
    for (std::int64_t step = 0; step < steps; ++step) (void)u.template prepare<float>(step);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "";
}
template <class S>
std::string refusal_when_made(const S& schedule) {
  return refusal(schedule, 0);
}
bool begins(const std::string& text, const std::string& with) { return text.substr(0, with.size()) == with; }

enum class missing { has_to_be_set, refused, means_something };
enum class zero { refused, means_something };

// `good` is taken; with each of these numbers of steps it is not. The default of the number is one that means
// something, or refused.
template <class S, class T>
void counts(const char* name, const char* setting, const S& good, T S::*count, missing default_is,
            zero zero_is = zero::refused) {
  INFO(name, "::", setting);
  CHECK(refusal(good) == "");
  const auto refused_with = [&](double x) {
    S s = good;
    s.*count = static_cast<T>(x);
    return refusal_when_made(s);
  };
  const std::string says = std::string(name) + ": expected `" + setting + "` finite and >";
  CHECK(begins(refused_with(-1), says));
  if (std::is_integral_v<T>)
    CHECK(begins(refused_with(-9e18), says));
  else
    for (const double x : {not_a_number, infinity, -infinity}) CHECK(begins(refused_with(x), says));
  if (zero_is == zero::refused)
    CHECK(begins(refused_with(0), says));
  else
    CHECK(refused_with(0) == "");
  S s = good;
  s.*count = S{}.*count;
  if (default_is == missing::refused)
    CHECK(begins(refusal_when_made(s), std::string(name) + ": expected `" + setting + "` > 1, found 1: the schedule " +
                                           "would be over at step 1"));
  else if (default_is == missing::has_to_be_set)
    CHECK(refusal_when_made(s) == says + " 0, found 0");
  else
    CHECK(refusal(s) == "");
  // as part of another, as a group's, and of a setting
  S bad = good;
  bad.*count = static_cast<T>(-1);
  CHECK(begins(refusal_when_made(sequence(constant{1}, 5, bad)), says));
  CHECK(begins(refusal_when_made(scaled(product_of(constant{1}, bad), 2)), says));
  try {
    composed u{momentum{.rate = 1}, vary<&momentum::decay>(bad)};
    FAIL("vary took it");
  } catch (const invalid_argument& e) {
    CHECK(begins(e.what(), says));
  }
  (void)bad(3);  // whatever it is, it is not refused
}
// A setting that is NaN or infinite is refused at the first steps at the latest.
template <class S>
void numbers(const S& good, std::initializer_list<double S::*> settings) {
  for (const auto setting : settings)
    for (const double x : {not_a_number, infinity}) {
      S s = good;
      s.*setting = x;
      CHECK(refusal(s) != "");
    }
}

}  // namespace

TEST_CASE("a number of steps that is missing, none, or no number") {
  using m = missing;
  using z = zero;
  counts("exponential_decay", "decay_steps", exponential_decay{.decay_steps = 5, .decay_rate = 0.5},
         &exponential_decay::decay_steps, m::has_to_be_set);
  counts("natural_exp_decay", "decay_steps", natural_exp_decay{.decay_steps = 5, .decay_rate = 0.5},
         &natural_exp_decay::decay_steps, m::has_to_be_set);
  counts("inverse_time_decay", "decay_steps", inverse_time_decay{.decay_steps = 5, .decay_rate = 0.5},
         &inverse_time_decay::decay_steps, m::has_to_be_set);
  counts("polynomial_decay", "decay_steps", polynomial_decay{.decay_steps = 5}, &polynomial_decay::decay_steps,
         m::refused);
  counts("cosine_decay", "decay_steps", cosine_decay{.decay_steps = 5}, &cosine_decay::decay_steps, m::refused);
  counts("cosine_decay_restarts", "first_decay_steps", cosine_decay_restarts{.first_decay_steps = 5},
         &cosine_decay_restarts::first_decay_steps, m::means_something);
  counts("linear_cosine_decay", "decay_steps", linear_cosine_decay{.decay_steps = 5}, &linear_cosine_decay::decay_steps,
         m::refused);
  counts("noisy_linear_cosine_decay", "decay_steps", noisy_linear_cosine_decay{.decay_steps = 5},
         &noisy_linear_cosine_decay::decay_steps, m::refused);
  counts("linear_warmup", "warmup_steps", linear_warmup{.warmup_steps = 5}, &linear_warmup::warmup_steps,
         m::means_something, z::means_something);
  const warmup_cosine_decay warm_cosine{.warmup_steps = 2, .decay_steps = 5};
  counts("warmup_cosine_decay", "warmup_steps", warm_cosine, &warmup_cosine_decay::warmup_steps, m::means_something,
         z::means_something);
  counts("warmup_cosine_decay", "decay_steps", warm_cosine, &warmup_cosine_decay::decay_steps, m::refused);
  const warmup_stable_decay stable{.warmup_steps = 2, .stable_steps = 3, .decay_steps = 5};
  for (const auto& [name, count] : {std::pair{"warmup_steps", &warmup_stable_decay::warmup_steps},
                                    {"stable_steps", &warmup_stable_decay::stable_steps},
                                    {"decay_steps", &warmup_stable_decay::decay_steps}})
    counts("warmup_stable_decay", name, stable, count, m::means_something, z::means_something);
  counts("inverse_sqrt", "warmup_steps", inverse_sqrt{.warmup_steps = 5}, &inverse_sqrt::warmup_steps,
         m::means_something, z::means_something);
  counts("inverse_sqrt", "timescale", inverse_sqrt{.timescale = 5}, &inverse_sqrt::timescale, m::means_something,
         z::means_something);
  counts("noam", "warmup_steps", noam{.warmup_steps = 5}, &noam::warmup_steps, m::means_something);
  counts("noam", "d_model", noam{}, &noam::d_model, m::means_something);
  counts("one_cycle", "total_steps", one_cycle{.total_steps = 9}, &one_cycle::total_steps, m::refused);
  counts("cosine_onecycle", "transition_steps", cosine_onecycle{.transition_steps = 9},
         &cosine_onecycle::transition_steps, m::refused);
  counts("linear_onecycle", "transition_steps", linear_onecycle{.transition_steps = 9},
         &linear_onecycle::transition_steps, m::refused);

  // what depends on two settings, and what is no count
  CHECK(refusal_when_made(warmup_cosine_decay{.warmup_steps = 5, .decay_steps = 5}) ==
        "warmup_cosine_decay: expected `decay_steps`, which counts the warm-up too, > 5, found 5");
  CHECK(begins(refusal_when_made(warmup_stable_decay{}), "warmup_stable_decay: expected `decay_steps` > 1, found 1"));
  CHECK(begins(refusal_when_made(reduce_on_plateau{.factor = -0.1}),
               "reduce_on_plateau: expected `factor` >= 0 and < 1"));
  CHECK(begins(refusal_when_made(reduce_on_plateau{.threshold = 5}), "reduce_on_plateau: expected `threshold` < 1"));
  CHECK(begins(refusal_when_made(exponential_decay{.decay_steps = 5, .decay_rate = -0.9}),
               "exponential_decay: expected `decay_rate` finite and > 0"));
  CHECK(begins(refusal_when_made(cosine_decay{.decay_steps = 5, .alpha = 10}), "cosine_decay: expected `alpha` in [0"));
  CHECK(begins(refusal_when_made(cosine_decay_restarts{.first_decay_steps = 5, .alpha = -1}),
               "cosine_decay_restarts: expected `alpha` in [0"));
  CHECK(refusal_when_made(piecewise_constant{}) == "piecewise_constant: 0 boundaries need 1 values, found 0");
  CHECK(refusal_when_made(piecewise_constant{.boundaries = {3}, .values = {1}}) ==
        "piecewise_constant: 1 boundaries need 2 values, found 1");
  CHECK(refusal_when_made(sequence(constant{1}, -1, constant{2})) ==
        "sequence: expected `at_step` finite and >= 0, found -1");
  for (const double factor : {1.0, not_a_number, infinity})
    CHECK(begins(refusal_when_made(reduce_on_plateau{.factor = factor}),
                 "reduce_on_plateau: expected `factor` >= 0 and < 1"));
  for (const double share : {-0.1, 1.1, not_a_number, infinity}) {
    CHECK(begins(refusal_when_made(one_cycle{.total_steps = 9, .pct_start = share}),
                 "one_cycle: expected `pct_start` in [0, 1]"));
    CHECK(begins(refusal_when_made(cosine_onecycle{.transition_steps = 9, .pct_start = share}),
                 "cosine_onecycle: expected `pct_start` in [0, 1]"));
    CHECK(begins(refusal_when_made(linear_onecycle{.transition_steps = 9, .pct_final = share}),
                 "linear_onecycle: expected `pct_final` in [0, 1]"));
  }
  CHECK(begins(refusal_when_made(cosine_decay_restarts{.first_decay_steps = 5, .t_mul = 0}),
               "cosine_decay_restarts: expected `t_mul` finite and > 0"));
}
TEST_CASE("settings that are NaN or infinite: at the step whose rate they spoil, at the latest") {
  numbers(constant{}, {&constant::rate});
  numbers(exponential_decay{.decay_steps = 5, .decay_rate = 0.5},
          {&exponential_decay::initial, &exponential_decay::decay_rate});
  numbers(natural_exp_decay{.decay_steps = 5, .decay_rate = 0.5}, {&natural_exp_decay::initial});
  numbers(inverse_time_decay{.decay_steps = 5, .decay_rate = 0.5}, {&inverse_time_decay::initial});
  numbers(polynomial_decay{.decay_steps = 5}, {&polynomial_decay::initial, &polynomial_decay::end});
  numbers(cosine_decay{.decay_steps = 5}, {&cosine_decay::initial, &cosine_decay::alpha});
  numbers(cosine_decay_restarts{.first_decay_steps = 5},
          {&cosine_decay_restarts::initial, &cosine_decay_restarts::t_mul, &cosine_decay_restarts::m_mul,
           &cosine_decay_restarts::alpha});
  using linear = linear_cosine_decay;
  numbers(linear{.decay_steps = 5}, {&linear::initial, &linear::num_periods, &linear::alpha, &linear::beta});
  using noisy = noisy_linear_cosine_decay;  // its rate may be negative, not NaN
  numbers(noisy{.decay_steps = 5},
          {&noisy::initial, &noisy::initial_variance, &noisy::num_periods, &noisy::alpha, &noisy::beta});
  numbers(linear_warmup{.warmup_steps = 5}, {&linear_warmup::initial, &linear_warmup::peak});
  numbers(warmup_cosine_decay{.warmup_steps = 2, .decay_steps = 5},
          {&warmup_cosine_decay::initial, &warmup_cosine_decay::peak, &warmup_cosine_decay::end});
  numbers(warmup_stable_decay{.warmup_steps = 2, .decay_steps = 5},
          {&warmup_stable_decay::peak, &warmup_stable_decay::min_ratio});
  numbers(inverse_sqrt{.warmup_steps = 5}, {&inverse_sqrt::peak});
  numbers(noam{}, {&noam::factor, &noam::d_model});
  numbers(one_cycle{.total_steps = 9},
          {&one_cycle::peak, &one_cycle::pct_start, &one_cycle::div_factor, &one_cycle::final_div_factor});
  numbers(cosine_onecycle{.transition_steps = 9},
          {&cosine_onecycle::peak, &cosine_onecycle::div_factor, &cosine_onecycle::final_div_factor});
  numbers(linear_onecycle{.transition_steps = 9},
          {&linear_onecycle::peak, &linear_onecycle::div_factor, &linear_onecycle::final_div_factor});
  numbers(scaled(constant{1}, 1), {&decltype(scaled(constant{1}, 1))::factor});
  CHECK(refusal(piecewise_constant{.boundaries = {3}, .values = {1, not_a_number}}) ==
        refusal(sequence(constant{1}, 4, constant{not_a_number})));
  CHECK(refusal(sequence(constant{1}, 4, constant{not_a_number})) != "");
}
