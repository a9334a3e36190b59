// The faults of a simulated cluster (simulated.hpp), and their counts.
#pragma once
#include "../base/build.hpp"

#include <cstdint>

namespace gradus::inline GRADUS_BUILD {

// The probabilities and numbers of faults. Which of them happen, to which task and when is drawn from the seed. By
// default there are none.
struct simulated_faults {
  // Probabilities of a message, from 0 to 1. A late message comes up to `late_secs` later than it would, after others.
  double lost = 0, doubled = 0, late = 0;
  double late_secs = 0.5;
  // The times that the network takes for a message, and a worker for a step, in seconds, each drawn between its bounds.
  double least_delay = 0.0002, most_delay = 0.002;
  double least_step = 0.01, most_step = 0.05;
  // The numbers of faults in the first `within` seconds. A cut separates some nodes from the others; a stopped node
  // computes, sends and receives nothing, as by SIGSTOP; a worker that crashes, which may be the chief, is started
  // again, and its program is called anew. A crash at a time when no worker trains does not happen, nor does a fault
  // after the end of the run. A parameter server crashes where it waits, or when it sends one of its next messages.
  int cuts = 0, stops = 0, crashes = 0, ps_crashes = 0;
  double within = 2;
  // This is the duration of each of these, in seconds, drawn between the bounds.
  double least_outage = 0.05, most_outage = 5;
  // Each worker's steps take up to this many times as long.
  double slowness = 1;
  // Each machine has a clock that is ahead or behind by minutes, and too fast or too slow by a percent.
  bool skewed_clocks = false;

  // Returns drawn values for all of these.
  static simulated_faults drawn(std::uint64_t seed);
  // Raises invalid_argument for a number that is not a valid probability or time, or for an empty range.
  void check() const;
};

struct simulated_counts {
  std::uint64_t messages = 0;   // that were sent to another node
  std::uint64_t delivered = 0;  // to a mailbox; a doubled message counts twice
  std::uint64_t lost = 0, doubled = 0, late = 0;
  std::uint64_t cut_off = 0;    // messages
  std::uint64_t to_nobody = 0;  // that came while their receiver was down
  std::uint64_t cuts = 0, stops = 0, crashes = 0, ps_crashes = 0;
  std::uint64_t ended = 0;         // tasks that have ended because their cluster was lost: a parameter server had lost
                                   // what it held, or with all_reduce another worker had crashed or was silent
  std::uint64_t restarts = 0;      // of tasks that had crashed, or had ended so
  std::uint64_t lost_updates = 0;  // that were decided, and are not in the values with which the cluster went on

  friend bool operator==(const simulated_counts&, const simulated_counts&) = default;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "simulated_faults.ipp"
#endif
