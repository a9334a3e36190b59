// The bodies of coordinator.hpp.
#pragma once
#include "../base/body.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY registration::registration(std::shared_ptr<detail::coordination> with, std::string name)
    : shared_(std::move(with)),
      member_(std::make_shared<detail::coordination::member>(detail::coordination::member{std::move(name), true})) {
  const std::lock_guard lock(shared_->mutex);
  // Ended threads are forgotten, so that a long run that starts many does not gather them.
  std::erase_if(shared_->members, [](const auto& m) { return !m->alive; });
  shared_->members.push_back(member_);
}

GRADUS_BODY registration& registration::operator=(registration&& other) noexcept {
  std::swap(shared_, other.shared_), std::swap(member_, other.member_);
  return *this;
}

GRADUS_BODY void registration::release() {
  if (!member_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    member_->alive = false;
  }
  shared_->changed.notify_all();
  member_.reset();
}

}  // namespace gradus
