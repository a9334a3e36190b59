// How a training run behaves besides its mathematics: where it keeps its files, and how often it does what. The names,
// defaults and rules of tf.estimator.RunConfig (1.15).
#pragma once
#include <cstdint>
#include <string>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../checkpoint/retention.hpp"
#include "../summary/writer.hpp"

namespace gradus::inline GRADUS_BUILD {

// For an interval: never. Naming `none` is not the same as leaving it out.
struct none_given {};
inline constexpr none_given none{};

// Left out, none, or a number.
class interval {
public:
  constexpr interval() = default;
  constexpr interval(none_given) : given_(true) {}
  constexpr interval(double every) : given_(true), number_(true), every_(every) {}
  constexpr bool given() const { return given_; }
  constexpr bool has_value() const { return number_; }
  constexpr double value() const { return every_; }
  // A number above 0: only then does anything happen.
  constexpr bool active() const { return number_ && every_ > 0; }

private:
  bool given_ = false, number_ = false;
  double every_ = 0;
};

// Where a trainer writes, how often, and from which seed it starts.
struct run_config {
  using policy_for = kind::configuration;

  std::string model_dir = {};            // checkpoints and event files; empty: the run leaves nothing behind
  std::uint64_t tf_random_seed = 0;      // of initializers and of ops that draw (dropout); shuffle has its own
  double save_summary_steps = 100;       // what TensorBoard shows, every so many steps; 0: never
  interval save_checkpoints_steps = {};  // one of the two; neither: every 600 seconds; none: no checkpoints
  interval save_checkpoints_secs = {};
  int keep_checkpoint_max = 5;  // 0: all
  double keep_checkpoint_every_n_hours = 10000;
  keep_best keep_checkpoint_best = {};    // beside the newest: those with the best metric (trainer.save)
  bool checkpoint_save_graph_def = true;  // graph.pbtxt in model_dir, and a .meta file beside each checkpoint
  // Where the newest checkpoint is damaged, go on from the newest intact one (it is named; the damaged one is kept).
  // TensorFlow, and false, stops with an error.
  bool restore_fallback = false;
  // Where model_dir holds checkpoints but no state file, go on from the newest intact one. False: that is an error, and
  // training does not start anew beside them (TensorFlow does).
  bool restore_newest = false;
  reader_limits limits = {};          // of a checkpoint that is read: how many tensors, how much after inflation
  double log_step_count_steps = 100;  // progress, and steps per second for TensorBoard
  // How training's events are written: flush_secs; with max_queue by a thread, and what a full queue does.
  summary_writer_options summaries = {};
};

// The rule of two intervals: neither given, 600 seconds; one given, that one; two numbers are an error.
struct checkpoint_interval {
  interval steps, secs;
};
checkpoint_interval checkpoint_interval_of(const run_config& c);

void validate(const run_config& c);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_config.ipp"
#endif
