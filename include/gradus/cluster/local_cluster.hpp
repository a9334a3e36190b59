// A local_cluster is a cluster of threads in this process: parameter servers and workers, each running the same
// program.
//
//   gradus::local_cluster{.ps = 2, .workers = 3}.run([&](gradus::server& here) {
//     if (here.is_ps()) return here.join();
//     auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{});
//     trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 1000});
//   });
//
// The program is called once per task, each call on a thread of its own; worker 0 is the chief. Messages go from thread
// to thread in memory; everything else is as in a cluster of machines, so a program that runs here runs there. Without
// parameter servers (.ps = 0) the workers can only train by all_reduce{} (cluster/all_reduce.hpp). run() returns when
// all tasks have returned. The first task that throws ends the cluster: the waits of the others raise `aborted`, which
// names that task, and run() raises its error.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <string_view>

#include "../base/tasks.hpp"
#include "server.hpp"

namespace gradus::inline GRADUS_BUILD {

struct local_cluster {
  static constexpr std::string_view protocol = "in_process";

  int ps = 1;
  int workers = 1;
  task_system tasks = {};  // the task system of threads and waits

  // Raises invalid_argument for a cluster without a worker; resource_exhausted if threads cannot be created; the error
  // of a task.
  void run(const std::function<void(server& here)>& program) const;
  // Returns the cluster's tasks: job "ps", job "worker".
  cluster_spec spec() const;

private:
  void run_without_ps(const std::function<void(server& here)>& program) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "local_cluster.ipp"
#endif
