// The bodies of cancellation.hpp.
#pragma once
#include "body.hpp"
#include "cancellation.hpp"

namespace gradus::inline GRADUS_BUILD {

// The mutex is held while the links are called, so that no link is destroyed during its call.
GRADUS_BODY void cancellation::cancel(const std::string& why, status kind) {
  const std::lock_guard lock(mutex_);
  if (is_cancelled()) return;
  reason_ = why, kind_ = kind;
  cancelled_.store(true, std::memory_order_release);
  for (link* l = first_; l != nullptr; l = l->next_) l->on_cancel_();
}

GRADUS_BODY std::string cancellation::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

GRADUS_BODY status cancellation::kind() const {
  const std::lock_guard lock(mutex_);
  return kind_;
}

GRADUS_BODY cancellation::link::link(cancellation& to, std::function<void()> on_cancel)
    : to_(to), on_cancel_(std::move(on_cancel)) {
  const std::lock_guard lock(to_.mutex_);
  next_ = to_.first_;
  if (next_ != nullptr) next_->before_ = this;
  to_.first_ = this;
  if (to_.is_cancelled()) on_cancel_();
}

GRADUS_BODY cancellation::link::~link() {
  const std::lock_guard lock(to_.mutex_);
  (before_ != nullptr ? before_->next_ : to_.first_) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

// A link is called with the mutex of its cancellation held.
GRADUS_BODY detail::either_cancellation::either_cancellation(cancellation& a, cancellation& b)
    : a_(a, [this, &a] { pass(a, one_); }), b_(b, [this, &b] { pass(b, one_); }) {}

}  // namespace gradus
