// A graph whose global step a run sets or raises, and a session of it that hooks see, run by run, without a monitored
// session around them.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/train/any_hook.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct hooked {
  gradus::graph g;
  gradus::value step = gradus::create_global_step(g);
  gradus::value to = g.placeholder("to", {}, gradus::int64), set = gradus::assign(step, to);
  gradus::session<> s{g};
  gradus::detail::hook_calls calls;

  hooked() {
    s.initialize();
    calls.bind(
        s, [](gradus::base_session& b) { return gradus::global_step(b, gradus::get_global_step(b.of())); },
        [](gradus::base_session& b, std::string_view name) { return b.variable(name); });
  }
  void create(const gradus::any_hook& h) { h.begin(), h.after_create_session(calls.session()); }
  // A run after which the global step is this; whether the hook asked for a stop.
  bool run_to(const gradus::any_hook& h, std::int64_t step_after) {
    calls.clear_stop();
    auto args = h.before_run(calls.context());
    const std::vector<std::int64_t> now{step_after};
    args.fetches.push_back(set), args.feeds.push_back({to, now});
    const gradus::run_results results = s.run(args.fetches, args.feeds);
    calls.values().results = std::span<const gradus::const_tensor_view>(results).first(results.size() - 1);
    h.after_run(calls.context(), calls.values());
    return calls.context().stop_requested();
  }
  void end(const gradus::any_hook& h) { h.end(calls.session()); }
};

template <class Error, class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
