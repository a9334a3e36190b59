// A task_network reaches the other tasks of a cluster, whatever carries their messages; a server holds it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD {

// A task of a cluster, as far as is known of it (server::members).
struct cluster_member {
  enum states : std::uint8_t {
    not_heard,  // it has not come yet
    alive,      // it was heard within the time after which it is taken for dead
    silent,     // it was not
    left        // its program has done its part
  };
  std::string task = {}, address = {};  // "worker 1", "host:port"
  states state = not_heard;
  double silent_secs = 0;  // since it was heard last

  friend bool operator==(const cluster_member&, const cluster_member&) = default;
};

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

class message_network;
class rank_network;
class transport;
class transport_told;
struct shard_program;

class task_network {
public:
  virtual ~task_network() = default;
  virtual message_network& messages() = 0;
  // The program that a worker brings, and the name of its task. The first is what all serve. Error: failed_precondition
  // for one that differs, with the first difference.
  virtual void offer(shard_program program, const std::string& task) = 0;
  // A parameter server's part: waits for a program, and serves until the cluster has ended.
  virtual void serve(std::uint32_t shard) = 0;
  // A worker's part is done: it leaves, and this returns when all others have left. Error: aborted where the cluster
  // ends otherwise. The starter of threads of one process waits for them.
  virtual void finish() {}
  // This worker's end, where workers sum their gradients among themselves (all_reduce.hpp); null: they do not.
  virtual rank_network* ranks() { return nullptr; }
  // The tasks and what is known of them; empty: all are threads of this process. Error: deadline_exceeded if the task
  // that knows it does not answer.
  virtual std::vector<cluster_member> known_members() { return {}; }
  // Sessions of other processes reach the task by the transport that its network listens with, as nodes from 65,536 on:
  // `sessions` is told about them, and `carrier` becomes that transport before; null: nobody is told any more. Where
  // the network takes no connections, nothing happens.
  virtual void share(transport_told* /*sessions*/, transport*& /*carrier*/) {}
  // The task's server was stopped: what waits in serve returns.
  virtual void server_stopped() {}
};

}  // namespace gradus::detail
