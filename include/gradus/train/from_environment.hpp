// from_environment chooses the kind of cluster when the program starts, so that the same binary runs on a developer's
// machine, under mpirun, and on every machine of a cluster.
//
//   gradus::from_environment(gradus::local_cluster{.ps = 1, .workers = 2}, gradus::grpc{gradus::mtls{"certs"}})
//       .run([&](gradus::server& here) {
//         if (here.is_ps()) return here.join();
//         ...
//       });
//   gradus::from_environment<gradus::local_cluster, gradus::grpc, gradus::mpi>().run(program);   // defaults
//
// The first of these conditions that holds decides:
//
//   GRADUS_CLUSTER is set             to a protocol: "in_process", "simulated", "grpc", "mpi", or "alone"
//   a launcher of MPI has started us  mpi, if it is among the choices
//   TF_CONFIG names a cluster         the first transport among the choices (grpc)
//   otherwise                         local_cluster or simulated, if it is among the choices; else this process alone
//
// A kind that the environment requests and the program does not offer is an error.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../cluster/server.hpp"
#include "run_environment.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// These are the properties of a choice, apart from its type.
struct cluster_way {
  std::string_view protocol;
  bool is_transport;  // its tasks are found in TF_CONFIG
};
// Returns the index of the way that the environment requests, or -1 if this process is alone. `names_cluster` is true
// if TF_CONFIG names a cluster. Raises not_found for a way that is not listed.
int way_of_environment(std::initializer_list<cluster_way> ways, bool names_cluster);

// True for a kind of cluster that starts its tasks itself: local_cluster, simulated, mpi.
template <class Way>
concept runs_tasks = requires(const Way& w, const std::function<void(server&)>& program) {
  { Way::protocol } -> std::convertible_to<std::string_view>;
  w.run(program);
};
}  // namespace detail

template <class... Ways>
class environment_cluster {
  static_assert(sizeof...(Ways) != 0, "gradus: from_environment takes one kind of cluster or more.");
  static_assert(((transport_policy<Ways> || detail::runs_tasks<Ways>)&&...),
                "gradus: from_environment chooses among local_cluster, simulated, mpi, and transports such as grpc.");

public:
  explicit environment_cluster(Ways... ways) : ways_(std::move(ways)...), config_(run_config::from_environment()) {
    chosen_ = detail::way_of_environment({{Ways::protocol, transport_policy<Ways>}...},
                                         !config_.cluster_spec().jobs().empty());
  }
  // Returns the chosen protocol, or "alone".
  std::string_view protocol() const {
    std::string_view found = "alone";
    each([&](const auto& way) { found = way.protocol; });
    return found;
  }
  // Returns the configuration with the task of this process, if TF_CONFIG names it, as run_config::from_environment
  // returns it.
  const run_config& config() const { return config_; }
  // Calls the program for each task that runs in this process. Over a transport that is one task, and run() then waits
  // until all workers have done their part (server::finish). Raises the errors of the kind of cluster that was chosen.
  void run(const std::function<void(server& here)>& program) const {
    if (chosen_ < 0) {
      server here(server::local_def());
      return program(here);
    }
    each([&]<class Way>(const Way& way) {
      if constexpr (transport_policy<Way>) {
        server here(way, config_);
        program(here);
        here.finish();
      } else {
        way.run(program);
      }
    });
  }

private:
  std::tuple<Ways...> ways_;
  run_config config_;
  int chosen_ = -1;

  template <class F>
  void each(F f) const {  // calls f for the chosen way, if there is one
    int i = 0;
    std::apply([&](const auto&... way) { ((i++ == chosen_ ? f(way) : void()), ...); }, ways_);
  }
};

template <class... Ways>
environment_cluster<Ways...> from_environment(Ways... ways) {
  return environment_cluster<Ways...>(std::move(ways)...);
}
template <class First, class... Ways>
  requires(std::is_default_constructible_v<First> && (std::is_default_constructible_v<Ways> && ...))
environment_cluster<First, Ways...> from_environment() {
  return environment_cluster<First, Ways...>(First{}, Ways{}...);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "from_environment.ipp"
#endif
