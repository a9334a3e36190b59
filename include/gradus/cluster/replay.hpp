// `replay` repeats a run of a cluster from its logs in one process, bit for bit, even if its bits depended on the order
// in which gradients arrived.
//
//   gradus::replay{.logs = "/disk/run-a/logs"}.run([&](gradus::server& here) {
//     if (here.is_ps()) return here.join();
//     auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::adam{}, config,
//                                                gradus::recovery::log{.directory = "/disk/run-a/logs"});
//     trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 1000});
//   });
//
// With recovery::log an asynchronous run, an ssp run, and a synchronous run with backups log for each gradient its
// worker, its update, and the values from which it was computed (docs/formats/cluster_log.md). With the log and the
// program every update is computed again, in the logged order, each gradient from the values that it was computed from,
// and the parameters, slots, averages and the step after each update have the bits of the logged run. The number of
// parameter servers and workers is that of the logs. Nothing is written to the logs.
//
// The program must be the one that was logged, with the same policies; its model_dir must be another folder, which
// holds the checkpoint that the logged run began with, or none if it began with none. At the end of the log (or after
// update `until`) workers stop as at the end of their data, and the chief saves its last checkpoint there. So a replay
// with .until = the step of a checkpoint of the logged run ends with that checkpoint.
//
// Tasks are threads of which one runs at a time, in virtual time (turns.hpp), as in `simulated`, and the limits
// described there for threads and clocks hold here too: save checkpoints by steps. If the process of a worker was
// started again in the logged run, its program is called anew. These are not repeated: a restart of the chief's process
// (an error has the update; an .until before it works), and the state that a worker keeps for itself of gradients that
// came too late for a round (moving averages of batch_normalization).
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server.hpp"

namespace gradus::inline GRADUS_BUILD {

struct replay_report {
  std::uint64_t begin = 0;   // number of updates before the first that was repeated
  std::uint64_t end = 0;     // the last update that was repeated
  std::uint64_t logged = 0;  // the last update that all parameter servers have logged
};

struct replay {
  static constexpr std::string_view protocol = "replay";

  std::string logs = {};    // the directory of recovery::log
  std::uint64_t until = 0;  // the last update to be repeated; 0: the last one of the log

  // Raises invalid_argument for no folder, and for an update that the log does not have; not_found, data_loss and
  // failed_precondition for logs that are not there, were damaged, or are not of this program, with the difference; and
  // the error that a task throws.
  replay_report run(const std::function<void(server& here)>& program) const;
};

// Prints a line of text for each logged gradient: its update, its worker, its number there, and the updates whose
// values it was computed from, on each parameter server that has logged it. Raises the errors of replay.
void print_orders(const std::string& logs, const std::function<void(const std::string& line)>& print);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "replay.ipp"
#endif
