// `connected` makes a training run a task of a cluster; it is a policy for trainers and supervisors, and for the
// optimizers of a session's graph.
//
//   auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{},
//                                              gradus::run_config{.model_dir = "runs/a"});
//
// `here` is the task's server. The parameter servers hold variables, slots and averages and make the updates; this
// task computes gradients. The chief (server::is_chief) restores or initializes the values, and saves one checkpoint of
// the whole cluster, which a run of one process or a cluster of another size can restore. Other tasks have no files,
// whatever their configuration says. A server without other tasks trains alone, as a run without this policy does.
//
// State that a model changes itself while it computes (the moving averages of batch_normalization) stays with each
// worker; the checkpoint has the chief's. The norm of gradients that a run reports is that of the worker's own.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cluster_stepper.hpp"
#include "cluster_update.hpp"
#include "recovery.hpp"
#include "server.hpp"
#include "staleness.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A staleness policy without parameter servers has a stepper of its own (cluster/all_reduce.hpp).
template <class Alone, class Update, class Device, class Staleness>
struct steps_by {
  using type = cluster_stepper<Alone, Update, Device, Staleness>;
};
template <class Alone, class Update, class Device, class Staleness>
  requires requires { typename Staleness::template steps<Alone>; }
struct steps_by<Alone, Update, Device, Staleness> {
  using type = typename Staleness::template steps<Alone>;
  static_assert(
      requires { sizeof(type); }, "all_reduce: its steps are missing; include <gradus/cluster/all_reduce.hpp>");
};
}  // namespace detail

class connected {
public:
  using policy_for = kind::connection;
  // A run without a staleness policy trains as its configuration says, or else asynchronously.
  using default_staleness = distribution_strategy;
  // The default recovery of a run that loses a parameter server.
  using default_recovery = recovery::roll_back;

  // The server must outlive the run. The parameter servers take the variables in turn, but for those whose device
  // string names a task: g.device("/job:ps/task:1") around a variable, or what `devices` returns for it (an empty
  // string leaves its own), such as a replica_device_setter with another strategy (cluster/device_setter.hpp). A
  // trainer takes such a function from run_config::device_fn too. It is called once for each variable, in their order,
  // and must give the same answers in every task.
  explicit connected(const server& here, device_function devices = {}) : server_(&here), devices_(std::move(devices)) {}
  // The partitioner cuts variables over the parameter servers: a function of (dtype, extents), or of (name, dtype,
  // extents), that returns a cut_along of axis 0. Each part then takes its turn as a variable of its own, named
  // "w/part_0". It must give the same answers in every task. Checkpoints have whole variables.
  template <detail::partitions Partitioner>
  connected(const server& here, Partitioner cut, device_function devices = {})
      : server_(&here), devices_(std::move(devices)), cut_(detail::partitioner_of(std::move(cut))) {}

  bool is_chief() const { return server_->is_chief(); }
  // Returns true if there are no other tasks, so that the run makes its updates itself.
  bool is_alone() const { return server_->network() == nullptr; }
  // Returns true if this task has files: the chief, and a task that trains alone, such as an evaluator.
  bool has_files() const { return server_->is_chief() || server_->network() == nullptr; }

  // This is the stepper of a run of this task.
  template <class Alone, class Update, class Device, class Staleness>
  using steps = typename detail::steps_by<Alone, Update, Device, Staleness>::type;
  template <class Steps, class Staleness, class Recovery, class... More>
  Steps make(const Staleness& when, const Recovery& lost, detail::cluster_task task, More&&... more) const {
    task.log = detail::log_of(lost);
    if (devices_) {
      if (task.devices)
        raise(status::invalid_argument,
              "run_config: device_fn and the function of connected both give variables their devices; keep one");
      task.devices = devices_;
    }
    task.cut = cut_;
    return Steps(*server_, when, task, std::forward<More>(more)...);
  }
  // This makes the train ops of a session's optimizer (run/optimizer.hpp).
  template <class Device, class Update, class... Policies>
  using updates_of = detail::updates_of_task<Device, Update, Policies...>;
  // Returns the settings of these policies on which the tasks of a cluster must agree, and the update's policies as
  // bytes.
  template <class... Policies>
  static detail::cluster_task describe(const Policies&... policies) {
    detail::cluster_task t;
    using rule = policy_of<kind::rule, detail::no_rule, Policies...>;
    if constexpr (requires { std::string(rule::name); }) t.made_from.rule = rule::name;
    t.made_from.arithmetic = name_of_arithmetic<policy_of<kind::arithmetic, fuses_products, Policies...>>();
    std::size_t number = 0;
    (describe_one(t, number, policies), ...);
    std::sort(t.made_from.settings.begin(), t.made_from.settings.end());
    return t;
  }
  // Returns a supervisor's session. Raises invalid_argument for another master than this task's server.
  template <class Master, class OpenHere>
  decltype(auto) connect(const Master& m, OpenHere&& open_here) const {
    if (!m.is_this_process() && m.text != server_->target())
      raise(status::invalid_argument, text("\"", m.text, "\" is not this task's server: expected \"\", \"local\" or \"",
                                           server_->target(), "\""));
    return open_here();
  }

private:
  const server* server_;
  device_function devices_;
  variable_partitioner cut_;

  struct fuses_products {  // the default of trainers
    static constexpr bool fuses = true;
  };
  template <class A>
  static std::string name_of_arithmetic() {
    std::string name = A::fuses ? "fast" : "portable";
    if constexpr (requires { A::estimates; }) name = "approximate";
    if constexpr (requires { typename A::product_library; }) name += " with products of another library";
    if constexpr (requires { A::convolution_algorithm::name; }) name += text(" with ", A::convolution_algorithm::name);
    return name;
  }

  template <class Policy>
  static constexpr bool is_shared =
      detail::of_update<Policy> || detail::is_of<kind::staleness, Policy>() ||
      detail::is_of<kind::recovery, Policy>() || detail::is_of<kind::microbatch, Policy>() ||
      detail::is_of<kind::precision, Policy>() || detail::is_of<kind::subnormals, Policy>();

  template <class Policy>
  static void describe_one(detail::cluster_task& t, std::size_t& number, const Policy& p) {
    if constexpr (requires { p.as_all_reduce(); })
      return p.visit([&](const auto& strategy) { describe_one(t, number, strategy); });
    if constexpr (requires { strategy_of(p); })
      if (const auto d = strategy_of(p); d.has_value())
        d.value().visit([&](const auto& strategy) { describe_one(t, number, strategy); });
    if constexpr (requires { p.device_fn.has_value(); })
      if (p.device_fn.has_value()) t.devices = p.device_fn.value();
    if constexpr (is_shared<Policy>) {
      auto& all = t.made_from.settings;
      if constexpr (requires { Policy::settings(); })
        for (const auto& s : Policy::settings())
          if (const auto x = s.value(p)) all.emplace_back(text("policy ", number, ", ", s.name), text(*x));
      all.emplace_back(text("policy ", number, ", whole"),
                       text(detail::show_plain(p), " of ", detail::type_in_words<Policy>()));
      ++number;
    }
    if constexpr (detail::of_update<Policy>) {
      if constexpr (detail::can_send<Policy>) {
        detail::bytes_out out(t.policies);
        detail::put_plain(out, p);
      } else if (t.cannot_be_sent.empty()) {
        t.cannot_be_sent = detail::type_in_words<Policy>();
      }
    }
  }
};

}  // namespace gradus
