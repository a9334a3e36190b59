// This hook ends a run in order when the program receives a signal: the current step is finished, unsaved state is
// saved, `end` of hooks is called, files are closed. A second signal ends the program at once. POSIX only.
//
//   gradus::stop_on_signal on_signal;   // SIGTERM and SIGINT
//   auto trainer = gradus::make_trainer<digits>(gradus::adam{}, on_signal, config);   // a supervisor takes it likewise
//   gradus::monitored_session sess(chief, {on_signal, ...});
//   while (!on_signal.arrived()) trainer.train(data, {.steps = 100}), trainer.evaluate(test_set);
//
// It watches the signals from its construction until its last copy is destroyed; a run that begins after the signal
// makes one step. A step that waits for its input is not woken; a loop of a supervisor can do that, since the
// supervisor's stop ends waits in queues:
//
//   sv.loop(0.5, [&] { on_signal.tell(sv); });
//
// TensorFlow 1.x has no such hook; its programs die, and lose the steps since the last checkpoint.
#pragma once
#include "../../checkpoint/signal_watch.hpp"
#include "../hook.hpp"

namespace gradus::inline GRADUS_BUILD {

class stop_on_signal {
public:
  using policy_for = kind::hook;

  // Raises invalid_argument for a number that is not a signal, or for a signal that cannot be caught.
  explicit stop_on_signal(std::initializer_list<int> numbers = {SIGTERM, SIGINT}) : watch_(numbers) {}

  void after_run(run_context& c, const run_values&) const {
    if (arrived()) c.request_stop();
  }
  // Returns true if one of the signals came.
  bool arrived() const { return watch_.arrived(); }
  // Requests a supervisor or a coordinator to stop, if a signal came. Any thread may call it.
  template <class Stops>
  void tell(Stops& of) const {
    if (arrived()) of.request_stop();
  }

private:
  signal_watch watch_;
};

}  // namespace gradus
