// A training run as a task of a cluster: a policy for trainers and supervisors.
//
//   auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{},
//                                              gradus::run_config{.model_dir = "runs/a"});
//
// `here` is the task's server. The parameter servers hold variables, slots and averages and make the updates; this
// task computes gradients. The chief (server::is_chief) restores or initializes, and saves one checkpoint of all, which
// a run of one process opens as its own, and a cluster of another size; others have no files, whatever their
// configuration says. A server without other tasks trains alone, as a run without this policy does.
//
// What a model changes itself while it computes (the moving averages of batch_normalization) stays with each worker;
// the checkpoint has the chief's. The norm of gradients that a run reports is that of the worker's own.
#pragma once
#include <algorithm>
#include <string>
#include <utility>

#include "cluster_stepper.hpp"
#include "recovery.hpp"
#include "server.hpp"
#include "staleness.hpp"

namespace gradus::inline GRADUS_BUILD {

class connected {
public:
  using policy_for = kind::connection;
  // How a run without a staleness policy trains.
  using default_staleness = asynchronous;
  // What becomes of it when a parameter server is lost, if nothing else is said.
  using default_recovery = recovery::roll_back;

  // The server outlives the run.
  explicit connected(const server& here) : server_(&here) {}

  bool is_chief() const { return server_->is_chief(); }

  // The steps of a run of this task.
  template <class Alone, class Update, class Device, class Staleness>
  using steps = detail::cluster_stepper<Alone, Update, Device, Staleness>;
  template <class Steps, class Staleness, class Recovery, class... More>
  Steps make(const Staleness& when, const Recovery& lost, const cluster_fingerprint& made_from, More&&... more) const {
    return Steps(*server_, when, detail::log_of(lost), made_from, std::forward<More>(more)...);
  }
  // What the tasks of a cluster have to agree about, of these policies: the rule, and every setting of each policy.
  template <class... Policies>
  static cluster_fingerprint describe(const Policies&... policies) {
    cluster_fingerprint f;
    using rule = policy_of<kind::rule, detail::no_rule, Policies...>;
    if constexpr (requires { std::string(rule::name); }) f.rule = rule::name;
    f.arithmetic = policy_of<kind::arithmetic, fuses_products, Policies...>::fuses ? "fast" : "portable";
    std::size_t number = 0;
    (describe_one(f, number++, policies), ...);
    std::sort(f.settings.begin(), f.settings.end());
    return f;
  }
  // A supervisor's session. Error: invalid_argument for another master than this task's server.
  template <class Master, class OpenHere>
  decltype(auto) connect(const Master& m, OpenHere&& open_here) const {
    if (!m.is_this_process() && m.text != server_->target())
      raise(status::invalid_argument, text("\"", m.text, "\" is not this task's server: expected \"\", \"local\" or \"",
                                           server_->target(), "\""));
    return open_here();
  }

private:
  const server* server_;

  struct fuses_products {  // the default of trainers
    static constexpr bool fuses = true;
  };

  template <class Policy>
  static void describe_one(cluster_fingerprint& f, std::size_t number, const Policy& p) {
    if constexpr (requires { Policy::settings(); })
      for (const auto& s : Policy::settings())
        if (const auto x = s.value(p)) f.settings.emplace_back(text("policy ", number, ", ", s.name), text(*x));
  }
};

}  // namespace gradus
