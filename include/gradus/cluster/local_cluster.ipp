// The bodies of local_cluster.hpp.
#pragma once
#include <exception>
#include <memory>
#include <utility>

#include "../base/body.hpp"
#include "local_cluster.hpp"
#include "node_driver.hpp"
#include "offered_program.hpp"
#include "rank_network.hpp"
#include "task_crew.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The network of the tasks that are threads of one process.
class thread_network final : public task_network {
public:
  thread_network(const cluster_shape& shape, const task_system& tasks) : messages_(shape, tasks), program_(tasks) {}

  local_network& messages() override { return messages_; }
  void offer(shard_program program, const std::string& task) override { program_.offer(std::move(program), task); }
  void serve(std::uint32_t shard) override { program_.serve(messages_, shard); }
  // To be called when no program comes any more.
  void end() {
    messages_.end();
    program_.end();
  }

private:
  local_network messages_;
  offered_program program_;
};

// A crew without functions, for the checks and the spec of a cluster before it runs.
inline task_crew local_crew(int ps, int workers) { return {"local_cluster", ps, workers, {}, {}, {}, 0}; }

}  // namespace detail

GRADUS_BODY cluster_spec local_cluster::spec() const { return detail::local_crew(ps, workers).spec(); }

GRADUS_BODY void local_cluster::run(const std::function<void(server& here)>& program) const {
  const cluster_spec all = spec();
  if (ps == 0) return run_without_ps(program);
  const auto network = std::make_shared<detail::thread_network>(
      detail::cluster_shape{static_cast<std::uint32_t>(ps), static_cast<std::uint32_t>(workers)}, tasks);
  detail::task_crew crew = detail::local_crew(ps, workers);
  crew.task = [&](const std::string& job, int index) {
    server here({.cluster = all, .job_name = job, .task_index = index}, network, tasks);
    program(here);
    if (!here.is_ps()) network->messages().depart(static_cast<std::uint64_t>(index));
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& task) { network->messages().fail(e, task); };
  crew.end = [&] { network->end(); };
  crew.run(tasks);
}

GRADUS_BODY void local_cluster::run_without_ps(const std::function<void(server& here)>& program) const {
  const cluster_spec all = spec();
  detail::thread_ranks ranks(workers, "worker", tasks);
  detail::task_crew crew = detail::local_crew(ps, workers);
  crew.task = [&](const std::string& job, int index) {
    server here({.cluster = all, .job_name = job, .task_index = index},
                std::make_shared<detail::rank_task>(ranks.end_of(index)), tasks);
    program(here);
    ranks.depart(index);
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& task) { ranks.fail(e, task); };
  crew.end = [] {};
  try {
    crew.run(tasks);
  } catch (...) {
    if (ranks.cause() != nullptr) std::rethrow_exception(ranks.cause());
    throw;
  }
}

}  // namespace gradus
