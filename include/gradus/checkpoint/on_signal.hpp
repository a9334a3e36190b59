// on_signal saves a checkpoint when the operating system signals that the machine is about to be taken away, and ends
// training after it. POSIX only.
//
//   make_trainer<digits>(adam{}, any_of{every_seconds{600}, on_signal{SIGTERM}}, run_config{...});
#pragma once
#include "../base/build.hpp"

#include <csignal>
#include <memory>

#include "caught_signal.hpp"
#include "save_when.hpp"

namespace gradus::inline GRADUS_BUILD {

// Saves a checkpoint when the signal arrives, and then ends training unless its second argument is false. An object
// catches the signal as long as it lives; the last one for a signal restores the former handler. Each of several
// objects is due once for a signal that comes; copies of one count as one.
class on_signal {
public:
  using policy_for = kind::save_when;

  // Raises invalid_argument for a number that is no signal, or for a signal that cannot be caught.
  explicit on_signal(int signal, bool stops = true);

  bool due(const save_moment&);
  // Returns true if training is to end: the signal came, and `stops` is set.
  bool stop() const { return stops_ && arrived_; }

private:
  bool stops_, arrived_ = false;
  std::shared_ptr<detail::caught_signal> signal_;
};
static_assert(save_decision<on_signal>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "on_signal.ipp"
#endif
