// Clusters in one process, on threads (local_cluster.hpp) or in virtual time (simulated.hpp), start their tasks and
// wait for them by this class.
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <functional>
#include <string>

#include "../base/tasks.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the tasks of a cluster, and their functions.
struct task_crew {
  std::string caller;  // the beginning of error messages
  int ps = 1, workers = 1;
  std::function<void(const std::string& job, int index)> task;                           // runs one
  std::function<void(const std::exception_ptr& error, const std::string& task)> failed;  // the first, and any other
  std::function<void()> end;  // the last worker's task has returned, or one has failed; may be called again
  int least_ps = 1;           // 0: there may be no parameter server

  // Returns the tasks' names and addresses. Raises invalid_argument for a cluster without a parameter server or a
  // worker.
  cluster_spec spec() const;
  // Starts the tasks and waits for all. Raises resource_exhausted if threads cannot be created; the first error of a
  // task.
  void run(const task_system& tasks) const;
};

// Returns the text of an error.
std::string error_text(const std::exception_ptr& error);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "task_crew.ipp"
#endif
