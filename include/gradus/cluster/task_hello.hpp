// The tasks of a cluster as numbered nodes, and the first messages between two of them.
#pragma once
#include "../base/build.hpp"

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
  // Raises not_found for a task that is no node.
  explicit cluster_nodes(const server_def& def);

  std::uint32_t me = 0, shards = 0, workers = 0;
  std::string task, all;  // this task; every task with its address, for error messages
  std::vector<std::string> names, addresses;
};

struct task_hello {
  std::uint32_t node = 0;
  std::uint64_t boot = 0;  // a number of the process
  std::string version = GRADUS_VERSION, task = {}, cluster = {};
  // Of a worker: the name of the program that it offers, and the program's recipe.
  std::string program = {};
  std::vector<std::byte> recipe = {};
};
std::vector<std::byte> hello_frame(const task_hello& h);
// Returns the hello of the task itself, with the program of `h`.
std::vector<std::byte> own_hello(const cluster_nodes& here, std::uint64_t boot, task_hello h = {});
// Raises data_loss for bytes that are no hello.
task_hello read_hello(std::span<const std::byte> frame);
// Checks that a task with this hello may connect to this node. Raises failed_precondition for another version or
// cluster and for a task that it is not; permission_denied for a certificate of another role; the message has both.
void check_hello(const task_hello& h, const transport_peer& from, const cluster_nodes& here);
// Reads the answer of the node that was dialled. Raises data_loss for bytes that are no answer; failed_precondition for
// the answer of another task.
task_hello read_welcome(std::span<const std::byte> answer, std::uint32_t node, const cluster_nodes& here);

// Draws the number of a process, which is not 0.
std::uint64_t draw_boot();

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "task_hello.ipp"
#endif
