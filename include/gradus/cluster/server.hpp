// A server: one task of a cluster, in this process. TensorFlow's tf.train.Server, without a network as yet.
//
//   gradus::server server({.cluster = cluster, .job_name = "worker", .task_index = 0});
//   auto sv = gradus::make_supervisor<model>({.logdir = dir}, gradus::in_process{server}, gradus::adam{});
//   auto sess = sv.managed_session(server.target());
//
// It opens no port, starts no thread and is registered nowhere: it knows which task this process is, gives that a name
// that a session can be asked for, and holds a ps's main thread in `join` until somebody stops it. Messages between
// tasks are the business of a transport, which this server does not have: only sessions of this process reach it, by
// the connect policy in_process (session/master.hpp), and a protocol that would take a network is refused.
#pragma once
#include <mutex>
#include <string>
#include <utility>

#include "../base/tasks.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD {

class server {
public:
  static constexpr std::string_view own_protocol = "in_process";

  // Errors: what `resolve` refuses; unimplemented for a protocol other than "in_process".
  explicit server(server_def def, bool start_now = true, const task_system& run = {});
  server(const server&) = delete;

  // A cluster of one task, job "local".
  static server_def local_def();

  // What a session asks for: protocol://address.
  std::string target() const;
  const server_def& def() const { return def_; }

  // May be called again while it runs. Error: failed_precondition once it was stopped: make a new one.
  void start();
  // Lets join return, and new sessions fail. Otherwise than TensorFlow, whose servers end with their process.
  void stop();
  // Waits until somebody calls stop. Error: failed_precondition if it was never started, since that may never happen.
  void join() const;
  bool is_running() const;

private:
  enum states { made, running, stopped };

  server_def def_;
  mutable std::mutex mutex_;
  mutable task_condition changed_;
  states state_ = made;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "server.ipp"
#endif
