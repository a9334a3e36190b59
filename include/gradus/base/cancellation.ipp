// The bodies of cancellation.hpp.
#pragma once
#include "body.hpp"
#include "cancellation.hpp"

namespace gradus::inline GRADUS_BUILD {

// From its mark on a waiting call may end, but it does not return before the links were called: its link waits for
// that.
GRADUS_BODY void cancellation::cancel(const std::string& why, status kind) {
  const std::lock_guard calling(calls_);
  mark(why, kind);
  call_links();
}

GRADUS_BODY void cancellation::mark(const std::string& why, status kind) {
  const std::lock_guard lock(mutex_);
  if (is_cancelled()) return;
  reason_ = why, kind_ = kind;
  cancelled_.store(true, std::memory_order_release);
  for (link* l = first_; l != nullptr; l = l->next_)
    if (l->marks_ != nullptr) l->marks_->mark(why, kind);
}

GRADUS_BODY void cancellation::call() {
  const std::lock_guard calling(calls_);
  call_links();
}

GRADUS_BODY void cancellation::call_links() {
  if (std::exchange(called_, true)) return;
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

GRADUS_BODY cancellation::link::link(cancellation& to, std::function<void()> on_cancel, cancellation* next)
    : to_(to), on_cancel_(std::move(on_cancel)), marks_(next) {
  const std::lock_guard calling(to_.calls_);
  {
    const std::lock_guard lock(to_.mutex_);
    next_ = to_.first_;
    if (next_ != nullptr) next_->before_ = this;
    to_.first_ = this;
    if (to_.is_cancelled() && marks_ != nullptr) marks_->mark(to_.reason_, to_.kind_);
  }
  if (to_.called_) on_cancel_();
}

GRADUS_BODY cancellation::link::link(cancellation& to, cancellation& next)
    : link(
          to, [&next] { next.call(); }, &next) {}

GRADUS_BODY cancellation::link::~link() {
  const std::lock_guard calling(to_.calls_);
  const std::lock_guard lock(to_.mutex_);
  (before_ != nullptr ? before_->next_ : to_.first_) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

}  // namespace gradus
