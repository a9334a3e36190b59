// Retention decides which checkpoints of a directory are kept when one is added: the newest n, one per interval of
// hours, and the best m.
//
// As tf.train.Saver (max_to_keep, keep_checkpoint_every_n_hours): a checkpoint that is about to be deleted is kept for
// good if it is later than the next hour mark, which then moves on. TensorFlow has neither the best m by a metric (its
// BestExporter keeps models, not checkpoints) nor `trim`.
#pragma once
#include "../base/build.hpp"

#include <limits>

#include "../codec/state_file.hpp"
#include "../store/reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

// Keeps, beside the newest, the `count` checkpoints whose metric is best.
struct keep_best {
  int count = 0;
  bool higher_is_better = true;
};

struct saver_options {
  // Older checkpoints are deleted. 0: all are kept, and the state file names the newest.
  int max_to_keep = 5;
  // One checkpoint in so many hours is kept when it is superseded; the hours count from the construction of the saver.
  double keep_checkpoint_every_n_hours = 10000;
  keep_best best = {};
  // Delete down to max_to_keep at once. TensorFlow deletes one checkpoint per save, as false does here, also where a
  // longer list was taken up from a run that kept more.
  bool trim = false;
  // "model-00000150" instead of "model-150".
  bool pad_step_number = false;
  // A checkpoint larger than this many bytes is not read.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  // These are the limits of a codec for one checkpoint: tensors in it, bytes after inflation.
  reader_limits limits = {};
};

// Raises invalid_argument for options that mean nothing.
void check(const saver_options& o);

// The list of kept checkpoints and the next hour mark. It is a value: `with` returns the list after one more save, so
// that a save that fails half-way leaves the list as it was.
class retention {
public:
  retention() = default;
  retention(const saver_options& options, double now);

  const checkpoint_state& state() const { return state_; }
  checkpoint_state& state() { return state_; }

  // Returns the list after checkpoint `name` has been saved at `now`; its state().superseded names the files to be
  // deleted then. A metric that is not finite is the worst.
  retention with(const std::string& name, double now, std::optional<double> metric) const;

  // Returns the list after the newest checkpoint has been measured.
  retention measured(double metric) const;
  // Takes `name`, which is about to be replaced by another file of the same step, out of the list.
  void supersede(const std::string& name);

private:
  // After the clock was set back, the hour mark is set back too, and no checkpoint keeps a time in the future.
  // Otherwise each checkpoint with such a time would be later than the mark and kept for good (in TensorFlow they are).
  void set_back(double now);
  void forget(std::size_t i);
  void rank(const std::string& name, double metric);

  saver_options options_;
  double next_keep_ = 0, latest_ = 0;  // latest_: the time of the last save
  checkpoint_state state_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "retention.ipp"
#endif
