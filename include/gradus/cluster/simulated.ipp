// The bodies of simulated.hpp.
#pragma once
#include <exception>
#include <memory>
#include <utility>

#include "../base/body.hpp"
#include "simulated.hpp"
#include "simulated_network.hpp"
#include "simulated_ranks.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY simulated_report simulated::run(const std::function<void(server& here)>& program) const {
  detail::task_crew crew{"simulated", ps, workers, {}, {}, {}, 0};
  const cluster_spec all = crew.spec();
  faults.check();
  if (!(most_secs > 0 && most_secs <= 1e9))
    raise(status::invalid_argument, text("simulated: expected most_secs up to a billion, found ", most_secs));
  const auto driver = std::make_shared<detail::turn_driver>(seed, static_cast<detail::nanos>(most_secs * 1e9));
  const task_system tasks(driver);
  const detail::turn_driver::presence here(*driver, "simulated");
  const detail::cluster_shape shape{static_cast<std::uint32_t>(ps), static_cast<std::uint32_t>(workers)};
  std::shared_ptr<detail::simulated_links> network;
  if (ps == 0)
    network = std::make_shared<detail::simulated_ranks>(workers, driver, seed, faults, log);
  else
    network = std::make_shared<detail::simulated_network>(shape, driver, seed, faults, log);

  std::string causes, ends;  // the errors of tasks that failed before no task could go on, and after it, in their order
  crew.task = [&](const std::string& job, int index) {
    const auto number = static_cast<std::uint32_t>(index);
    const std::uint32_t node = job == "worker" ? shape.node_of(number) : number;
    network->arrive(node);
    const server_def def{.cluster = all, .job_name = job, .task_index = index};
    while (!network->run_once(def, node, program) && network->revive(node)) {
    }
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& task) {
    const std::string error = text(task, ": ", detail::error_text(e));
    network->why_stuck() == nullptr ? causes += error + "; " : ends += "; " + error;
    network->fail(e, task);
  };
  crew.end = [&] { network->end_of_workers(); };

  std::exception_ptr first;
  {
    const task_handle carrier = tasks.start("the network", "ask for fewer ps and workers", [&] { network->carry(); });
    try {
      crew.run(tasks);
    } catch (...) {
      first = std::current_exception();
    }
    network->stop();
  }
  const std::string when = text("simulated with seed ", seed, ", after ", detail::seconds_text(driver->time()), " s: ");
  try {
    if (network->why_stuck() != nullptr && causes.empty()) std::rethrow_exception(network->why_stuck());
    if (first) std::rethrow_exception(first);
  } catch (const error& e) {
    if (network->why_stuck() == nullptr) raise(e.kind(), when + e.what());
    raise(e.kind(), text(when, causes, detail::error_text(network->why_stuck()), ends));
  }
  return {seed, network->counts(), static_cast<double>(driver->time()) / 1e9, network->hash()};
}

}  // namespace gradus
