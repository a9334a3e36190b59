// This hook saves checkpoints of a monitored session: when it begins, every so many steps or seconds, and at the end.
// It corresponds to tf.train.CheckpointSaverHook (1.15).
//
// TensorFlow differs: as long as its monitored session is open, the hook locks the directory, as a trainer does
// (store/directory_lock.hpp); all hooks of one session share that lock.
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../checkpoint/saver.hpp"
#include "../../session/scaffold.hpp"
#include "../../store/directory_lock.hpp"
#include "../../summary/graph.hpp"
#include "../../summary/write_graph.hpp"
#include "../any_hook.hpp"
#include "../export_meta_graph.hpp"
#include "../second_or_step_timer.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

struct checkpoint_saver_options {
  std::optional<double> save_secs = {};  // exactly one of the two
  std::optional<std::int64_t> save_steps = {};
  std::shared_ptr<detail::any_saver> saver = nullptr;  // or the scaffold's; without both it makes one
  scaffold* parts = nullptr;
  std::string checkpoint_basename = "model";  // TensorFlow: model.ckpt; here the codec ends the name
  std::vector<any_saving_listener> listeners = {};
  // The writer gets the graph once, and a line for each checkpoint. It is flushed before each: give the hook the writer
  // of the session's summaries, so that a killed run has no hole in its curves.
  std::shared_ptr<detail::any_summary_writer> summary_writer = nullptr;
  bool write_graph = false;        // graph.pbtxt into the directory
  std::int64_t steps_per_run = 1;  // by how much a run may raise the global step
  task_system tasks = {};
  bool adds_graph = true;  // false: the writer has the graph already
};

class checkpoint_saver_hook {
public:
  // Raises invalid_argument for a saver and a scaffold, and for both intervals or none.
  explicit checkpoint_saver_hook(const std::string& checkpoint_dir, checkpoint_saver_options o)
      : o_(std::move(o)),
        prefix_(join_path(checkpoint_dir, o_.checkpoint_basename)),
        timer_({.every_secs = o_.save_secs, .every_steps = o_.save_steps}, o_.tasks) {
    if (o_.saver != nullptr && o_.parts != nullptr)
      raise(status::invalid_argument, "checkpoint_saver_hook: You cannot provide both saver and scaffold");
  }

  // Adds one listener, which is called after the others. Call this before the session is made.
  void add_listener(any_saving_listener l) { o_.listeners.push_back(std::move(l)); }
  const std::string& checkpoint_basename() const { return o_.checkpoint_basename; }
  bool has_shown_graph() const { return shown_; }
  std::size_t listeners() const { return o_.listeners.size(); }
  // Removes the listeners that were added after the first n.
  void keep_listeners(std::size_t n) {
    while (o_.listeners.size() > n) o_.listeners.pop_back();
  }
  // Raises the errors of a directory_lock.
  void lock_directories(detail::held_directories& locks) {
    const detail::any_saver* known = o_.saver != nullptr   ? o_.saver.get()
                                     : o_.parts != nullptr ? o_.parts->saver().get()
                                                           : nullptr;
    lock_ = locks.hold(known != nullptr ? known->disk() : any_file_system(), directory_of(prefix_));
  }
  void begin() const {
    for (const auto& l : o_.listeners) l.begin();
  }
  // Saves a new session at once; a stop that a listener requests is ignored here.
  void after_create_session(hooked_session& s) {
    detail::needed_global_step(s, "checkpoint_saver_hook");
    const std::int64_t step = gathered_step(s);
    show_graph(s.raw_session()->of());
    save(s, step, true);
    timer_.update_last_triggered_step(step);
  }
  session_run_args before_run(run_context& c) const {
    return {.fetches = {detail::needed_global_step(c.session(), "checkpoint_saver_hook")}};
  }
  void after_run(run_context& c, const run_values& v) {
    const std::int64_t stale = detail::step_in(v.results[0]);
    if (!timer_.should_trigger_for_step(stale + o_.steps_per_run)) return;
    const std::int64_t step = gathered_step(c.session());
    if (!timer_.should_trigger_for_step(step)) return;
    // An interval begins with its save, as TensorFlow's does. If the save raises, the end of the session saves.
    struct undone {
      second_or_step_timer* timer;
      second_or_step_timer before;
      ~undone() {
        if (timer != nullptr) *timer = before;
      }
    } by_an_error{&timer_, timer_};
    timer_.update_last_triggered_step(step);
    const bool stop = save(c.session(), step);
    by_an_error.timer = nullptr;
    if (stop) c.request_stop();
  }
  void end(hooked_session& s) {
    const std::int64_t last = gathered_step(s);
    if (timer_.last_triggered_step() != last) save(s, last);
    for (const auto& l : o_.listeners) l.end(s, last);
  }

private:
  checkpoint_saver_options o_;
  std::string prefix_;
  std::weak_ptr<detail::held_directory> lock_;  // the session keeps it
  second_or_step_timer timer_;

  bool shown_ = false;

  // Returns the step of what is saved next.
  static std::int64_t gathered_step(hooked_session& s) {
    if (s.raw_session()->is_of_a_task()) {
      const auto still = s.raw_session()->pause_runs();
      s.raw_session()->gather();
    }
    return s.global_step();
  }
  void show_graph(graph& g) {
    if (std::exchange(shown_, true)) return;
    if (o_.write_graph) gradus::write_graph(to_graph_def(g), directory_of(prefix_), "graph.pbtxt");
    if (o_.summary_writer != nullptr && o_.adds_graph) add_graphs(*o_.summary_writer, g);
  }
  detail::any_saver& saver() {
    if (o_.saver == nullptr)
      o_.saver =
          o_.parts != nullptr && o_.parts->saver() != nullptr ? o_.parts->saver() : std::make_shared<gradus::saver<>>();
    return *o_.saver;
  }
  // Returns true if a listener requests a stop; all listeners are called.
  bool save(hooked_session& s, std::int64_t step, bool is_what_was_restored = false) {
    for (const auto& l : o_.listeners) l.before_save(s, step);
    if (o_.summary_writer != nullptr) o_.summary_writer->flush();  // events up to a checkpoint are on file before it is
    {
      const auto still = s.raw_session()->pause_runs();  // queue runners' threads make runs too
      state_list list;
      s.raw_session()->remembers(list);
      saver().share(lock_.lock());
      if (is_what_was_restored) saver().follow(directory_of(prefix_));
      const auto rank = is_what_was_restored ? saver().rank_of(prefix_, step) : std::nullopt;
      saver().save(list, prefix_, step, {}, rank);
    }
    if (o_.summary_writer != nullptr) o_.summary_writer->add_session_log(session_log_status::checkpoint, step, prefix_);
    bool stop = false;
    for (const auto& l : o_.listeners) stop = l.after_save(s, step) || stop;
    return stop;
  }
};

}  // namespace gradus
