// What one call of an estimator's train adds to the graph and to the hooks of its session, and what it finds out by
// them.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../checkpoint/saver.hpp"
#include "../train/hooks/checkpoint_saver_hook.hpp"
#include "../train/run_config.hpp"
#include "../train/run_log.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns whether the graph has a summary with this tag.
bool shows(graph& g, std::string_view tag);

// Returns whether the graph collects updates, as batch_norm's moving averages, none of which the train op makes.
bool leaves_updates_out(graph& g, value train_op);

// Returns the options of the saver that a training makes if the scaffold has none.
saver_options saver_options_for(const run_config& c);

// Returns the warning for a keep_checkpoint_best whose metric nothing can measure.
std::string best_of_nothing(const run_config& c);

// The listeners of a call leave the hook with it: they may refer to what ends then.
class listeners_of_call {
public:
  explicit listeners_of_call(checkpoint_saver_hook* to) : to_(to), before_(to != nullptr ? to->listeners() : 0) {}
  listeners_of_call(const listeners_of_call&) = delete;
  ~listeners_of_call() {
    if (to_ != nullptr) to_->keep_listeners(before_);
  }

private:
  checkpoint_saver_hook* to_;
  std::size_t before_;
};

// The events of an estimator's trainings are in one file, which is closed between them.
class events_of_call {
public:
  events_of_call(any_summary_writer* w, std::function<void(const std::string&)> warn) : w_(w), warn_(std::move(warn)) {
    if (w_ != nullptr) w_->resume();
  }
  events_of_call(const events_of_call&) = delete;
  ~events_of_call() {
    try {
      try {
        close();
      } catch (const error& e) {  // the error that ended the training goes on
        warn_(text("the end of the events is not on file: ", e.what()));
      }
    } catch (...) {  // what the log raises
    }
  }
  void close() {
    if (w_ == nullptr) return;
    if (const std::string lost = w_->lost_events(); !lost.empty()) warn_(lost);
    w_->close();
  }

private:
  any_summary_writer* w_;
  std::function<void(const std::string&)> warn_;
};

// Writes the events to the file before a checkpoint is published, whatever the order of the hooks.
struct events_before_saves {
  any_summary_writer* writer;
  void before_save(hooked_session&, std::int64_t) const { writer->flush(); }
};

// Counts the saves of a call.
struct counted_saves {
  std::int64_t* made;  // of steps above 0
  std::int64_t* last;
  bool after_save(hooked_session&, std::int64_t step) const { return *made += step > 0, *last = step, false; }
};

// The steps at which a training began and at which it is.
struct steps_seen {
  std::optional<std::int64_t>* first;
  std::int64_t* now;
  void after_create_session(hooked_session& s) const {
    *now = s.global_step();
    if (!*first) *first = *now;
  }
  void after_run(run_context& c, const run_values&) const { *now = c.session().global_step(); }
};

// Remembers in which file a training wrote its graph, if it came so far.
struct graph_noted {
  std::string* file;
  const any_summary_writer* writer;
  std::shared_ptr<checkpoint_saver_hook> hook{};
  ~graph_noted() {
    if (hook != nullptr && writer != nullptr && hook->has_shown_graph()) *file = writer->path();
  }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "training_call.ipp"
#endif
