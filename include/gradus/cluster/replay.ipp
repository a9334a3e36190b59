// The bodies of replay.hpp.
#pragma once
#include <exception>
#include <memory>

#include "../base/body.hpp"
#include "replay.hpp"
#include "replay_network.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY replay_report replay::run(const std::function<void(server& here)>& program) const {
  if (logs.empty())
    raise(status::invalid_argument, "replay: expected the folder of the logs, such as .logs = \"/disk/run-a/logs\"");
  const auto plan = std::make_shared<const detail::replay_plan>(any_file_system(), logs);
  const std::uint64_t last = until == 0 ? plan->last() : until;
  if (last > plan->last() || last + 1 < plan->first())
    raise(status::invalid_argument, text("replay: expected .until of ", plan->first() - 1, " to ", plan->last(),
                                         ", which the logs in \"", logs, "\" have, found ", last));
  const detail::cluster_shape& shape = plan->shape();
  detail::task_crew crew{"replay", static_cast<int>(shape.shards), static_cast<int>(shape.workers), {}, {}, {}};
  const cluster_spec all = crew.spec();
  const auto driver = std::make_shared<detail::turn_driver>(0);
  const task_system tasks(driver);
  const detail::turn_driver::presence here(*driver, "replay");
  const auto network = std::make_shared<detail::replay_network>(plan, last, driver);
  crew.task = [&](const std::string& job, int index) {
    const auto worker = static_cast<std::uint64_t>(index);
    const bool trains = job == "worker";
    if (trains) network->arrive(worker);
    do {
      try {
        server task({.cluster = all, .job_name = job, .task_index = index}, network, tasks);
        program(task);
        if (!trains) return;
        if (!network->is_down(worker)) return network->depart(worker);
      } catch (...) {
        if (!trains || !network->is_down(worker)) throw;
      }
    } while (network->revive(worker));
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& task) { network->fail(e, task); };
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
  if (network->why_stuck() != nullptr) std::rethrow_exception(network->why_stuck());
  if (first) std::rethrow_exception(first);
  if (network->order() != last)
    raise(status::failed_precondition, text("replay: the program has ended behind update ", network->order(), " of ",
                                            last, "; give it as many steps as the logged run had, or less by .until"));
  return {plan->first() - 1, last, plan->last()};
}

GRADUS_BODY void print_orders(const std::string& logs, const std::function<void(const std::string& line)>& print) {
  const detail::replay_plan plan(any_file_system(), logs);
  for (std::uint64_t order = plan.first(); order <= plan.last(); ++order)
    for (std::uint32_t i = 0; i < plan.of_update(); ++i) {
      const detail::order_entry e = plan.at(order, i);
      std::string line =
          text("update ", order, ": gradient ", e.number, " of worker ", e.worker, ", from values of update");
      for (std::uint32_t k = 0; k < plan.logs(); ++k) line += text(k == 0 ? " " : ", ", plan.read(order, i, k));
      print(line);
    }
}

}  // namespace gradus
