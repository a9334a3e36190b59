// Sessions of other processes, run by this one: what makes a server TensorFlow's tf.train.Server for graphs.
//
//   gradus::server here(gradus::grpc{gradus::mtls{"certs"}}, {.cluster = cluster, .job_name = "worker", .task_index =
//   0}); gradus::session_service sessions{here};     // from now on "grpc://host:port" runs graphs here here.join();
//
// and in another process, with no kernel and no variable of its own:
//
//   gradus::remote_session s(target, g, gradus::grpc{gradus::mtls{"certs"}});      // cluster/remote_session.hpp
//
// Any task may have one: a parameter server's shares the port of its training, another's takes the address of its task.
// A program that makes none serves no sessions, though its tasks train.
//
// Whoever may open a session may run any graph here, as on TensorFlow's servers: give certificates accordingly, and
// serve without them (insecure) on a network that you trust alone. What a call may take is bounded by session_limits.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../cluster/remote_session.hpp"
#include "../cluster/session_host.hpp"
#include "../cpu/device.hpp"
#include "../run/session.hpp"
#include "../run/variable_ops.hpp"
#include "../session/master.hpp"
#include "../session/queue/graph_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The ops that no device has: leaves, those of variables, queues. Null: none has this name.
const card* card_of_sessions(std::string_view name);
}  // namespace detail

// Policies: those of the sessions it makes (run/session.hpp), as ops<&your_card>{} or threads{4}; no optimizers, which
// belong to one graph. Cards of yours are found by their names. A host function (ops/host.hpp) has no name of its own,
// and so no server runs one.
template <class Device = default_device, class... Policies>
class session_service {
  template <class... P>
  using user_ops = policy_of<kind::operations, ops<>, P...>;

public:
  // Serves until it is destroyed. The server outlives it. Errors: failed_precondition for a server without a transport;
  // unavailable if the port of its task is in use.
  explicit session_service(const server& here, Policies... policies)
      : session_service(here, session_limits{}, std::move(policies)...) {}
  session_service(const server& here, const session_limits& limits, Policies... policies)
      : host_(
            here, [policies...](graph& g, session_resources& box) { return sessions_of<Device>(g, policies...)(box); },
            [](std::string_view name) {
              if (name == "HostCall") return static_cast<const card*>(nullptr);
              const card* const own = detail::card_of_sessions(name);
              return own != nullptr ? own : Device::template registry<user_ops<Policies...>>::named(name);
            },
            limits) {}

  // What clients connect to, with the port that the system chose for port 0.
  std::string target() const { return host_.target(); }
  std::size_t sessions() const { return host_.sessions(); }  // that are open

private:
  detail::session_host host_;
};
template <class... Policies>
session_service(const server&, Policies...) -> session_service<default_device, Policies...>;
template <class... Policies>
session_service(const server&, const session_limits&, Policies...) -> session_service<default_device, Policies...>;

// A connect policy: sessions of this process for '' and 'local', on a server for "protocol://host:port". What a
// supervisor, a session manager and a monitored session take.
//
//   const gradus::remote_sessions there{gradus::grpc{gradus::mtls{"certs"}}};
//   auto open = there.sessions("grpc://10.0.0.7:2222", gradus::sessions_of(g));
template <transport_policy Transport>
class remote_sessions {
public:
  using policy_for = kind::connection;

  explicit remote_sessions(Transport by, remote_session_options o = {}) : by_(std::move(by)), o_(std::move(o)) {}

  // Of the graph that `open_here` makes sessions of.
  template <class OpenHere>
  std::unique_ptr<base_session> connect(const master& m, OpenHere&& open_here) const {
    std::unique_ptr<base_session> here = open_here();
    if (m.is_this_process()) return here;
    return std::make_unique<remote_session>(m.text, here->of(), by_, o_);
  }
  template <class OpenHere>
  std::unique_ptr<base_session> operator()(std::string_view at, OpenHere&& open_here) const {
    return connect(parse_master(at), std::forward<OpenHere>(open_here));
  }
  template <class Open>
  auto sessions(std::string_view at, Open open) const {
    return [policy = *this, m = parse_master(at), open = std::move(open)] { return policy.connect(m, open); };
  }

private:
  Transport by_;
  remote_session_options o_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_service.ipp"
#endif
