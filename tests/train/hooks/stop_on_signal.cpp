#include <gradus/train/hooks/stop_on_signal.hpp>

#include <gradus/session/coordinator.hpp>
#include <gradus/train/any_hook.hpp>

#include <doctest/doctest.h>

using namespace gradus;

// Programs that are signalled: tests/whole/stopped_by_signal.cpp.
TEST_CASE("asks for a stop behind the step in which the signal came, and in every later one") {
  stop_on_signal on_usr({SIGUSR1});
  const any_hook h = on_usr;
  const auto stops = [&] {
    run_context c;
    run_values v;
    h.after_run(c, v);
    return c.stop_requested();
  };
  coordinator coord;
  on_usr.tell(coord);
  CHECK((!stops() && !on_usr.arrived() && !coord.should_stop()));
  std::raise(SIGUSR1);
  on_usr.tell(coord);
  CHECK((stops() && stops() && on_usr.arrived() && coord.should_stop()));
}
