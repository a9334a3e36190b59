// The summary writer writes a training run's curves for TensorBoard.
//
//   gradus::summary_writer<> log("runs/digits");
//   log.start(first_step);                        // the smallest step that this process may write
//   log.add_scalar("loss", loss, step);
//   log.sync();                                   // before a checkpoint is published
//   log.close();
//
// Every writer makes a file of its own, events.out.tfevents.<seconds>.<host><suffix>, and never changes another: the
// file of a killed process, perhaps with an incomplete last record, stays as it is, and viewers read it up to that
// record.
//
// Restarts. TensorBoard joins the files of a directory in the order of their names. A START that is not the first of
// the directory drops all points at or after its step, in earlier files too, so a restarted run that calls
// `start(restored_step + 1)` before its first summary gives one curve, without a fork. (A run that starts without a
// checkpoint calls `start(0)`.) For a curve without a gap the events up to a checkpoint must be written before the
// checkpoint is; `flush` is enough if the process is killed, `sync` if the machine fails.
//
// The writing thread. TensorFlow's FileWriter passes events to a thread of its own, through a queue of max_queue = 10.
// Here a max_queue above 0 starts such a thread; by default there is none: an event is encoded by the caller into
// memory that is already allocated, and written when flush_secs have passed, when the memory is full, and on flush,
// sync and close. An error is raised by the call in which it occurs; accepted events are kept and written by a later
// call, which continues where the last one stopped.
//
//   gradus::summary_writer<> log("runs/digits", {.max_queue = 10'000});
//
// has a thread, and room for that many events that wait for it, so training does not wait for a disk. Then every call
// that adds an event returns whether the event was accepted. With `full_queue::reject`, the default, a full queue
// rejects the event, and `rejected` counts it; with `full_queue::block` the call waits, as in TensorFlow. Accepted
// events are in the file after close; the next call raises a disk error of the thread.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "../base/clock.hpp"
#include "../base/error.hpp"
#include "../store/file.hpp"
#include "../store/record.hpp"
#include "event.hpp"
#include "queue.hpp"
#include "tag.hpp"

namespace gradus::inline GRADUS_BUILD {

struct summary_writer_options {
  double flush_secs = 120;               // seconds between writes, as in TensorFlow; 0 writes every event at once
  std::size_t buffer_bytes = 64 * 1024;  // the bytes that are collected before they are written in any case
  std::size_t max_queue = 0;             // events that may wait for a thread that writes them; 0: no thread
  full_queue when_full = full_queue::reject;
  std::string filename_suffix = {};  // ends the file's name; include a dot if you want one
  std::string hostname = {};         // empty: this machine's
  task_system run = {};              // starts the thread
};

inline constexpr std::string_view event_file_prefix = "events.out.tfevents.";

// Returns a writer's file name. Seconds have ten digits, so that names are in the order of time; `again` > 0 numbers
// files of the same second.
std::string event_file_name(std::int64_t seconds, std::string_view host_and_suffix, int again = 0);

namespace detail {
inline constexpr std::int64_t last_event_second = 9'999'999'999;

bool is_event_file_name(std::string_view name);

// Returns a name that sorts after all event files of the directory, even if the clock was set back.
std::string next_event_file_name(std::span<const std::string> names, std::int64_t now,
                                 std::string_view host_and_suffix);

std::string host_name();
}  // namespace detail

namespace detail {
// A summary_writer whose file system and clock are type-erased.
class any_summary_writer {
public:
  // Makes the directory if it is missing, and the file, with its version event written. Raises unimplemented in a
  // program that was compiled without protozero (GRADUS_PROTOZERO).
  any_summary_writer(std::string logdir, summary_writer_options options, any_file_system fs, any_clock clock);
  any_summary_writer(const any_summary_writer&) = delete;
  any_summary_writer& operator=(const any_summary_writer&) = delete;
  // Writes what it can, and reports no error; close() does.
  ~any_summary_writer();

  // Functions that add return whether the event was accepted: always true, unless a full queue rejects it.
  bool add_scalar(std::string_view tag, float value, std::int64_t step);

  // Adds several scalars of one step, as one event.
  bool add_summary(std::span<const scalar_value> values, std::int64_t step);
  bool add_summary(std::initializer_list<scalar_value> values, std::int64_t step);
  // Adds values of any kind: histograms, images, audio, text, ... (values.hpp and its neighbours).
  bool add_summary(const std::vector<summary_value>& values, std::int64_t step);

  // Marks the beginning of a session; `first_step` is the smallest step that it may write: one past the restored step,
  // or 0.
  bool start(std::int64_t first_step) { return add_session_log(session_log_status::start, first_step); }

  // `checkpoint_path` goes with session_log_status::checkpoint: the prefix, without the step.
  bool add_session_log(session_log_status what, std::int64_t step, std::string_view checkpoint_path = {},
                       std::string_view msg = {});

  // Adds a serialized GraphDef (summary/graph_def.hpp).
  bool add_graph(std::span<const std::byte> graph_def, std::int64_t step = 0);

  // Does the same for a graph_def, which to_graph_def(...) of graph.hpp returns.
  template <class Graph>
    requires requires(std::vector<std::byte>& out, const Graph& g) { encode_graph_def(out, g); }
  bool add_graph(const Graph& graph, std::int64_t step = 0) {
    std::vector<std::byte> bytes;
    encode_graph_def(bytes, graph);
    return add_graph(std::span<const std::byte>(bytes), step);
  }

