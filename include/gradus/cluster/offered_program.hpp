// A cluster's first worker offers the program. Those of the other workers have to equal it, and parameter servers
// run it.
#pragma once
#include "../base/build.hpp"

#include <mutex>
#include <string>

#include "../base/tasks.hpp"
#include "shard_program.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class offered_program {
public:
  explicit offered_program(const task_system& tasks) : changed_(tasks) {}

  // Raises failed_precondition for a program that differs from the first.
  void offer(shard_program program, const std::string& task);
  // Waits for a program, and runs it; returns without running one after end().
  void serve(message_network& network, std::uint32_t shard);
  // To be called when no program comes any more.
  void end();

  bool is_there() const;
  // Returns true if there is a program, and a parameter server that is started again keeps its acknowledged updates.
  bool survives() const;

private:
  mutable std::mutex mutex_;
  task_condition changed_;
  shard_program program_;
  std::string first_;  // the task whose program it is; empty: there is none yet
  bool is_over_ = false;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "offered_program.ipp"
#endif
