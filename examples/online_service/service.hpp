// A service that learns while it answers: one thread trains, in the order of a log; any threads predict, from copies of
// the model that no step changes; another thread writes checkpoints.
//
//   log ──► training thread ──► the learner's variables ──► snapshots ──► predictions
//                                        └──► a copy ──► saver's thread ──► checkpoint
#pragma once
#include <atomic>
#include <gradus/checkpoint/background.hpp>
#include <gradus/checkpoint/saver.hpp>
#include <gradus/session/coordinated_thread.hpp>
#include <gradus/session/coordinator.hpp>
#include <gradus/store/directory_lock.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log.hpp"
#include "model.hpp"

namespace online {

struct options {
  std::string folder = "runs/online";  // examples.log, and checkpoints
  sizes of = {};
  std::size_t batch = 16;        // examples of one step; a step waits for so many
  std::int64_t save_every = 64;  // steps
};

class service {
public:
  // Goes on from the newest checkpoint of the folder, and begins to train. Errors: failed_precondition where another
  // process trains in the folder; what reading a checkpoint and a log raises.
  explicit service(options o)
      : o_(std::move(o)),
        lock_(gradus::posix{}, o_.folder),
        learner_(o_.of),
        snapshots_(o_.of),
        saves_(gradus::saver{gradus::saver_options{.max_to_keep = 3}}) {
    learner_.remembers(state_);
    if (!saves_.files().restore_latest(state_, o_.folder)) learner_.initialize();
    began_ = steps_ = saved_ = learner_.global_step();
    snapshots_.show(learner_, steps_);
    log_.emplace(o_.folder + "/examples.log", static_cast<std::size_t>(o_.of.features),
                 steps_ * static_cast<std::int64_t>(o_.batch));
    trains_.emplace("thread", "train", &coord_, coord_.tasks(), [this] {
      coord_.stop_on_exception([this] { train(); });
      log_->close();
    });
    trains_->start();
  }
  service(const service&) = delete;
  // Without stop() it ends as if it had been killed: after the step at work, without a checkpoint.
  ~service() {
    log_->abandon();
    trains_->join();
  }

  snapshots::answer predict(std::span<const float> features) { return snapshots_.predict(features); }
  // The number of examples in the log, this one included; nothing for what is no example.
  // Error: what has ended training.
  std::optional<std::int64_t> learn(const std::string& line) {
    coord_.raise_requested_exception();
    return log_->add(line);
  }
  std::int64_t examples() const { return log_->count(); }
  std::int64_t steps() const { return steps_; }
  std::int64_t began_at() const { return began_; }
  int features() const { return o_.of.features; }
  // The next step saves.
  void save_soon() { asked_to_save_ = true; }

  // Learns what is in the log, saves, and ends training. Raises what ended it before.
  void stop() {
    log_->close();
    finish();
  }
  // Saves after the step at work, and ends training.
  void stop_now() {
    log_->abandon();
    finish();
  }

private:
  options o_;
  gradus::directory_lock<gradus::posix> lock_;
  learner learner_;
  snapshots snapshots_;
  gradus::state_list state_;
  gradus::background_saver<gradus::saver<>, gradus::copy_snapshot> saves_;
  std::optional<example_log> log_;
  std::atomic<std::int64_t> steps_{0};
  std::atomic<bool> asked_to_save_{false};
  std::int64_t began_ = 0, saved_ = -1;
  gradus::coordinator<> coord_;
  std::mutex finishing_;
  std::optional<gradus::coordinated_thread> trains_;  // last: it ends before what it uses

  void train() {
    std::vector<float> truth, features;
    while (log_->take(o_.batch, truth, features)) {
      learner_.step(truth, features);
      snapshots_.show(learner_, ++steps_);
      if (steps_ % o_.save_every == 0 || asked_to_save_.exchange(false)) save();
    }
  }
  // The log is on the disk before a checkpoint that was learned from it.
  void save() {
    log_->sync();
    saves_.save(state_, o_.folder + "/model", steps_);
    saved_ = steps_;
  }
  void finish() {
    const std::lock_guard lock(finishing_);
    coord_.join();
    if (saved_ != steps_ || steps_ == 0) save();
    saves_.finish();
  }
};

}  // namespace online
