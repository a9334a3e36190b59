#include <gradus/update/schedules/sequence.hpp>

#include <doctest/doctest.h>

#include <gradus/base/state.hpp>
#include <gradus/update/schedules/plateau.hpp>
#include <gradus/update/schedules/warmup.hpp>

#include "../schedule_cases.hpp"

using namespace gradus;

namespace {
// Its own step, so that a test sees where it is counted from.
struct step_itself {
  using policy_for = kind::schedule;
  constexpr double operator()(std::int64_t step) const { return static_cast<double>(step); }
};
}  // namespace

TEST_CASE("a schedule after another counts from where it starts") {
  constexpr auto s = sequence(constant{0.5}, 10, step_itself{}, 20, constant{7}, 30, step_itself{});
  static_assert(s(0) == 0.5 && s(9) == 0.5 && s(10) == 0 && s(19) == 9 && s(20) == 7 && s(29) == 7 && s(30) == 0);
  static_assert(s(1'000'000'000'030) == 1e12);
  constexpr auto then = sequence(constant{0.5}, 10, step_itself{}).then(20, constant{7}).then(30, step_itself{});
  for (std::int64_t i = 0; i < 50; ++i) CHECK(then(i) == s(i));
  golden::check_pure(s);
  constexpr auto warmed = linear_warmup{.peak = 1, .warmup_steps = 4}.then(step_itself{}).then(6, constant{9});
  static_assert(warmed(2) == 0.5 && warmed(4) == 0 && warmed(5) == 1 && warmed(6) == 9);
}

TEST_CASE("scaled and multiplied schedules are schedules") {
  constexpr auto s =
      scaled(product_of(step_itself{}, exponential_decay{.initial = 1, .decay_steps = 1, .decay_rate = 0.5}), 8);
  static_assert(s(0) == 0 && s(1) == 4 && s(3) == 3);
  static_assert(rate_schedule<decltype(s)> || rate_schedule<std::remove_const_t<decltype(s)>>);
  golden::check_pure(s);
}

TEST_CASE("a whole listens where a part does, and remembers it") {
  static_assert(!observing_schedule<decltype(scaled(constant{}, 2))>);
  static_assert(!observing_schedule<decltype(product_of(constant{}, constant{}))>);
  auto s = scaled(product_of(sequence(constant{1}, 5, step_itself{}),
                             reduce_on_plateau{.initial = 1, .factor = 0.5, .patience = 0}),
                  2);
  static_assert(observing_schedule<decltype(s)>);
  CHECK(s(7) == 4);
  s.observe(1), s.observe(1);
  CHECK(s(7) == 2);
  CHECK(s(0) == 1);

  state_list list;
  s.remembers(list);
  CHECK(list.entries().size() == 4);
  CHECK(list.find("reduce_on_plateau/rate")->bytes.data() == reinterpret_cast<std::byte*>(&s.schedule.b.rate));
  s.restart();
  CHECK(s(7) == 4);

  auto late = sequence(constant{1}, 5, reduce_on_plateau{.initial = 1, .factor = 0.5, .patience = 0});
  late.observe(1), late.observe(1);
  CHECK(late(4) == 1);
  CHECK(late(5) == 0.5);
  state_list both;
  auto two = product_of(late, s);
  CHECK_THROWS_AS(two.remembers(both), already_exists);
}
