// The bodies of local_cluster.hpp.
#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "../base/body.hpp"
#include "local_cluster.hpp"
#include "node_driver.hpp"
#include "shard_program.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The threads of one process.
class thread_network final : public task_network {
public:
  thread_network(const cluster_shape& shape, const task_system& tasks) : messages_(shape, tasks), changed_(tasks) {}

  local_network& messages() override { return messages_; }
  void offer(shard_program program, const std::string& task) override {
    const std::lock_guard lock(mutex_);
    if (first_.empty()) {
      program_ = std::move(program), first_ = task;
      changed_.notify_all();
    } else {
      must_agree(program_.of, first_, program.of, task);
    }
  }
  void serve(std::uint32_t shard) override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !first_.empty() || is_over_; });
      if (first_.empty()) return;
    }
    program_.serve(messages_, shard);
  }
  // No program comes any more.
  void end() {
    messages_.end();
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

private:
  local_network messages_;
  std::mutex mutex_;
  task_condition changed_;
  shard_program program_;
  std::string first_;  // whose program it is; empty: there is none yet
  bool is_over_ = false;
};

}  // namespace detail

GRADUS_BODY cluster_spec local_cluster::spec() const {
  const auto named = [](const char* job, int n) {
    job_tasks all{job, {}};
    for (int i = 0; i < n; ++i) all.tasks.emplace_back(text(job, i, ":0"));
    return all;
  };
  return {named("ps", ps), named("worker", workers)};
}

GRADUS_BODY void local_cluster::run(const std::function<void(server& here)>& program) const {
  if (ps < 1 || workers < 1)
    raise(status::invalid_argument,
          text("local_cluster: expected one ps and one worker or more, found ", ps, " and ", workers));
  const cluster_spec all = spec();
  const auto network = std::make_shared<detail::thread_network>(
      detail::cluster_shape{static_cast<std::uint32_t>(ps), static_cast<std::uint32_t>(workers)}, tasks);
  std::mutex mutex;
  std::exception_ptr first;
  int workers_left = workers;
  const auto run_task = [&](const char* job, int index) {
    const bool trains = std::string_view(job) == "worker";
    try {
      server here({.cluster = all, .job_name = job, .task_index = index}, network, tasks);
      program(here);
      if (trains) network->messages().depart(static_cast<std::uint64_t>(index));
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      const std::lock_guard lock(mutex);
      if (!first) first = error;
      network->messages().fail(error, text(job, " ", index));
    }
    const std::lock_guard lock(mutex);
    if ((trains && --workers_left == 0) || first) network->end();
  };
  {
    std::vector<task_handle> threads;
    try {
      for (int i = 0; i < ps; ++i)
        threads.push_back(tasks.start("local_cluster", "ask for fewer ps and workers", [&, i] { run_task("ps", i); }));
      for (int i = 0; i < workers; ++i)
        threads.push_back(
            tasks.start("local_cluster", "ask for fewer ps and workers", [&, i] { run_task("worker", i); }));
    } catch (...) {
      network->messages().fail(std::current_exception(), "local_cluster");
      network->end();
      throw;
    }
    for (task_handle& t : threads) t.join();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace gradus
