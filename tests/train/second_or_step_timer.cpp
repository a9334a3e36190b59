#include <gradus/train/second_or_step_timer.hpp>

#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("K1 both intervals or none, and ones that are not above 0, are refused") {
  CHECK_THROWS_AS(second_or_step_timer({.every_secs = 2.0, .every_steps = 10}), invalid_argument);
  CHECK_THROWS_AS(second_or_step_timer({}), invalid_argument);
  CHECK_THROWS_AS(second_or_step_timer({.every_secs = 0.0}), invalid_argument);
  CHECK_THROWS_AS(second_or_step_timer({.every_steps = -1}), invalid_argument);
}

TEST_CASE("K1 the first trigger is true; every 3 steps after 1: at 4 and not before") {
  second_or_step_timer timer({.every_steps = 3});
  CHECK(timer.should_trigger_for_step(1));
  CHECK(timer.should_trigger_for_step(1));  // until it is updated
  timer.update_last_triggered_step(1);
  CHECK(!timer.should_trigger_for_step(1));
  CHECK(!timer.should_trigger_for_step(2));
  CHECK(!timer.should_trigger_for_step(3));
  CHECK(timer.should_trigger_for_step(4));
  timer.reset();
  CHECK(timer.should_trigger_for_step(1));
}

TEST_CASE("K1 every second: it takes the second and another step") {
  testing::hand_tasks hand;
  second_or_step_timer timer({.every_secs = 1.0}, hand.tasks());
  CHECK(timer.should_trigger_for_step(1));
  timer.update_last_triggered_step(1);
  CHECK(!timer.should_trigger_for_step(1));
  CHECK(!timer.should_trigger_for_step(2));
  hand.advance(1);
  CHECK(!timer.should_trigger_for_step(1));
  CHECK(timer.should_trigger_for_step(2));
}

TEST_CASE("K1 update gives nothing first, then what has passed") {
  testing::hand_tasks hand;
  second_or_step_timer timer({.every_secs = 1.0}, hand.tasks());
  const auto first = timer.update_last_triggered_step(1);
  CHECK((!first.secs && !first.steps));
  hand.advance(2.5);
  const auto second = timer.update_last_triggered_step(5);
  CHECK((second.secs == 2.5 && second.steps == 4));
  CHECK(timer.last_triggered_step() == 5);
}
