// The bodies of shared_port.hpp.
#pragma once
#include <mutex>

#include "../base/body.hpp"
#include "session_calls.hpp"
#include "shared_port.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void shared_port::give_to(transport_told* sessions) {
  const std::unique_lock lock(calling_);
  sessions_ = sessions;
}

GRADUS_BODY bool shared_port::greets(std::span<const std::byte> hello, const transport_peer& from,
                                     std::string_view task, transport_greeting& answer) {
  if (!is_hello_of_sessions(hello)) return false;
  const std::shared_lock calling(calling_);
  if (sessions_ == nullptr)
    raise(status::failed_precondition,
          text(task, " runs no sessions of other processes; make a session_service of its server"));
  answer = sessions_->greeted(hello, from);
  return true;
}

GRADUS_BODY bool shared_port::takes(std::uint32_t node, const received_frame& frame) {
  if (node < first_session_node) return false;
  const std::shared_lock calling(calling_);
  if (sessions_ != nullptr) sessions_->came(node, frame);
  return true;
}

}  // namespace gradus::detail
