#include <gradus/train/hooks/global_step_waiter_hook.hpp>

#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include "hooked.hpp"

using namespace gradus;

TEST_CASE("K13 0 does not wait, nor does a number below") {
  for (const std::int64_t until : {0, -3}) {
    testing::hand_tasks hand;
    hooked m;
    const any_hook h = global_step_waiter_hook(until, hand.tasks());
    m.create(h);
    h.before_run(m.calls.context());
    CHECK(hand.elapsed() == 0);
  }
}

TEST_CASE("K13 1000 with steps 0, 500, 1100: two sleeps of half a second, then none any more") {
  testing::hand_tasks hand;
  hooked m;
  const any_hook h = global_step_waiter_hook(1000, hand.tasks());
  m.create(h);
  const auto at = [&](std::int64_t step) {
    const std::vector<std::int64_t> now{step};
    m.s.run(m.set, {{m.to, now}});
  };
  bool ran = false;
  auto waits = hand.tasks().start("a test", "do without", [&] {
    h.before_run(m.calls.context());
    ran = true;
  });
  hand.settle();
  at(500);
  hand.advance(0.5);
  CHECK(!ran);
  at(1100);
  hand.advance(0.4);
  CHECK(!ran);
  hand.advance(0.1);
  CHECK(ran);
  waits.join();
  at(0);
  h.before_run(m.calls.context());  // it has started
}
