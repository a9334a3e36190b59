// on_notice saves a checkpoint when a callback reports that the machine is about to be taken away (the callback may
// check a file that a cloud's agent writes, or a metadata server that a thread queries). Training ends after it if
// `stops` is set.
//
//   make_trainer<digits>(adam{}, any_of{every_seconds{600}, on_notice{[] { return notified.load(); }}},
//                        run_config{...});
//
// on_signal.hpp does the same for a signal.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <utility>

#include "save_when.hpp"

namespace gradus::inline GRADUS_BUILD {

class on_notice {
public:
  using policy_for = kind::save_when;

  // `notified` is called after every step, on the thread that trains, until it returns true; that step is then saved.
  // Raises invalid_argument for an empty function.
  explicit on_notice(std::function<bool()> notified, bool stops = true) : told_(std::move(notified)), stops_(stops) {
    if (!told_) raise(status::invalid_argument, "on_notice: expected a function that says whether a notice came");
  }
  bool due(const save_moment&) { return !arrived_ && (arrived_ = told_()); }
  // Returns true if training is to end: the notice came, and `stops` is set.
  bool stop() const { return stops_ && arrived_; }

private:
  std::function<bool()> told_;
  bool stops_, arrived_ = false;
};
static_assert(save_decision<on_notice>);

}  // namespace gradus
