#include <gradus/update/single.hpp>

#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/rmsprop.hpp>
#include <gradus/update/rules/schedule_free.hpp>

#include "steps.hpp"

using namespace gradus;

namespace {
template <class Rule, class Average = detail::no_average>
auto single_of(const Rule& rule, const Average& average = {}, double factor = 1) {
  return single_update<Rule, detail::no_schedule, detail::no_clip, Average>(rule, {}, {}, average, factor);
}
}  // namespace

TEST_CASE("mirrors are the slots in order, then the average, under their owners' names") {
  const auto s = single_of(chain{adam{}, lookahead{}}, exponential_moving_average{});
  const auto m = s.mirrors();
  REQUIRE(m.size() == 4);
  CHECK(checkpoint_name("w", m[0]) == "w/Adam");
  CHECK(checkpoint_name("w", m[1]) == "w/Adam_1");
  CHECK(checkpoint_name("w", m[2]) == "w/Lookahead");
  CHECK(checkpoint_name("w", m[3]) == "w/ExponentialMovingAverage");
  CHECK((!m[0].starts_as_variable && m[2].starts_as_variable && m[3].starts_as_variable));
  CHECK(single_of(rmsprop{.rate = 1}).mirrors()[0].initial == 1);
}
TEST_CASE("what is evaluated: the average, a rule's own copy, or the variable") {
  CHECK(single_of(adam{}).evaluation_mirror() == 2);  // none
  CHECK(single_of(adam{}, exponential_moving_average{}).evaluation_mirror() == 2);
  CHECK(single_of(schedule_free_adamw{}).evaluation_mirror() == 1);
  static_assert(!decltype(single_of(adam{}))::has_evaluation_copy);
  static_assert(decltype(single_of(schedule_free_adamw{}))::has_evaluation_copy);
}
TEST_CASE("constants are prepared in double, rounded once, and follow the rule's state") {
  auto s = single_of(adam{.rate = 0.1}, detail::no_average{}, 2.0);
  CHECK(s.rate(0) == 0.2);
  const auto alpha = [&](int t) { return 0.2 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)); };
  CHECK(s.prepare<double>(0).rule.alpha == doctest::Approx(alpha(1)));
  s.finish(0);
  const auto exact = s.prepare<double>(1);
  CHECK(exact.rule.alpha == doctest::Approx(alpha(2)));
  CHECK(s.prepare<float>(1).rule.alpha == static_cast<float>(exact.rule.alpha));
  CHECK(decltype(s)::convert<float>(exact).rule.new_m == static_cast<float>(exact.rule.new_m));
  s.restart();
  CHECK(s.prepare<double>(0).rule.alpha == doctest::Approx(alpha(1)));
}
