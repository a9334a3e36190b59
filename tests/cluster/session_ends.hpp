// Two ends of sessions on a server in one process: a transport of calls, which may lose frames.
#pragma once
#include <gradus/cluster/remote_session.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/train/session_service.hpp>

#include <span>

#include "lossy_transport.hpp"

namespace session_ends {
using namespace gradus;
using loop::hub;
using loop::looped;
using loop::losing;

inline const server_def one_task{.cluster = {{"worker", {"w0:1"}}}, .job_name = "worker", .task_index = 0};
constexpr const char* target = "loop://w0:1";
inline remote_session_options quick() {
  remote_session_options o;
  o.connect_secs = 5, o.silence_secs = 5, o.retry_secs = 0.01;
  return o;
}

// A server that runs sessions, and the place where transports meet it.
struct serving {
  hub h = {};
  const server here{looped{&h, "server"}, one_task};
  const session_service<> there{here};

  looped from(const char* name) { return {&h, name}; }  // for a client
};

struct counting {
  graph g;
  value v = g.variable("v", {}, {.init = zeros}), add = assign_add(v, g.constant(1.0));
};

// Whether it is a run's call.
inline bool is_run(std::span<const std::byte> frame) {
  const detail::message_head head = detail::keep_frame(frame).head;
  return head.kind == detail::message_kind::call && head.about == static_cast<std::uint64_t>(detail::session_op::run);
}

}  // namespace session_ends
