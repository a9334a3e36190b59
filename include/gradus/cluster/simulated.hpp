// `simulated` is a cluster in virtual time, with faults: a program that runs in local_cluster runs here unmodified, and
// one integer reproduces all events.
//
//   const auto report = gradus::simulated{.seed = 7, .ps = 2, .workers = 3, .faults = {.lost = 0.1, .crashes = 2}}.run(
//       [&](gradus::server& here) {
//         if (here.is_ps()) return here.join();
//         auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{});
//         trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 1000});
//       });
//
// Tasks are threads of which one runs at a time (turns.hpp), so nothing depends on the machine's scheduler. Time is
// virtual: a step takes a drawn time, and waiting takes no real time. Messages are the bytes that a network would
// carry. A task that crashes leaves its program by the exception simulated_crash, and is started again: the program is
// called anew, with a new server. A parameter server has lost what it held then, except for its log; without one, all
// tasks end with `aborted`, as they learn it, and are started again. Without parameter servers (.ps = 0) workers train
// by all_reduce{}, and so do all of them when one has crashed or was silent for 30 s. Files are those of the program,
// and no crash interrupts their writing.
//
// These are not simulated: threads that a program starts by itself or by another task_system than `here.tasks()`, their
// waits, and the clocks that it reads itself. The same seed gives the same history as long as those make no difference.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server.hpp"
#include "simulated_faults.hpp"

namespace gradus::inline GRADUS_BUILD {

struct simulated_report {
  std::uint64_t seed = 0;
  simulated_counts counts = {};
  double secs = 0;         // virtual, until the last task had ended
  std::uint64_t hash = 0;  // of the lines of the log
};

struct simulated {
  static constexpr std::string_view protocol = "simulated";

  std::uint64_t seed = 0;
  int ps = 1;
  int workers = 1;
  simulated_faults faults = {};
  double most_secs = 3600;                  // virtual; a run that needs longer ends with an error
  std::vector<std::string>* log = nullptr;  // messages and events, a line each; null: only their hash is kept

  // Raises errors with the seed and the time in their messages: invalid_argument for a cluster without a worker, and
  // for invalid faults; deadline_exceeded if most_secs were not enough, and `aborted` if all tasks wait for each other,
  // with the wait of each task; the library's error that a task throws. Another exception of a task is thrown as it is.
  simulated_report run(const std::function<void(server& here)>& program) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "simulated.ipp"
#endif
