// The bodies of task_crew.hpp.
#pragma once
#include <mutex>
#include <vector>

#include "../base/body.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY cluster_spec task_crew::spec() const {
  if (ps < least_ps || workers < 1)
    raise(status::invalid_argument, text(caller,
                                         least_ps == 0 ? ": expected ps of 0 or more, and one worker or more"
                                                       : ": expected one ps and one worker or more",
                                         ", found ", ps, " and ", workers));
  const auto named = [](const char* job, int n) {
    job_tasks all{job, {}};
    for (int i = 0; i < n; ++i) all.tasks.emplace_back(text(job, i, ":0"));
    return all;
  };
  if (ps == 0) return {named("worker", workers)};
  return {named("ps", ps), named("worker", workers)};
}

GRADUS_BODY void task_crew::run(const task_system& tasks) const {
  std::mutex mutex;
  std::exception_ptr first;
  int workers_left = workers;
  const auto run_task = [&](const char* job, int index) {
    try {
      task(job, index);
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      const std::lock_guard lock(mutex);
      if (!first) first = error;
      failed(error, text(job, " ", index));
    }
    const std::lock_guard lock(mutex);
    if ((std::string_view(job) == "worker" && --workers_left == 0) || first) end();
  };
  {
    std::vector<task_handle> threads;
    try {
      const auto start = [&](const char* job, int n) {
        for (int i = 0; i < n; ++i)
          threads.push_back(tasks.start(caller, "ask for fewer ps and workers", [&, job, i] { run_task(job, i); }));
      };
      start("ps", ps);
      start("worker", workers);
    } catch (...) {
      failed(std::current_exception(), caller);
      end();
      throw;
    }
    for (task_handle& t : threads) t.join();
  }
  if (first) std::rethrow_exception(first);
}

GRADUS_BODY std::string error_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an error that is no std::exception";
  }
}

}  // namespace gradus::detail
