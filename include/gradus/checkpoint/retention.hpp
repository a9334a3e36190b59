// Which checkpoints of a directory are kept when one is added: the newest n, one in so many hours, the best m.
//
// As tf.train.Saver (max_to_keep, keep_checkpoint_every_n_hours): a checkpoint that is about to be deleted survives for
// good if it is later than the next hour mark, which then moves on. Beyond TensorFlow: the best m by a metric (its
// BestExporter keeps models, not checkpoints), and `trim`.
#pragma once
#include <limits>

#include "../store/reader_limits.hpp"
#include "state_file.hpp"

namespace gradus {

// Beside the newest, the `count` checkpoints whose metric is best are kept.
struct keep_best {
  int count = 0;
  bool higher_is_better = true;
};

struct saver_options {
  // Older checkpoints are deleted. 0: all are kept, and the state file names the newest.
  int max_to_keep = 5;
  // One checkpoint in so many hours survives being superseded, counted from the making of the saver.
  double keep_checkpoint_every_n_hours = 10000;
  keep_best best = {};
  // Delete down to max_to_keep at once. TensorFlow, and false, deletes one per save, also where a longer list was taken
  // up from a run that kept more.
  bool trim = false;
  // "model-00000150" instead of "model-150".
  bool pad_step_number = false;
  // A checkpoint larger than this many bytes is not read.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  // What a codec may spend on one: tensors in it, bytes after inflation.
  reader_limits limits = {};
};

// Raises invalid_argument for options that mean nothing.
inline void check(const saver_options& o) {
  if (o.max_to_keep < 0)
    raise(status::invalid_argument,
          text("max_to_keep is ", o.max_to_keep, "; give how many checkpoints to keep, or 0 for all"));
  if (!(o.keep_checkpoint_every_n_hours > 0))
    raise(status::invalid_argument, text("keep_checkpoint_every_n_hours is ", o.keep_checkpoint_every_n_hours,
                                         "; give a positive number of hours"));
  if (o.best.count < 0)
    raise(status::invalid_argument, text("keep_best::count is ", o.best.count, "; give how many to keep, or 0"));
}

// The list of kept checkpoints and the next hour mark. A value: `with` gives the list after one more save, so that a
// save that fails half-way leaves the list as it was.
class retention {
public:
  retention() = default;
  retention(const saver_options& options, double now)
      : options_(options), next_keep_(now + options.keep_checkpoint_every_n_hours * 3600), latest_(now) {}

  const checkpoint_state& state() const { return state_; }
  checkpoint_state& state() { return state_; }

  // The list after checkpoint `name` has been saved at `now`; its state().superseded names what is to be deleted then.
  // A metric that is not finite is the worst.
  retention with(const std::string& name, double now, std::optional<double> metric) const {
    retention next = *this;
    next.set_back(now);
    auto& s = next.state_;
    for (std::size_t i = s.all.size(); i-- > 0;)
      if (s.all[i] == name) next.forget(i);
    std::erase(s.superseded, name);
    std::erase_if(s.best, [&](const auto& b) { return b.first == name; });
    if (options_.max_to_keep == 0) s.all.clear(), s.timestamps.clear();
    s.newest = name;
    s.all.push_back(name);
    s.timestamps.push_back(now);
    if (metric && options_.best.count > 0) next.rank(name, *metric);
    if (options_.max_to_keep != 0)
      while (s.all.size() > static_cast<std::size_t>(options_.max_to_keep)) {
        const auto oldest = s.all.front();
        const double made = s.timestamps.front();
        next.forget(0);
        if (s.keeps(oldest)) {
          // One of the best: it is not about to be deleted, so it does not use up an hour mark either.
        } else if (made > next.next_keep_) {
          next.next_keep_ += options_.keep_checkpoint_every_n_hours * 3600;
        } else {
          s.superseded.push_back(oldest);
        }
        if (!options_.trim) break;
      }
    return next;
  }

  // The list after the newest checkpoint has been measured.
  retention measured(double metric) const {
    retention next = *this;
    std::erase_if(next.state_.best, [&](const auto& b) { return b.first == state_.newest; });
    if (options_.best.count > 0) next.rank(state_.newest, metric);
    return next;
  }
  // `name` is about to be replaced by another file of the same step.
  void supersede(const std::string& name) {
    for (std::size_t i = state_.all.size(); i-- > 0;)
      if (state_.all[i] == name) forget(i);
    std::erase_if(state_.best, [&](const auto& b) { return b.first == name; });
    state_.superseded.push_back(name);
  }

private:
  // A clock that was set back: the hour mark goes back with it, and no checkpoint is from the future, or each of those
  // would be later than the mark and survive for good (in TensorFlow they do).
  void set_back(double now) {
    if (now < latest_) {
      next_keep_ -= latest_ - now;
      for (double& t : state_.timestamps) t = std::min(t, now);
    }
    latest_ = now;
  }
  void forget(std::size_t i) {
    state_.all.erase(state_.all.begin() + static_cast<std::ptrdiff_t>(i));
    state_.timestamps.erase(state_.timestamps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void rank(const std::string& name, double metric) {
    const auto better = [&](double a, double b) {
      if (!(a - a == 0)) return false;
      return !(b - b == 0) || (options_.best.higher_is_better ? a > b : a < b);
    };
    auto& best = state_.best;
    const auto at = std::find_if(best.begin(), best.end(), [&](const auto& b) { return better(metric, b.second); });
    best.insert(at, {name, metric});
    while (best.size() > static_cast<std::size_t>(options_.best.count)) {
      const auto worst = best.back().first;
      best.pop_back();
      if (options_.max_to_keep != 0 && !state_.keeps(worst)) state_.superseded.push_back(worst);
    }
  }

  saver_options options_;
  double next_keep_ = 0, latest_ = 0;  // latest_: the time of the last save
  checkpoint_state state_;
};

}  // namespace gradus
