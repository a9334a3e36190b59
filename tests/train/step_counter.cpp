#include <gradus/train/step_counter.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("steps per second are of the steps since the last due report") {
  detail::step_counter c;
  c.start(10, 100);
  auto r = c.count(11, 20, 0.5, 0.1, 102, 5);
  CHECK(!c.due());
  CHECK(r.step == 11);
  CHECK(r.steps_per_sec == 0.5);
  CHECK(r.eta_secs == 18);
  c.count(14, 20, 0.5, 0.1, 104, 5);
  CHECK(c.steps_per_sec() == 1);  // not that of the first step
  r = c.count(15, 0, 0.5, 0.1, 110, 5);
  CHECK(c.due());
  CHECK(r.steps_per_sec == 0.5);
  CHECK(r.eta_secs == 0);  // nobody said how many there will be
  r = c.count(20, until_data_end, 0.5, 0.1, 111, 5);
  CHECK((r.max_steps == 0 && r.eta_secs == 0));
  CHECK(c.steps_per_sec() == 5);
  c.count(21, 0, 0.5, 0.1, 111, 0);
  CHECK(!c.due());                // never
  CHECK(c.steps_per_sec() == 5);  // no time has passed
}
