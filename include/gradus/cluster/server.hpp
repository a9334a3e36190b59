// A server is one task of a cluster, in this process, with the variables and queues that its sessions share. It is
// TensorFlow's tf.train.Server.
//
//   gradus::server server({.cluster = cluster, .job_name = "worker", .task_index = 0});
//   const gradus::in_process here{server};
//   auto sv = gradus::make_supervisor(g, gradus::sessions_of(g), {.logdir = dir, .connect = here});
//   auto sess = sv.managed_session(server.target());                // its variables are the server's
//   auto open = here.sessions(server.target(), gradus::sessions_of(h));   // for session managers and creators
//
// Sessions of a server find variables and queues by their names, whatever graphs they run; variables and queues keep
// their values when a session ends. So chief and other tasks can run side by side in one process.
//
// A server has the job and index of its task, a target by which sessions are opened on it, and `join`, in which a ps's
// main thread waits. A network carries messages between tasks. The servers of a local_cluster
// (cluster/local_cluster.hpp) have a network of threads, a server that is given a transport has one of processes:
//
//   gradus::server here(gradus::grpc{gradus::mtls{"certs"}}, gradus::run_config::from_environment());
//   if (here.is_ps()) return here.join();         // serves until the last worker has left
//   ...                                           // trains
//   here.finish();                                // waits until all others have left as well
//
// and training runs with the policy `connected{here}` use it. A server by itself has no network, opens no port and
// starts no thread: sessions of this process reach it by the connect policy in_process (session/master.hpp).
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../base/or_none.hpp"
#include "../base/tasks.hpp"
#include "../run/session_resources.hpp"
#include "spec.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD {

// Arguments besides a ServerDef: each replaces that of the definition, and the session's settings are merged.
struct server_arguments {
  or_none<std::string> job_name = {};
  or_none<int> task_index = {};
  or_none<std::string> protocol = {};
  session_options config = {};
  bool start = true;
  task_system tasks = {};
};

namespace detail {
class transport;
}  // namespace detail

// A policy for what carries messages between processes: it has a protocol name, and makes a transport.
template <class T>
concept transport_policy = requires(const T& by, const task_system& run) {
  { T::protocol } -> std::convertible_to<std::string_view>;
  { by.make(run) } -> std::same_as<std::unique_ptr<detail::transport>>;
};
// A configuration that has the task of this process, such as run_config.
template <class C>
concept task_configuration = requires(const C& c) {
  { c.cluster_spec() } -> std::convertible_to<const cluster_spec&>;
  { c.task_type() } -> std::convertible_to<std::string>;
  { c.task_id() } -> std::convertible_to<int>;
  { c.protocol } -> std::convertible_to<or_none<std::string>>;
};

namespace detail {
server_def with_protocol(server_def def, std::string_view protocol);
server_def task_of(const cluster_spec& cluster, const std::string& job, int index, std::string_view protocol,
                   const or_none<std::string>& wanted);
// Returns whether its task trains together with others.
bool is_cluster(const server_def& def);
// `connect_secs` is how long the task waits for those without which it cannot begin.
std::shared_ptr<task_network> network_by(const server_def& def, std::unique_ptr<transport> carrier,
                                         const task_system& run, double connect_secs);
inline constexpr double connect_secs_of_sessions = 7200;  // TensorFlow's
// Returns the time that a configuration gives; for `none`, a time without an end.
template <class Config>
double connect_secs_of(const Config& config) {
  if constexpr (requires { config.session_creation_timeout_secs.has_value(); })
    return config.session_creation_timeout_secs.has_value() ? config.session_creation_timeout_secs.value() : 1e9;
  else
    return connect_secs_of_sessions;
}
}  // namespace detail

class server {
public:
  static constexpr std::string_view own_protocol = "in_process";

  // Raises the errors of `resolve`, and unimplemented for a protocol other than "in_process".
  explicit server(server_def def, bool start_now = true, const task_system& run = {});
  server(server_def def, const server_arguments& a);
  // A server with a network, by which its task reaches the others.
  server(server_def def, std::shared_ptr<detail::task_network> network, const task_system& run);
  // The same by a transport, such as gradus::grpc{...} (cluster/grpc.hpp). A parameter server takes connections from
  // now on. Also raises unavailable for a port that is in use, and the other errors of the transport.
  template <transport_policy Transport>
  server(const Transport& by, server_def def, const task_system& run = {})
      : server(by, std::move(def), run, detail::connect_secs_of_sessions) {}
  // The task that a configuration names, such as gradus::run_config::from_environment(). A task without a cluster in
  // its configuration is alone, and so is an evaluator. Its session_creation_timeout_secs is how long the task waits
  // for a run to begin. Also raises invalid_argument for a configuration with another protocol.
  template <transport_policy Transport, task_configuration Config>
  server(const Transport& by, const Config& config, const task_system& run = {})
      : server(by,
               detail::task_of(config.cluster_spec(), config.task_type(), config.task_id(), Transport::protocol,
                               config.protocol),
               run, detail::connect_secs_of(config)) {}
  server(const server&) = delete;
  // Stops the server.
  ~server();

