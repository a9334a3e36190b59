// A session_service runs the sessions of other processes in this one: with it a server is TensorFlow's tf.train.Server
// for graphs.
//
//   gradus::server here(gradus::grpc{gradus::mtls{"certs"}},
//                       {.cluster = cluster, .job_name = "worker", .task_index = 0});
//   gradus::session_service sessions{here};     // from now on "grpc://host:port" runs graphs here
//   here.join();
//
// In another process, which needs no kernels and no variables:
//
//   gradus::remote_session s(target, g, gradus::grpc{gradus::mtls{"certs"}});      // cluster/remote_session.hpp
//
// Any task may have a session_service: that of a task whose training listens (a parameter server, a worker of
// all_reduce) shares its port, that of another task takes the task's address. A program that makes none serves no
// sessions, although its tasks train.
//
// A client that may open a session may run any graph here, as on TensorFlow's servers: give certificates accordingly,
// and serve without them (insecure) only on a network that you trust. session_limits bounds the resources of a call.
#pragma once
#include "../base/build.hpp"

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
// Returns the op of this name among those that no device has: leaves, ops of variables, queues. Returns null if there
// is none.
const card* card_of_sessions(std::string_view name);
}  // namespace detail

// Policies are those of the sessions that the service makes (run/session.hpp), such as ops<&your_card>{} or threads{4},
// but not optimizers, which belong to one graph. Your cards are found by their names. A host function (ops/host.hpp)
// has no name of its own, so no server runs one.
template <class Device = default_device, class... Policies>
class session_service {
  template <class... P>
  using user_ops = policy_of<kind::operations, ops<>, P...>;

public:
  // Serves until it is destroyed. The server must outlive it. Raises failed_precondition for a server without a
  // transport, and unavailable if the port of its task is in use.
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

  // Returns the address to which clients connect, with the port that the system chose for port 0.
  std::string target() const { return host_.target(); }
  std::size_t sessions() const { return host_.sessions(); }  // that are open

private:
  detail::session_host host_;
};
template <class... Policies>
session_service(const server&, Policies...) -> session_service<default_device, Policies...>;
template <class... Policies>
session_service(const server&, const session_limits&, Policies...) -> session_service<default_device, Policies...>;

// This connect policy makes sessions of this process for '' and 'local', and sessions on a server for
// "protocol://host:port". A supervisor, a session manager and a monitored session take it. With local_messages{}
// (cluster/local_messages.hpp) 'local' is the server of this process, and is reached by messages.
//
//   const gradus::remote_sessions there{gradus::grpc{gradus::mtls{"certs"}}};
//   auto open = there.sessions("grpc://10.0.0.7:2222", gradus::sessions_of(g));
template <transport_policy Transport>
class remote_sessions {
public:
  using policy_for = kind::connection;

  explicit remote_sessions(Transport by, remote_session_options o = {}) : by_(std::move(by)), o_(std::move(o)) {}

  // Returns a session of the graph of which `open_here` makes sessions.
  template <class OpenHere>
  std::unique_ptr<base_session> connect(const master& m, OpenHere&& open_here) const {
    std::unique_ptr<base_session> here = open_here();
    if (m.is_this_process() && m.text != Transport::protocol) return here;
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
