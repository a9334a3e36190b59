#include <gradus/train/hooks/needed_global_step.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/final_ops_hook.hpp>
#include <gradus/train/hooks/global_step_waiter_hook.hpp>
#include <gradus/train/hooks/logging_tensor_hook.hpp>
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

TEST_CASE("hooks that run ops at the end say so, each by its name, in a run over a model") {
  const auto why = [](any_hook h) {
    detail::hook_calls calls;
    try {
      h.end(calls.session());
    } catch (const failed_precondition& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  graph g;
  const value one = g.constant(1);
  const std::string rest = ": it runs ops at the end, which needs the session";
  CHECK(why(final_ops_hook({one})).find("final_ops_hook" + rest) == 0);
  CHECK(why(logging_tensor_hook({{"one", one}}, {.at_end = true})).find("logging_tensor_hook with at_end" + rest) == 0);
}
