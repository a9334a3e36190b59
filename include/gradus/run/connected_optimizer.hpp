// Where the train ops of an optimizer (run/optimizer.hpp) are made: in this process, or by the tasks of a cluster if a
// connect policy with steps, such as gradus::connected (cluster/connected.hpp), is among the policies.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "../base/contract.hpp"
#include "running_update.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Without a connection the updates are made here.
struct updates_here {
  template <class... Policies>
  explicit updates_here(const Policies&...) {}
  template <class Running, class Update, class Plan>
  static std::unique_ptr<graph_update> make(const Update& update, const Plan& plan,
                                            std::vector<optimizer_variable> own) {
    return std::make_unique<Running>(update, plan, std::move(own));
  }
};
struct no_connection {
  template <class...>
  using updates_of = updates_here;
};
template <class... Policies>
struct connection_of_optimizer {
  using type = policy_of<kind::connection, no_connection, Policies...>;
  static constexpr bool given = policies_of<kind::connection, Policies...> != 0;
  static constexpr bool trains = !given || requires { typename type::default_staleness; };
  static_assert(trains,
                "gradus: an optimizer takes gradus::connected{server} as its connect policy; those that give sessions, "
                "such as in_process, are for make_supervisor.");
  static_assert(given || policies_of<kind::staleness, Policies...> == 0,
                "gradus: a policy that says how a cluster trains (asynchronous, ssp, sync_replicas, all_reduce) was "
                "given without the cluster; add gradus::connected{server}.");
  static_assert(given || policies_of<kind::recovery, Policies...> == 0,
                "gradus: a policy that says what becomes of a lost parameter server (recovery::roll_back, "
                "recovery::log) was given without the cluster; add gradus::connected{server}.");
};

}  // namespace gradus::detail
