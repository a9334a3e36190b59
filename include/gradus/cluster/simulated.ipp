// The bodies of simulated.hpp.
#pragma once
#include <exception>
#include <memory>
#include <utility>

#include "../base/body.hpp"
#include "simulated.hpp"
#include "simulated_network.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY simulated_report simulated::run(const std::function<void(server& here)>& program) const {
  detail::task_crew crew{"simulated", ps, workers, {}, {}, {}};
  const cluster_spec all = crew.spec();
  faults.check();
  if (!(most_secs > 0 && most_secs <= 1e9))
    raise(status::invalid_argument, text("simulated: expected most_secs up to a billion, found ", most_secs));
  const auto driver = std::make_shared<detail::turn_driver>(seed, static_cast<detail::nanos>(most_secs * 1e9));
  const task_system tasks(driver);
  const detail::turn_driver::presence here(*driver, "simulated");
  const detail::cluster_shape shape{static_cast<std::uint32_t>(ps), static_cast<std::uint32_t>(workers)};
  const auto network = std::make_shared<detail::simulated_network>(shape, driver, seed, faults, log);

  std::string ends;  // the errors of tasks that failed, in their order
  crew.task = [&](const std::string& job, int index) {
    const bool trains = job == "worker";
    const std::uint32_t node =
        trains ? shape.node_of(static_cast<std::uint64_t>(index)) : static_cast<std::uint32_t>(index);
    network->arrive(node);
    do {
      try {
        server task({.cluster = all, .job_name = job, .task_index = index}, network, tasks);
        program(task);
        const bool is_done = !network->has_crashed(node);
        if (is_done && (!trains || network->wait_for_end(static_cast<std::uint64_t>(index)))) return;
      } catch (const error& e) {
        if (!network->has_crashed(node) && !network->ends_by(e, node)) throw;
      } catch (...) {
        if (!network->has_crashed(node)) throw;
      }
    } while (network->revive(node));
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& task) {
    ends += text("; ", task, ": ", detail::error_text(e));
    network->fail(e, task);
  };
  crew.end = [&] { network->end(); };

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
    if (network->why_stuck() != nullptr) std::rethrow_exception(network->why_stuck());
    if (first) std::rethrow_exception(first);
  } catch (const error& e) {
    raise(e.kind(), network->why_stuck() != nullptr ? text(when, e.what(), ends) : when + e.what());
  }
  return {seed, network->counts(), static_cast<double>(driver->time()) / 1e9, network->hash()};
}

}  // namespace gradus
