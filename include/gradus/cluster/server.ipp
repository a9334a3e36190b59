// The bodies of server.hpp.
#pragma once
#include "../base/body.hpp"
#include "server.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY server::server(server_def def, bool start_now, const task_system& run)
    : def_(resolve(std::move(def))), changed_(run) {
  if (def_.protocol.empty()) def_.protocol = own_protocol;
  if (def_.protocol != own_protocol)
    raise(status::unimplemented, text("the protocol \"", def_.protocol,
                                      "\" takes a transport, and this server has none: it serves sessions "
                                      "of its own process, protocol \"in_process\""));
  if (start_now) start();
}

GRADUS_BODY server_def server::local_def() {
  return {.cluster = {{"local", {"localhost:0"}}}, .job_name = "local", .task_index = 0};
}

GRADUS_BODY std::string server::target() const {
  return text(def_.protocol, "://", def_.cluster.task_address(def_.job_name, def_.task_index));
}

GRADUS_BODY void server::start() {
  const std::lock_guard lock(mutex_);
  if (state_ == stopped)
    raise(status::failed_precondition, text("the server \"", target(), "\" was stopped and cannot start again"));
  state_ = running;
}

GRADUS_BODY void server::stop() {
  const std::lock_guard lock(mutex_);
  state_ = stopped;
  changed_.notify_all();  // under the mutex: who has joined may destroy the server
}

GRADUS_BODY void server::join() const {
  std::unique_lock lock(mutex_);
  if (state_ == made) raise(status::failed_precondition, text("the server \"", target(), "\" was not started"));
  changed_.wait(lock, [&] { return state_ == stopped; });
}

GRADUS_BODY bool server::is_running() const {
  const std::lock_guard lock(mutex_);
  return state_ == running;
}

}  // namespace gradus
