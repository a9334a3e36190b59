// These functions wait for the checkpoints that another process writes while it trains; an evaluator calls them. As
// tf.train.checkpoints_iterator and contrib's wait_for_new_checkpoint: the directory's state file is read every second;
// a consumer that is slower than the saver sees only the newest.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <limits>

#include "../base/clock_tasks.hpp"
#include "../base/pause.hpp"
#include "../codec/state_file.hpp"

namespace gradus::inline GRADUS_BUILD {

struct wait_options {
  double timeout = std::numeric_limits<double>::infinity();  // seconds; then nothing is returned
  double poll = 1;                                           // seconds between two looks
  // Called to wait; it returns false to give up (a stop token, a coordinator). If it is empty, the thread sleeps, by
  // the clock where the clock is a task system.
  std::function<bool(double seconds)> pass = {};
  cancellation* stop = nullptr;  // the wait ends at once when this is cancelled: a coordinator's stopping()
};

// Waits until the newest checkpoint is another one than `last` (empty: any), and returns its path; returns an empty
// text after the time-out or a stop. While a state file is damaged or being written, the function keeps waiting.
template <file_system F, clock Clock = system_clock>
std::string wait_for_new_checkpoint(const F& fs, const std::string& directory, std::string_view last = {},
                                    const wait_options& options = {}, const Clock& clock = {}) {
  if (!(options.poll > 0))
    raise(status::invalid_argument, text("wait_for_new_checkpoint: poll is ", options.poll, "; give seconds above 0"));
  const double until = clock.elapsed() + options.timeout;
  for (;;) {
    checkpoint_state state;
    if (!try_read_state(fs, join_path(directory, state_file_name), state) && join_path(directory, state.newest) != last)
      if (auto path = latest_checkpoint(fs, directory); !path.empty() && path != last) return path;
    const double left = until - clock.elapsed();
    if (left <= 0 || (options.stop != nullptr && options.stop->is_cancelled())) return {};
    const double seconds = left < options.poll ? left : options.poll;
    if (!options.pass)
      detail::pause(tasks_of(clock), seconds, options.stop);
    else if (!options.pass(seconds))
      return {};
  }
}

// Calls `see(path)` for every new checkpoint until it returns false or none comes within the time-out. Returns how many
// were seen.
template <file_system F, class See, clock Clock = system_clock>
std::int64_t for_each_checkpoint(const F& fs, const std::string& directory, See&& see, const wait_options& options = {},
                                 const Clock& clock = {}) {
  std::string last;
  for (std::int64_t seen = 0;; ++seen) {
    auto path = wait_for_new_checkpoint(fs, directory, last, options, clock);
    if (path.empty() || !see(path)) return seen + !path.empty();
    last = std::move(path);
  }
}

}  // namespace gradus
