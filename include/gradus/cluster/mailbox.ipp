// The bodies of mailbox.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "mailbox.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY nanos nanos_now(const task_system& tasks) { return static_cast<nanos>(tasks.elapsed() * 1e9); }

GRADUS_BODY void mailbox::fill(letter& l, const protocol_message& m, bool lent) {
  l.message = m, l.lent = lent;
  l.ids.assign(m.ids.begin(), m.ids.end());
  l.parts.assign(m.parts.begin(), m.parts.end());
  std::size_t bytes = 0;
  for (const wire_slice& s : m.parts) bytes += s.name.size() + (lent ? 0 : align_up(s.bytes.size()));
  if (l.memory.size() < bytes) l.memory = aligned_buffer::untouched(bytes + bytes / 8);
  l.bytes = bytes;
  std::byte* to = l.memory.data();
  for (wire_slice& s : l.parts) {
    if (lent) break;
    if (!s.bytes.empty()) std::memcpy(to, s.bytes.data(), s.bytes.size());
    s.bytes = {to, s.bytes.size()};
    to += align_up(s.bytes.size());
  }
  for (wire_slice& s : l.parts) {
    if (!s.name.empty()) std::memcpy(to, s.name.data(), s.name.size());
    s.name = {reinterpret_cast<const char*>(to), s.name.size()};
    to += s.name.size();
  }
  l.message.ids = l.ids, l.message.parts = l.parts;
}

GRADUS_BODY void mailbox::put(const protocol_message& m, bool lent) {
  std::unique_ptr<letter> l;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (waiting_.size() >= limits_.messages || bytes_ > limits_.bytes) return void(++dropped_);
    if (!free_.empty()) l = std::move(free_.back()), free_.pop_back();
  }
  if (l == nullptr) l = std::make_unique<letter>();
  fill(*l, m, lent);
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  bytes_ += l->bytes;
  waiting_.push_back(std::move(l));
  changed_.notify_all();  // a taker; who withdraws waits for something else, and looks again
}

GRADUS_BODY void mailbox::withdraw(std::uint32_t from) {
  std::unique_lock lock(mutex_);
  for (auto l = waiting_.begin(); l != waiting_.end();) {
    if (!(*l)->lent || (*l)->message.from != from) {
      ++l;
      continue;
    }
    bytes_ -= (*l)->bytes;
    free_.push_back(std::move(*l));
    l = waiting_.erase(l);
  }
  changed_.wait(lock, [&] { return lender_ != static_cast<std::int64_t>(from); });
}

GRADUS_BODY std::unique_ptr<mailbox::letter> mailbox::next(nanos until) {
  std::unique_lock lock(mutex_);
  const auto any = [&] { return !waiting_.empty() || closed_; };
  if (until == never_due)
    changed_.wait(lock, any);
  else if (!any() && until != at_once)
    changed_.wait_for(lock, static_cast<double>(until) / 1e9 - tasks_.elapsed(), any);
  if (waiting_.empty()) return nullptr;
  std::unique_ptr<letter> l = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= l->bytes;
  if (l->lent) lender_ = l->message.from;
  return l;
}

GRADUS_BODY void mailbox::done(std::unique_ptr<letter> l) {
  const std::lock_guard lock(mutex_);
  if (l->lent) {
    lender_ = -1;
    changed_.notify_all();
  }
  free_.push_back(std::move(l));
}

GRADUS_BODY void mailbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}
GRADUS_BODY bool mailbox::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}
GRADUS_BODY std::uint64_t mailbox::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace gradus::detail
