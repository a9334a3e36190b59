// This transport carries frames between the ends of one process: what remote_session, session_service and the tasks of
// a cluster send over a network goes here from thread to thread, with the same hellos, frames, checksums, limits and
// queues (stream_transport.hpp).
//
//   const gradus::server here(gradus::local_messages{}, gradus::server::local_def());
//   const gradus::session_service sessions{here};
//   gradus::remote_session s("local", g, gradus::local_messages{});      // or here.target(), or sessions.target()
//
// "local" is the only address of this process at which anything listens, as TensorFlow's master "local"; a target
// "local://host:port" is that of one server. The host is a name, which nothing looks up, and port 0 gets a number that
// is free. While a server listens at port 0, its target with this port means it as well, unless there are several such.
// A client that connects to one of several is refused with an error that lists them.
//
// A process has one list of addresses. Each transport has two tasks: one renews connections, the other one passes on
// what arrives.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "../base/tasks.hpp"
#include "remote_network.hpp"
#include "transport.hpp"
#include "wire_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

// The members mean what those of grpc (grpc.hpp) mean.
struct local_messages {
  static constexpr std::string_view protocol = "local";

  std::size_t max_connections = 256;
  detail::wire_limits limits = {};
  std::uint64_t waiting_bytes = std::uint64_t{256} << 20;
  double handshake_secs = 10;

  std::unique_ptr<detail::transport> make(const task_system& tasks) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "local_messages.ipp"
#endif
