// The sessions of other processes at the port where a task's training listens: both sides of a connection say in its
// first message what it is for, and nodes from first_session_node on are clients of sessions.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <shared_mutex>
#include <span>
#include <string_view>

#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// If one transport carries both, nodes below this number are the cluster's tasks.
inline constexpr std::uint32_t first_session_node = 1u << 16;

class shared_port {
public:
  // Gives `sessions` all that comes for them from now on; with null, nothing any more: no call goes on when this
  // returns.
  void give_to(transport_told* sessions);
  // Returns whether this hello is one of sessions, and answers it by `answer`. Raises failed_precondition if `task`,
  // which is named in the message, runs no sessions.
  bool greets(std::span<const std::byte> hello, const transport_peer& from, std::string_view task,
              transport_greeting& answer);
  // Returns whether this node is a client of sessions; then the frame is theirs.
  bool takes(std::uint32_t node, const received_frame& frame);

private:
  std::shared_mutex calling_;  // held during calls of sessions_
  transport_told* sessions_ = nullptr;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "shared_port.ipp"
#endif
