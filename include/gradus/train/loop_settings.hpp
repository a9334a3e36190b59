// This header has the settings of a run loop, what listens to its saves, and the lines that it reports about them.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../checkpoint/saver.hpp"
#include "../summary/writer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the folder of a run's files, and the intervals of its actions.
struct loop_settings {
  std::string directory = {};  // of checkpoints and event files; empty: there are none
  std::string basename = "model";
  bool saves = false;                                     // checkpoints; false: existing ones are restored all the same
  bool publishes_graph = false;                           // graph.pbtxt, and a .meta file beside each checkpoint
  std::optional<summary_writer_options> events = {};      // of the event file; none: there is none
  double summary_steps = 0;                               // summaries after these steps, and after the first
  double summary_secs = 0;                                // or so long after the last ones; 0: never
  double log_steps = 100;                                 // a line of progress
  bool restore_fallback = false, restore_newest = false;  // as in run_config
  saved_input restore_input = saved_input::required;      // as in run_config
  std::uint64_t seed = 0;
  int keeps_best = 0;
  std::string_view keeps_best_by = "keep_checkpoint_best";  // the name of the option that the user set

  bool has_files() const { return !directory.empty(); }
  std::string prefix() const;
};

// This is the interface of a listener of a run's saves that is not a policy.
class told_of_saves {
public:
  virtual void before_save(std::int64_t step) = 0;
  virtual bool after_save(std::int64_t step) = 0;  // returns whether it requests a stop

protected:
  ~told_of_saves() = default;
};

std::string restored_line(const restored& found);
// Returns the newest checkpoint that the directory's state file lists; empty if there is none or it cannot be read.
std::string newest_listed(const any_file_system& fs, const std::string& directory);
// What a run has restored, and the newest checkpoint that was listed then.
struct restored_run {
  std::optional<restored> found;
  std::string newest;
};
// Restores `path` (if it is empty, the newest checkpoint) for a run whose last step is `last`; run_loop::restore.
restored_run restore_run(any_saver& files, const any_file_system& fs, const loop_settings& s, const state_list& list,
                         bool only_reading, std::string_view path, std::int64_t last);
// Restores the position of the input from `path`, of which `newest_then` was the newest; run_loop::restore_position.
restored restore_input_of(any_saver& files, const any_file_system& fs, const loop_settings& s, const state_list& list,
                          const std::string& path, const std::string& newest_then);
// Raises failed_precondition if the newest checkpoint of the directory is not the last of `own`, which held `step`.
void refuse_others(const any_file_system& fs, const std::string& directory, const std::vector<std::string>& own,
                   std::int64_t step);
// Returns the warning that none of the `made` checkpoints was ranked, for a run that keeps the best ones. It is empty
// for a single checkpoint, which can still be ranked; of several, all but the last can no longer be.
std::string unranked_checkpoints(const loop_settings& s, std::int64_t made, std::int64_t saved_step);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "loop_settings.ipp"
#endif
