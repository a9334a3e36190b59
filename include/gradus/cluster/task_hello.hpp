// The tasks of a cluster as numbered nodes, and what two of them say to each other first.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../base/version.hpp"
#include "server.hpp"
#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Parameter servers first, then those that train: chief, master, workers.
struct cluster_nodes {
  // Error: not_found for a task that is no node.
  explicit cluster_nodes(const server_def& def);

  std::uint32_t me = 0, shards = 0, workers = 0;
  std::string task, all;  // this one; every task with its address, for messages
  std::vector<std::string> names, addresses;
};

struct task_hello {
  std::uint32_t node = 0;
  std::uint64_t boot = 0;  // a number of the process
  std::string version = GRADUS_VERSION, task = {}, cluster = {};
  // Of a worker: the program that it brings, by its name, and what that is made from.
  std::string program = {};
  std::vector<std::byte> recipe = {};
};
std::vector<std::byte> hello_frame(const task_hello& h);
// That of the task itself, with what `h` says of its program.
std::vector<std::byte> own_hello(const cluster_nodes& here, std::uint64_t boot, task_hello h = {});
// Error: data_loss for what is none.
task_hello read_hello(std::span<const std::byte> frame);
// Whether a task that said this may talk to this node. Errors: failed_precondition for another version or cluster and
// for a task that it is not; permission_denied for a certificate of another role; each names both.
void check_hello(const task_hello& h, const transport_peer& from, const cluster_nodes& here);
// The answer of the node that was dialled. Errors: data_loss for what is none; failed_precondition for another task's.
task_hello read_welcome(std::span<const std::byte> answer, std::uint32_t node, const cluster_nodes& here);

// Drawn anew by each process; not 0.
std::uint64_t draw_boot();

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "task_hello.ipp"
#endif
