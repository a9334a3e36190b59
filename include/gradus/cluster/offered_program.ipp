// The bodies of offered_program.hpp.
#pragma once
#include "../base/body.hpp"
#include "offered_program.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void offered_program::offer(shard_program program, const std::string& task) {
  const std::lock_guard lock(mutex_);
  if (first_.empty()) {
    program_ = std::move(program), first_ = task;
    changed_.notify_all();
    return;
  }
  must_agree(program_.of, first_, program.of, task);
  if (program_.name != program.name || program_.recipe != program.recipe)
    raise(status::failed_precondition,
          text("these tasks cannot train one model: what ", task, " was given differs from what ", first_,
               " was given; start all tasks from one build of one program"));
}
GRADUS_BODY void offered_program::serve(message_network& network, std::uint32_t shard) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !first_.empty() || is_over_; });
    if (first_.empty()) return;
  }
  program_.serve(network, shard);
}
GRADUS_BODY void offered_program::end() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}
GRADUS_BODY bool offered_program::is_there() const {
  const std::lock_guard lock(mutex_);
  return !first_.empty();
}
GRADUS_BODY bool offered_program::survives() const {
  const std::lock_guard lock(mutex_);
  return program_.survives;
}

}  // namespace gradus::detail