  // Returns a cluster of one task, job "local".
  static server_def local_def();
  // Returns a server of one task, job "local", for a program that is its own cluster. Each has a number of its own in
  // the place of TensorFlow's port, which the system chooses.
  static server create_local_server(const session_options& config = {}, bool start_now = true,
                                    const task_system& run = {});

  // Returns the master string for a session on this server: protocol://address.
  std::string target() const;
  const server_def& def() const { return def_; }
  // Returns the task system of its threads, waits and time: that of the cluster that made it.
  const task_system& tasks() const { return tasks_; }

  // May be called again while the server runs. Raises failed_precondition once it was stopped: make a new server then.
  void start();
  // Closes its sessions, so that calls that wait in their queues raise cancelled, lets join return, and makes new
  // sessions fail. TensorFlow differs: its servers end with their process.
  void stop();
  // Waits until stop is called. A parameter server of a cluster holds and updates its variables meanwhile, and join
  // returns when the last worker has left; over a transport it raises deadline_exceeded if no worker was connected for
  // two hours, or what session_creation_timeout_secs says. Raises failed_precondition if the server was never started,
  // since it might wait for ever.
  void join() const;
  // To be called last in a worker's program: announces that this task has done its part, and returns when all others
  // have done theirs. It waits because a process that has ended without an error is not started again, but if a
  // parameter server is lost after that, all tasks have to begin again. Returns at once if there is no task to wait
  // for: for a task that is alone, in a thread of a local_cluster, and for a parameter server, which calls join. Raises
  // aborted if the cluster was lost, with the reason.
  void finish() const;
  bool is_running() const;
  bool was_stopped() const;  // it cannot start again

  // ---- the task's place in a cluster that trains
  bool is_ps() const { return def_.job_name == "ps"; }
  // Returns whether this task initializes, restores, saves and writes: the task of the job "chief" or "master", or
  // worker 0 if there is none.
  bool is_chief() const;
  // Returns the number of tasks that train: chief, master and workers. It is 1 for a server that is its own cluster.
  int workers() const;
  // Returns the number of this task among them; the chief is 0. Raises failed_precondition for a task that does not
  // train.
  int worker() const;
  int shards() const;  // number of parameter servers
  // Returns every task of the cluster with its state: parameter server 0 has the list, and other tasks ask it; with
  // all_reduce each worker has a list of its own. Tasks that are threads of one process are alive. Raises
  // deadline_exceeded if parameter server 0 does not answer.
  std::vector<cluster_member> members() const;
  // Returns the network; null if this task is alone.
  const std::shared_ptr<detail::task_network>& network() const { return network_; }

  // Makes another transport of the kind that it was given, for sessions; null if it was given none.
  std::unique_ptr<detail::transport> make_transport() const;

  // Returns the resources that its sessions share: variables and queues.
  session_resources& resources() const { return *resources_; }
  // Returns the resources of a session with these settings (none: the server's own): those that all sessions share, or,
  // with isolate_session_state, resources of its own. They outlive the server if the session does.
  std::shared_ptr<session_resources> resources_for(const or_none<session_options>& config) const;
  // Closes its sessions, whose waiting and later runs raise aborted, and removes the values of all variables and all
  // queues, also of isolated sessions, as tf.Session.reset. With `containers` only those of these containers. Graphs
  // name no container, so everything is in the default one, "" or "localhost".
  void reset(std::initializer_list<std::string_view> containers = {}) const {
    reset(std::vector<std::string>(containers.begin(), containers.end()));
  }
  void reset(const std::vector<std::string>& containers) const;

private:
  enum states { made, running, stopped };

  server_def def_;
  task_system tasks_;
  mutable std::mutex mutex_;
  mutable task_condition changed_;
  states state_ = made;
  std::function<std::unique_ptr<detail::transport>()> make_transport_;  // empty: none
  std::shared_ptr<detail::task_network> network_;                       // null: none
  std::shared_ptr<session_resources> resources_;
  mutable std::vector<std::weak_ptr<session_resources>> isolated_;

  template <transport_policy Transport>
  server(const Transport& by, server_def def, const task_system& run, double connect_secs)
      : server(detail::with_protocol(std::move(def), Transport::protocol), nullptr, run) {
    make_transport_ = [by, run] { return by.make(run); };
    if (detail::is_cluster(def_)) network_ = detail::network_by(def_, make_transport_(), run, connect_secs);
  }
  std::vector<std::shared_ptr<session_resources>> all_resources() const;  // under the mutex
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "server.ipp"
#endif
