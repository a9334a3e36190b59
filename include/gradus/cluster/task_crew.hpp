// What all clusters in one process have in common, on threads (local_cluster.hpp) or in virtual time (simulated.hpp):
// their tasks are started and waited for.
#pragma once
#include <exception>
#include <functional>
#include <string>

#include "../base/tasks.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// What the tasks of a cluster are, and what is done with them.
struct task_crew {
  std::string who;  // begins the sentence of an error
  int ps = 1, workers = 1;
  std::function<void(const std::string& job, int index)> task;                           // runs one
  std::function<void(const std::exception_ptr& error, const std::string& task)> failed;  // the first, and any other
  std::function<void()> end;  // the last worker's task has returned, or one has failed; may be called again
  int least_ps = 1;           // 0: workers may be among themselves

  // Their names and addresses. Error: invalid_argument for a cluster without a parameter server or a worker.
  cluster_spec spec() const;
  // Starts them and waits for all. Errors: resource_exhausted if there are no threads to be had; the first that a task
  // throws.
  void run(const task_system& tasks) const;
};

// What an error says.
std::string error_text(const std::exception_ptr& error);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "task_crew.ipp"
#endif
