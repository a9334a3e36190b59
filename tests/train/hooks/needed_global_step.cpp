#include <gradus/train/hooks/needed_global_step.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/global_step_waiter_hook.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

TEST_CASE("hooks that need a global step say so, each by its name, when the graph has none") {
  const auto why = [](any_hook h) {
    graph g;
    scaffold parts;
    chief_session_creator chief(sessions_of(g), g, parts);
    try {
      monitored_session s(chief, {h});
    } catch (const failed_precondition& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string rest = ": Global step should be created to use it";
  CHECK(why(stop_at_step_hook({.last_step = 3})).find("stop_at_step_hook" + rest) == 0);
  CHECK(why(global_step_waiter_hook(3)).find("global_step_waiter_hook" + rest) == 0);
  CHECK(why(checkpoint_saver_hook("runs", {.save_steps = 3})).find("checkpoint_saver_hook" + rest) == 0);
  CHECK(why(global_step_waiter_hook(0)).empty());
}
