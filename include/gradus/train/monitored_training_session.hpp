// This monitored session does everything that training needs, for the chief and for workers: checkpoints, summaries,
// steps per second, initial values. It corresponds to tf.train.MonitoredTrainingSession (1.15).
//
//   gradus::monitored_training_session sess(g, gradus::sessions_of(g, opt), {.checkpoint_dir = "run"});
//   sess.within([&] {
//     while (!sess.should_stop()) sess.run(train, feeds);
//   });
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hooks/checkpoint_saver_hook.hpp"
#include "hooks/step_counter_hook.hpp"
#include "hooks/summary_saver_hook.hpp"
#include "monitored_session.hpp"
#include "run_config.hpp"

namespace gradus::inline GRADUS_BUILD {

struct monitored_training_options {
  bool is_chief = true;             // initializes and saves; the others wait for it, and run only `hooks`
  std::string checkpoint_dir = {};  // restored from, and saved to
  scaffold_options parts = {};
  std::vector<any_hook> hooks = {};             // the last ones
  std::vector<any_hook> chief_only_hooks = {};  // the first ones
  // Set one number of each pair; the other is then not used, and `none` means never. The default of the first pair is
  // 600 seconds, and of the second 100 steps. In a program without protozero a session without summaries and
  // log_step_count_steps writes no event file.
  interval save_checkpoint_secs = {}, save_checkpoint_steps = {};
  interval save_summaries_steps = {}, save_summaries_secs = {};
  double log_step_count_steps = 100;  // steps per second, in the events; 0: never
  std::string summary_dir = {};       // of the events; empty: checkpoint_dir
  double stop_grace_period_secs = 120;
  double max_wait_secs = 7200;                   // of tasks other than the chief
  std::shared_ptr<cancellation> stop = nullptr;  // ends that wait
  task_system tasks = {};
  bool restore_newest = false;    // as in run_config: if checkpoint_dir holds checkpoints, but no state file
  bool restore_fallback = false;  // as in run_config: a damaged checkpoint is passed over
  std::string checkpoint_basename = "model";  // TensorFlow: model.ckpt; here the codec ends the name
};

namespace detail {
// This is the state that a session creator reads as long as the session lives.
struct training_parts {
  training_parts(graph& g, session_factory open, const monitored_training_options& o);

  scaffold parts;
  std::shared_ptr<held_directory> alone;  // of a chief that saves, until the session takes it over
  std::unique_ptr<session_creator> creator;
};
std::vector<any_hook> training_hooks(scaffold& parts, const monitored_training_options& o);
}  // namespace detail

class monitored_training_session : private detail::training_parts, public monitored_session {
public:
  // A chief that saves locks checkpoint_dir before it restores from there, as a trainer does, until the session is
  // closed. Raises invalid_argument if both numbers of a pair are given, and the errors of a directory_lock and of a
  // monitored session.
  monitored_training_session(graph& g, session_factory open, const monitored_training_options& o)
      : training_parts(g, std::move(open), o),
        monitored_session(*creator, detail::training_hooks(parts, o),
                          {.stop_grace_period_secs = o.stop_grace_period_secs,
                           .stop = o.stop,
                           .tasks = o.tasks,
                           .holds = std::exchange(alone, nullptr)}) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "monitored_training_session.ipp"
#endif
