// The bodies of device_setter.hpp.
#pragma once
#include <algorithm>
#include <memory>

#include "../base/body.hpp"
#include "device_setter.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The state that all copies of a setter share.
struct replica_devices {
  device_spec ps, worker;
  bool merge;
  std::vector<std::string> ps_ops;
  ps_strategy_function strategy;

  std::string of(const placed_op& op) {
    if (!merge && !op.device.empty()) return std::string(op.device);
    const device_spec asked = device_spec::from_string(op.device);
    if (std::find(ps_ops.begin(), ps_ops.end(), op.type) == ps_ops.end()) return worker.merged(asked).to_string();
    device_spec here = ps;
    // The strategy is called if the job stays the same, also for a variable that names a task and keeps it.
    if (!here.job.empty() && (asked.job.empty() || asked.job == here.job)) here.task = strategy(op);
    return here.merged(asked).to_string();
  }
};
struct replica_setter {
  replica_devices first;  // as it was made
  std::shared_ptr<replica_devices> now = std::make_shared<replica_devices>(first);
  std::string operator()(const placed_op& op) const { return now->of(op); }
};
}  // namespace detail

GRADUS_BODY device_function detail::begun_anew(const device_function& devices) {
  const auto* setter = devices.target<replica_setter>();
  return setter != nullptr ? device_function(replica_setter{setter->first}) : devices;
}

GRADUS_BODY device_function replica_device_setter(const replica_device_setter_options& o) {
  const device_spec ps = device_spec::from_string(o.ps_device), worker = device_spec::from_string(o.worker_device);
  int tasks = o.ps_tasks;
  if (tasks < 0)
    raise(status::invalid_argument, text("replica_device_setter: ps_tasks must be at least 0, got ", tasks));
  if (o.cluster.has_value()) tasks = o.cluster.value().has(ps.job) ? o.cluster.value().num_tasks(ps.job) : 0;
  if (tasks == 0) return nullptr;
  ps_strategy_function strategy = o.ps_strategy;
  if (!strategy)
    strategy = [next = 0, tasks](const placed_op&) mutable { return std::exchange(next, (next + 1) % tasks); };
  return detail::replica_setter{{ps, worker, o.merge_devices, o.ps_ops, std::move(strategy)}};
}

GRADUS_BODY greedy_load_balancing_strategy::greedy_load_balancing_strategy(
    int num_tasks, std::function<double(const placed_op& op)> load)
    : load_(std::move(load)) {
  if (num_tasks < 1 || !load_)
    raise(status::invalid_argument,
          text("greedy_load_balancing_strategy: expected at least one task and a function of the load, got ", num_tasks,
               " tasks", load_ ? "" : " and no function"));
  loads_.resize(static_cast<std::size_t>(num_tasks));
}

GRADUS_BODY int greedy_load_balancing_strategy::operator()(const placed_op& op) {
  const auto least = std::min_element(loads_.begin(), loads_.end());  // the first of several
  *least += load_(op);
  return static_cast<int>(least - loads_.begin());
}

GRADUS_BODY double byte_size_load_fn(const placed_op& op) {
  if (is_batched(op.dims) || size_of(op.output) == 0)
    raise(status::invalid_argument,
          text("byte_size_load_fn: the size of \"", op.name, "\" (", op.type, ' ', to_text(op.dims), ") is not known"));
  return static_cast<double>(count(op.dims)) * static_cast<double>(size_of(op.output));
}

}  // namespace gradus
