// A task_network connects a task to the other tasks of a cluster, whatever carries their messages; a server owns it.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gradus::inline GRADUS_BUILD {

// A task of a cluster and what is known about it (server::members).
struct cluster_member {
  enum states : std::uint8_t {
    not_heard,  // no message of it has come yet
    alive,      // a message of it has come within the time after which it is taken for dead
    silent,     // no message of it has come within that time
    left        // its program has done its part
  };
  std::string task = {}, address = {};  // "worker 1", "host:port"
  states state = not_heard;
  double silent_secs = 0;  // since its last message

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
  // Offers the program of a worker, whose task is named `task`. All parameter servers serve the first program that was
  // offered. Raises failed_precondition for a program that differs, with the first difference.
  virtual void offer(shard_program program, const std::string& task) = 0;
  // For a parameter server: waits for a program, and serves until the cluster has ended.
  virtual void serve(std::uint32_t shard) = 0;
  // To be called when a worker's part is done: the worker leaves, and finish returns when all others have left. Raises
  // aborted if the cluster ends in another way. With threads of one process it does nothing, since the code that has
  // started them waits for them.
  virtual void finish() {}
  // Returns this worker's rank_network if workers sum their gradients among themselves (all_reduce.hpp), else null.
  virtual rank_network* ranks() { return nullptr; }
  // Returns the tasks and what is known about them; an empty list if all are threads of this process. Raises
  // deadline_exceeded if the task that has the list does not answer.
  virtual std::vector<cluster_member> known_members() { return {}; }
  // Lets sessions of other processes use the transport that the task's network listens with, as nodes from 65,536 on:
  // sets `carrier` to that transport, and then calls `sessions` for them; returns the port. With a null `sessions` it
  // calls nothing any more. If the network takes no connections, it does nothing and returns 0.
  virtual int share(transport_told* /*sessions*/, transport*& /*carrier*/) { return 0; }
  // To be called when the task's server was stopped: a call of serve that waits returns.
  virtual void server_stopped() {}
};

}  // namespace gradus::detail