  // Adds a serialized MetaGraphDef (summary/meta_graph.hpp).
  bool add_meta_graph(std::span<const std::byte> meta_graph_def, std::int64_t step = 0);

  // Adds a serialized RunMetadata: the times of one step's nodes (run_metadata.hpp). Each tag may be used once in a
  // writer.
  bool add_run_metadata(std::string_view tag, std::span<const std::byte> run_metadata, std::int64_t step);

  // Does the same for step times, which to_step_times(profile) returns.
  template <class Times>
    requires requires(std::vector<std::byte>& out, const Times& t) { encode_run_metadata(out, t); }
  bool add_run_metadata(std::string_view tag, const Times& times, std::int64_t step) {
    std::vector<std::byte> bytes;
    encode_run_metadata(bytes, times);
    return add_run_metadata(tag, std::span<const std::byte>(bytes), step);
  }

  // Adds any event; its wall time is kept.
  bool add_event(const event& e);

  // Writes all events to the operating system: TensorBoard sees them, and they are not lost if the process is killed.
  void flush();
  // Writes all events to the disk: they are not lost in a power failure.
  void sync();
  // After close nothing may be added until reopen or resume. It may be called again, also to try once more after an
  // error.
  void close();
  // Continues in a new file.
  void reopen();

  // Continues after close in the same file, at its end, or in a new file if the old one was removed, or if another
  // writer has begun one behind it.
  void resume();

  // Lets several owners have this writer (shared_writer.hpp): after one of them has closed it, what another one adds
  // resumes it. Begins a new file if another writer has begun one behind this writer's.
  void share();

  // Returns the file of this writer, or its last one.
  std::string path() const;
  // Returns the number of events that a full queue rejected.
  std::uint64_t rejected() const;
  // Returns what to report about the events that were rejected since the last call; it is empty if there were none.
  std::string lost_events();

private:
  using queue = event_queue;
  using lock_type = std::unique_lock<std::mutex>;

  void open();

  template <class Encode>
  bool add(Encode&& encode) {
    return add(options_.when_full, encode);
  }
  template <class Encode>
  bool add(full_queue when_full, Encode&& encode) {
    lock_type lock(mutex_);
    return add(lock, when_full, encode);
  }
  template <class Encode>
  bool add(lock_type& lock, full_queue when_full, Encode&& encode) {
    std::vector<std::byte>* to = &scratch_;
    do {
      be_open(lock);
      if (queue_) to = queue_->room(lock, when_full);
      if (to == nullptr) return ++rejected_, false;
    } while (!open_ && is_shared_);  // it may have been closed while this call waited
    check_open();
    scratch_.clear();
    append_record(*to, [&](std::vector<std::byte>& out) { encode(out, static_cast<double>(clock_.now())); });
    if (!queue_) file_->write(scratch_);
    const double now = clock_.elapsed();
    const bool due = now - flushed_at_ >= options_.flush_secs;
    if (queue_)
      queue_->added(due);
    else if (due)
      file_->flush();
    if (due) flushed_at_ = now;
    return true;
  }

  // Resumes a writer that is shared; raises failed_precondition if another one is closed.
  void be_open(lock_type& lock);
  void check_open() const;
  bool has_newest_file() const;
  void sync_closed() const;
  void close_file(lock_type& lock);

  // A summary has few values, and this search for duplicates needs no memory.
  template <class Value>
  static void check_tags(std::span<const Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view tag = values[i].tag;
      if (!is_utf8(tag))
        raise(status::invalid_argument, text("the tag \"", clean_tag(tag),
                                             "\" (cleaned) is not UTF-8; clean_tag does "
                                             "what tf.summary does to names"));
      for (std::size_t k = 0; k < i && !tag.empty(); ++k)
        if (values[k].tag == tag)
          raise(status::invalid_argument,
                text("Duplicate tag ", tag, " found in summary inputs; give one of them another name"));
    }
  }

  std::mutex control_;  // flush, sync, close and reopen one at a time; taken before the other
  mutable std::mutex mutex_;
  std::string logdir_;
  summary_writer_options options_;
  any_file_system fs_;
  any_clock clock_;
  std::string path_;
  std::vector<std::byte> scratch_;     // one record, before it is appended
  std::vector<std::string> run_tags_;  // tags that have been used; they are few
  std::optional<appended_file> file_;  // the thread uses it, if there is one
  std::optional<queue> queue_;
  std::uint64_t rejected_ = 0, reported_ = 0;
  double flushed_at_ = 0;
  bool open_ = false, is_shared_ = false;
};
}  // namespace detail

// Steps are global steps; wall times are taken from the clock when an event is added. Any thread may call any function.
// Raises the errors of the file system (resource_exhausted, permission_denied, ...); invalid_argument for a tag that is
// not UTF-8 or occurs twice in one summary; failed_precondition after close.
template <file_system FileSystem = posix, clock Clock = system_clock>
class summary_writer : public detail::any_summary_writer {
public:
  // Makes the directory if it is missing, and the file, with its version event written. Raises unimplemented in a
  // program that was compiled without protozero (GRADUS_PROTOZERO).
  explicit summary_writer(std::string logdir, summary_writer_options options = {}, FileSystem fs = {}, Clock clock = {})
      : any_summary_writer(std::move(logdir), std::move(options), fs, clock) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "writer.ipp"
#endif
