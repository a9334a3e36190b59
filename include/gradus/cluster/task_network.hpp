// How a task reaches the others of its cluster, whatever carries their messages: what a server holds.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "hello.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class message_network;

// What a parameter server does. Its type of update is known to the workers' program alone, so they bring it.
struct shard_program {
  cluster_fingerprint of;                                                  // what it was made from
  std::function<void(message_network& network, std::uint32_t shard)> serve;  // until the cluster's end
};

class task_network {
public:
  virtual ~task_network() = default;
  virtual message_network& messages() = 0;
  // A worker's program, by the name of its task. The first is what all serve. Error: failed_precondition for one that
  // differs, with the first difference.
  virtual void offer(shard_program program, const std::string& task) = 0;
  // A parameter server's part: waits for a program, and serves until the cluster has ended.
  virtual void serve(std::uint32_t shard) = 0;
};

}  // namespace gradus::detail
