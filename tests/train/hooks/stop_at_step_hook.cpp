#include <gradus/train/hooks/stop_at_step_hook.hpp>

#include <doctest/doctest.h>

#include "hooked.hpp"

using namespace gradus;

TEST_CASE("K2 both num_steps and last_step, or none, are refused") {
  CHECK_THROWS_AS(stop_at_step_hook({.num_steps = 10, .last_step = 20}), invalid_argument);
  CHECK_THROWS_AS(stop_at_step_hook({}), invalid_argument);
}

TEST_CASE("K2 last 10: not at 5 and 9, at 10 and 11") {
  hooked m;
  const any_hook h = stop_at_step_hook({.last_step = 10});
  m.create(h);
  CHECK(!m.run_to(h, 5));
  CHECK(!m.run_to(h, 9));
  CHECK(m.run_to(h, 10));
  CHECK(m.run_to(h, 11));
}

TEST_CASE("K2 num 10 from 5: not at 13, 14, at 15 and 16; a session made again moves nothing") {
  hooked m;
  const std::vector<std::int64_t> five{5};
  m.s.run(m.set, {{m.to, five}});
  const any_hook h = stop_at_step_hook({.num_steps = 10});
  m.create(h);
  CHECK(!m.run_to(h, 13));
  h.after_create_session(m.calls.session());
  CHECK(!m.run_to(h, 14));
  CHECK(m.run_to(h, 15));
  CHECK(m.run_to(h, 16));
}

TEST_CASE("K2 jumps are fine: from far below to far above") {
  hooked m;
  const any_hook h = stop_at_step_hook({.last_step = 10});
  m.create(h);
  CHECK(!m.run_to(h, 9));
  CHECK(m.run_to(h, 50));
}
