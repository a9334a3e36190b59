// A cluster's first worker brings the program: the others have to agree with it, and parameter servers run it.
#pragma once
#include <mutex>
#include <string>

#include "../base/tasks.hpp"
#include "shard_program.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class offered_program {
public:
  explicit offered_program(const task_system& tasks) : changed_(tasks) {}

  // Error: failed_precondition for one that differs from the first.
  void offer(shard_program program, const std::string& task);
  // Waits for it, and runs it; returns at once if none comes.
  void serve(message_network& network, std::uint32_t shard);
  // No program comes any more.
  void end();

  bool is_there() const;
  // True if it is there, and a parameter server that is started again goes on with its acknowledged updates.
  bool survives() const;

private:
  mutable std::mutex mutex_;
  task_condition changed_;
  shard_program program_;
  std::string first_;  // whose program it is; empty: there is none yet
  bool is_over_ = false;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "offered_program.ipp"
#endif
