// A run of a cluster, repeated from its logs in one process, bit for bit: also one whose bits depend on who came first.
//
//   gradus::replay{.logs = "/disk/run-a/logs"}.run([&](gradus::server& here) {
//     if (here.is_ps()) return here.join();
//     auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::adam{}, config,
//                                                gradus::recovery::log{.directory = "/disk/run-a/logs"});
//     trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 1000});
//   });
//
// With recovery::log an asynchronous run, ssp, and a synchronous one with backups log whose gradient is in which
// update, and from which values it was computed (docs/formats/cluster_log.md). That and the program say the rest: every
// update is computed again, in the logged order, each gradient from the values that it was computed from, and the
// parameters, slots, averages and the step after each update have the bits of the logged run. The number of parameter
// servers and workers is that of the logs. Nothing is written to the logs.
//
// The program is the one that was logged, with the same policies; its model_dir is another folder, which holds the
// checkpoint that the logged run began with, or none if it began with none. At the end of the log (or behind update
// `until`) workers stop as at the end of their data, and the chief saves its last checkpoint there. So .until = the
// step of a checkpoint of the logged run ends with that checkpoint.
//
// Tasks are threads of which one runs at a time, in virtual time (turns.hpp), as in `simulated`, and what is said there
// about threads and clocks holds here: save checkpoints by steps. A worker whose process had begun anew has its
// program called anew. What is not repeated: a chief whose process had (an error says in which update; .until ends
// before it), and what a worker keeps for itself of gradients that came too late for a round (moving averages of
// batch_normalization).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server.hpp"

namespace gradus::inline GRADUS_BUILD {

struct replay_report {
  std::uint64_t begin = 0;   // updates before the first that was repeated
  std::uint64_t end = 0;     // the last one that was repeated
  std::uint64_t logged = 0;  // the last one that all parameter servers have logged
};

struct replay {
  static constexpr std::string_view protocol = "replay";

  std::string logs = {};    // the directory of recovery::log
  std::uint64_t until = 0;  // the last update to be repeated; 0: the last one of the log

  // Errors: invalid_argument for no folder, and for an update that the log does not have; not_found, data_loss and
  // failed_precondition for logs that are not there, were damaged, or are not of this program, with the difference;
  // what a task throws.
  replay_report run(const std::function<void(server& here)>& program) const;
};

// A line for each logged gradient, as text: its update, its worker, its number there, and the updates whose values it
// was computed from, on each parameter server that has logged it. Errors as replay's.
void print_orders(const std::string& logs, const std::function<void(const std::string& line)>& print);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "replay.ipp"
#endif
