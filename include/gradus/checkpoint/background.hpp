// A background_saver saves without holding up training: it stages the state (staging.hpp), and its own thread writes
// the staged copy.
//
//   background_saver s(saver{...}, copy_snapshot{});
//   s.save(list, "runs/digits/model", step);        // returns when the state is staged
//   while (auto done = s.next_done()) report(*done);
//   s.finish();                                     // waits for the last save; raises its error
//
// One save is written at a time: a save that begins while another is being written waits for it (`back_pressure::wait`)
// or is given up and counted (`back_pressure::skip`). The next save or finish raises the error of a save. The
// destructor waits for the save under way, and its error is then lost, as it is in no other way: call finish() first,
// as the trainer does.
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <mutex>

#include "../base/tasks.hpp"
#include "in_place.hpp"
#include "staging.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class back_pressure { wait, skip };

template <class Saver, class Snapshot>
class background_saver {
public:
  explicit background_saver(Saver s, Snapshot snapshot = {}, back_pressure when_busy = back_pressure::wait,
                            const task_system& run = {})
      : saver_(std::move(s)),
        area_(snapshot),
        when_busy_(when_busy),
        changed_(run),
        thread_(run.start("a saver in the background", "save in place (in_place{})", [this] { serve(); })) {}
  background_saver(const background_saver&) = delete;
  background_saver& operator=(const background_saver&) = delete;
  ~background_saver() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Allocates memory for this state in advance, so that the first save takes no longer than the others.
  void prepare(const state_list& list) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
    area_.prepare(list);
  }

  // Begins a save. State may change as soon as this returns (for rolling_snapshot, only after a call of before_write).
  // Returns false if the save was skipped, since the one before it is still being written. Raises the error of an
  // earlier save.
  bool save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
            std::optional<double> metric = {}) {
    std::unique_lock lock(mutex_);
    if (when_busy_ == back_pressure::skip && busy_) return raise_error(lock), ++skipped_, false;
    changed_.wait(lock, [this] { return !busy_; });
    raise_error(lock);
    list.refresh();
    area_.begin(list);
    auto& content = area_.content();
    content.step = step, content.about = std::move(about);
    prefix_ = prefix, metric_ = metric;
    busy_ = true;
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  // Returns the guard that must be called, piece by piece, before state is changed while a save may be under way;
  // nullptr unless the snapshot is a rolling_snapshot.
  write_guard* guard() { return area_.guard(); }
  // Call this before a step if the guard is called only for changes within `guarded`: the rest of the state is copied
  // now.
  void before_step(std::span<const std::span<const std::byte>> guarded = {}) { area_.before_step(guarded); }

  // Returns the oldest finished save that has not been returned yet.
  std::optional<save_done> next_done() {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    auto out = std::move(done_.front());
    done_.pop_front();
    return out;
  }
  // Waits until nothing is being written; raises the error of a save.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
    raise_error(lock);
  }
  std::int64_t skipped() const {
    const std::lock_guard lock(mutex_);
    return skipped_;
  }
  // Use this for restoring, and for attached files, but not while a save is under way (call finish() first).
  Saver& files() { return saver_; }
  const Saver& files() const { return saver_; }

private:
  void raise_error(std::unique_lock<std::mutex>&) {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  void serve() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || busy_; });
      if (!busy_) return;  // a save that has begun is finished first
      lock.unlock();
      std::exception_ptr error;
      std::optional<save_done> done;
      try {
        area_.complete();
        const auto step = area_.content().step;
        done = save_done{step, saver_.save(area_.content(), prefix_, metric_)};
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (done) done_.push_back(std::move(*done));
      // The exception is moved, so that the thread that reads the result is its last owner and it is not destroyed on
      // this thread while the other one reads it.
      if (error && !error_) error_ = std::move(error);
      busy_ = false;
      lock.unlock();
      changed_.notify_all();
    }
  }

  Saver saver_;
  typename Snapshot::area area_;
  back_pressure when_busy_;
  mutable std::mutex mutex_;
  task_condition changed_;
  bool busy_ = false, ending_ = false;
  std::int64_t skipped_ = 0;
  std::string prefix_;
  std::optional<double> metric_;
  std::deque<save_done> done_;
  std::exception_ptr error_;
  task_handle thread_;  // last: the thread ends before the members that it uses are destroyed
};

template <class Saver>
background_saver(Saver) -> background_saver<Saver, copy_snapshot>;

}  // namespace gradus
