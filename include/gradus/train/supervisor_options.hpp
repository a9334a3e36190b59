// These options set what a supervisor does besides the loop, with the names and defaults of tf.train.Supervisor (1.15).
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include "../checkpoint/saver.hpp"
#include "run_config.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is an argument that may be `none`: the supervisor then leaves that service to the program.
template <class Setting>
class service {
public:
  constexpr service() : setting_(Setting{}) {}
  constexpr service(const Setting& s) : setting_(s) {}
  template <class S>
    requires(std::convertible_to<S, Setting> && !std::same_as<std::remove_cvref_t<S>, Setting> &&
             !std::same_as<std::remove_cvref_t<S>, none_given> && !std::same_as<std::remove_cvref_t<S>, service>)
  constexpr service(S&& s) : setting_(Setting(std::forward<S>(s))) {}
  constexpr service(none_given) {}
  constexpr explicit operator bool() const { return setting_.has_value(); }
  constexpr const Setting& operator*() const { return *setting_; }

private:
  std::optional<Setting> setting_;
};
// A supervisor summarizes and saves in the step that finds it due, or on threads, as TensorFlow does.
enum class service_place : int { in_step, threads };
struct model_summaries {};  // the model's summaries, loss and metrics, learning rate, gradient norm, steps per second

struct supervisor_options {
  std::string logdir = {};                   // checkpoints, event files, graph.pbtxt; empty: nothing is left behind
  bool is_chief = true;                      // the task that initializes, restores, saves and writes
  service<model_summaries> summary_op = {};  // none: only summaries given to summary_computed
  service<summary_writer_options> summary_writer = {};  // of the events; none: no event file
  service<saver_options> saver = {};                    // none: nothing is saved or restored
  double save_summaries_secs = 120;                     // 0: never
  double save_model_secs = 600;                         // 0: only at the end of the scope, and by save()
  double log_step_count_steps = 100;                    // a line of progress in the log sink; 0: never
  double stop_grace_secs = 120;                         // for threads of `loop`, once a stop is requested
  std::string checkpoint_basename = "model";            // TensorFlow: model.ckpt; here the codec ends the name
  bool save_on_stop = true;
  service_place services = service_place::in_step;  // summarizes and saves by time: the step or threads
  bool restore_newest = false;                      // as in run_config: if logdir holds checkpoints, but no state file
  std::uint64_t tf_random_seed = 0;                 // of initializers and of ops that draw
  bool restore_fallback = false;                    // as in run_config: a damaged checkpoint is passed over
  saved_input restore_input = saved_input::required;  // as in run_config: a position in another input
};

namespace detail {
// Returns the options of the saver, or none without a logdir.
std::optional<saver_options> saver_options_of(const supervisor_options& o);
}  // namespace detail

// Resolves the options as a supervisor uses them: one that is not the chief has no files and no services. Raises
// invalid_argument for times that are negative or not numbers.
supervisor_options resolve(supervisor_options o);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "supervisor_options.ipp"
#endif
