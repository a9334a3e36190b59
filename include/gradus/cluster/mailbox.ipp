// The bodies of mailbox.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>

#include "../base/body.hpp"
#include "mailbox.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are made in raw memory, which is used again without calling their destructors.
static_assert(std::is_trivially_copyable_v<contribution_id> && std::is_trivially_destructible_v<contribution_id>);
static_assert(std::is_trivially_copyable_v<wire_slice> && std::is_trivially_destructible_v<wire_slice>);

GRADUS_BODY nanos nanos_now(const task_system& tasks) {
  return static_cast<nanos>(std::llround(tasks.elapsed() * 1e9));
}

namespace mailboxes {
// Up to this size a copy is made under the mutex, since unlocking and locking it again costs as much.
inline constexpr std::size_t copied_at_once = 256;

constexpr std::size_t aligned(std::size_t n) { return (n + wire_alignment - 1) / wire_alignment * wire_alignment; }
// A frame holds a message as its slices' bytes, each aligned, then the slices, the ids, and the names.
GRADUS_BODY std::size_t value_bytes(const protocol_message& m) {
  std::size_t n = 0;
  for (const wire_slice& s : m.parts) n += aligned(s.bytes.size());
  return n;
}
GRADUS_BODY std::size_t table_bytes(const protocol_message& m) {
  std::size_t n = m.parts.size() * sizeof(wire_slice) + m.ids.size() * sizeof(contribution_id);
  for (const wire_slice& s : m.parts) n += s.name.size();
  return n;
}
}  // namespace mailboxes

GRADUS_BODY mailbox::mailbox(const task_system& tasks, waiting wait, mailbox_limits limits, bool crowded)
    : tasks_(tasks), wait_(wait), limits_(limits), crowded_(crowded), came_(tasks), was_handled_(tasks) {
  if (limits.messages == 0) raise(status::invalid_argument, "a mailbox: expected room for 1 message or more, found 0");
}

GRADUS_BODY mailbox::~mailbox() {
  for (const auto& f : frames_)
    if (f->memory != nullptr) ::operator delete(f->memory, std::align_val_t{wire_alignment});
}

// Spins first: the mutex is held for a few tens of nanoseconds, and a thread that parks for that needs a thousand times
// as long.
GRADUS_BODY std::unique_lock<std::mutex> mailbox::lock() const {
  std::unique_lock held(mutex_, std::try_to_lock);
  for (int i = 0; i < 100 && !held.owns_lock(); ++i) {
    relax();
    held.try_lock();
  }
  if (!held.owns_lock()) held.lock();
  return held;
}

GRADUS_BODY void mailbox::fill(frame& to, const protocol_message& m, bool lent, bool copies) {
  std::byte* at = to.memory != nullptr ? to.memory : to.small;
  auto* const slices = reinterpret_cast<wire_slice*>(at + (copies ? mailboxes::value_bytes(m) : 0));
  auto* const ids = reinterpret_cast<contribution_id*>(slices + m.parts.size());
  auto* names = reinterpret_cast<char*>(ids + m.ids.size());
  for (std::size_t i = 0; i < m.parts.size(); ++i) {
    wire_slice s = m.parts[i];
    if (!s.name.empty()) std::memcpy(names, s.name.data(), s.name.size());
    s.name = {names, s.name.size()};
    names += s.name.size();
    if (copies) {
      if (!s.bytes.empty()) std::memcpy(at, s.bytes.data(), s.bytes.size());
      s.bytes = {at, s.bytes.size()};
      at += mailboxes::aligned(s.bytes.size());
    }
    new (slices + i) wire_slice(s);
  }
  for (std::size_t i = 0; i < m.ids.size(); ++i) new (ids + i) contribution_id(m.ids[i]);
  to.message = m;
  to.message.is_lent = lent;
  to.message.parts = {slices, m.parts.size()}, to.message.ids = {ids, m.ids.size()};
}

// Returns a frame with room for `needed` bytes; null if there is none, and no memory for one. Called under the mutex.
GRADUS_BODY mailbox::frame* mailbox::take_free(std::size_t needed) {
  if (needed <= frame::small_bytes) {
    if (free_ == nullptr) {
      frames_.push_back(std::make_unique<frame>());
      ++counts_.allocations;
      return frames_.back().get();
    }
    return std::exchange(free_, free_->next);
  }
  // Takes the smallest that is large enough, else the largest, which grows; the others stay as they are for messages of
  // their size.
  auto best = free_large_.end();
  for (auto f = free_large_.begin(); f != free_large_.end(); ++f) {
    if (best == free_large_.end()) {
      best = f;
      continue;
    }
    const std::size_t a = (*f)->capacity, b = (*best)->capacity;
    if (a >= needed ? (b < needed || a < b) : (b < needed && a > b)) best = f;
  }
  if (best == free_large_.end()) {
    frames_.push_back(std::make_unique<frame>());
    free_large_.reserve(frames_.size());  // so that giving one back does not fail
    return frames_.back().get();
  }
  frame* const f = *best;
  *best = free_large_.back();
  free_large_.pop_back();
  return f;
}
GRADUS_BODY void mailbox::give_free(frame* one) {
  one->message.keeper.reset();
  if (one->memory != nullptr || one->capacity == 0)
    free_large_.push_back(one);
  else
    one->next = std::exchange(free_, one);
}

// Returns false if there is no memory for it.
GRADUS_BODY bool mailbox::make_room(frame& one, std::size_t needed) {
  if (needed <= one.capacity) return true;
  if (one.memory != nullptr) ::operator delete(one.memory, std::align_val_t{wire_alignment});
  one.memory = nullptr, one.capacity = 0;
  one.memory = static_cast<std::byte*>(::operator new(needed, std::align_val_t{wire_alignment}, std::nothrow));
  if (one.memory != nullptr) one.capacity = needed;
  return one.memory != nullptr;
}

GRADUS_BODY void mailbox::put(const protocol_message& m, bool lent) {
  const bool copies = !lent && m.keeper == nullptr;
  const std::size_t values = lent ? 0 : mailboxes::value_bytes(m);
  const std::size_t needed = (copies ? values : 0) + mailboxes::table_bytes(m);
  std::unique_lock held = lock();
  const std::uint64_t counted = needed > frame::small_bytes || !copies ? values : 0;
  const bool is_beyond =
      messages_ >= limits_.messages || (bytes_ != 0 && counted > limits_.bytes - std::min(bytes_, limits_.bytes));
  if (is_closed_ || (is_beyond && m.from != m.to)) {
    ++counts_.dropped;
    return;
  }
  frame* const one = take_free(needed);
  one->is_lent = lent, one->bytes = counted;
  ++messages_, bytes_ += counted;
  if (needed > mailboxes::copied_at_once) {
    const bool grows = needed > one->capacity;
    held.unlock();
    const bool has_room = make_room(*one, needed);
    if (has_room) fill(*one, m, lent, copies);
    held.lock();
    if (grows) ++counts_.allocations;
    if (!has_room || is_closed_) {
      ++counts_.dropped;
      --messages_, bytes_ -= counted;
      return give_free(one);
    }
  } else {
    fill(*one, m, lent, copies);
  }
  append(one);
  tell(held);
}
GRADUS_BODY void mailbox::append(frame* one) {
  one->next = nullptr;
  if (last_ != nullptr)
    last_->next = one;
  else
    first_ = one;
  last_ = one;
}
// Called under the mutex, which it unlocks, so that the woken thread can lock it at once.
GRADUS_BODY void mailbox::tell(std::unique_lock<std::mutex>& held) {
  news_.store(true, std::memory_order_release);
  const bool parked = std::exchange(is_parked_, false);
  held.unlock();
  if (parked) came_.notify_one();
}

GRADUS_BODY mailbox::frame* mailbox::next(nanos until) {
  const auto has_news = [&] { return news_.load(std::memory_order_acquire); };
  // With a task driver, under which time is virtual or threads take turns, spinning is useless.
  bool may_look = tasks_.driver() == nullptr;
  for (;;) {
    if (may_look && !has_news() && until > nanos_now(tasks_)) look(wait_, crowded_, has_news);
    may_look = false;
    std::unique_lock held = lock();
    while (spent_ != nullptr) {
      frame* const behind = spent_->next;
      give_free(std::exchange(spent_, behind));
    }
    if (std::exchange(is_woken_, false)) {
      news_.store(first_ != nullptr || is_closed_, std::memory_order_relaxed);
      return nullptr;
    }
    if (frame* const one = first_; one != nullptr) {
      first_ = one->next;
      if (first_ == nullptr) last_ = nullptr;
      news_.store(first_ != nullptr || is_closed_, std::memory_order_relaxed);
      if (one->is_lent) at_hand_ = one;
      ++counts_.taken, --messages_;
      return one;
    }
    if (is_closed_) return nullptr;
    news_.store(false, std::memory_order_relaxed);
    if (until == never_due) {
      is_parked_ = true;
      came_.wait(held);
    } else {
      const nanos now = nanos_now(tasks_);
      if (until <= now) return nullptr;
      is_parked_ = true;
      came_.wait_for(held, (static_cast<double>(until) - static_cast<double>(now)) / 1e9);
    }
    is_parked_ = false;
  }
}
GRADUS_BODY void mailbox::handled(frame* one) {
  one->message.keeper.reset();  // which may free much memory, so not under the mutex
  if (!one->is_lent && one->memory == nullptr && one->bytes == 0) {
    one->next = std::exchange(spent_, one);
    return;
  }
  bool is_waited_for = false;
  {
    const std::unique_lock held = lock();
    if (at_hand_ == one) at_hand_ = nullptr, is_waited_for = withdrawing_ != 0;
    bytes_ -= one->bytes;
    give_free(one);
  }
  if (is_waited_for) was_handled_.notify_all();
}

GRADUS_BODY void mailbox::withdraw(std::uint32_t from) {
  std::unique_lock held = lock();
  frame* before = nullptr;
  for (frame* one = first_; one != nullptr;) {
    frame* const behind = one->next;
    if (one->is_lent && one->message.from == from) {
      (before != nullptr ? before->next : first_) = behind;
      if (last_ == one) last_ = before;
      ++counts_.withdrawn;
      --messages_, bytes_ -= one->bytes;
      give_free(one);
    } else {
      before = one;
    }
    one = behind;
  }
  ++withdrawing_;
  // Waits until the handled message is not of this sender. It is not enough that another message is handled than now:
  // it may be the sender's next one, if it goes on putting messages.
  was_handled_.wait(held, [&] { return at_hand_ == nullptr || at_hand_->message.from != from; });
  if (is_borrowed(from)) {
    wanted_.push_back(from);
    any_wanted_.store(true, std::memory_order_release);
    is_woken_ = true;
    tell(held);
    held = lock();
    was_handled_.wait(held, [&] { return !is_borrowed(from); });
  }
  --withdrawing_;
}
GRADUS_BODY void mailbox::part_with(std::uint32_t from) {
  std::unique_lock held = lock();
  frame* before = nullptr;
  for (frame* one = first_; one != nullptr;) {
    frame* const behind = one->next;
    if (!one->is_lent || one->message.from != from) {
      before = std::exchange(one, behind);
      continue;
    }
    frame* const copy = copy_of(*one);
    frame*& link = before != nullptr ? before->next : first_;
    if (copy != nullptr) {
      link = copy, copy->next = behind, before = copy;
      if (last_ == one) last_ = copy;
    } else {  // lost, as by a network
      link = behind;
      if (last_ == one) last_ = before;
      ++counts_.dropped, --messages_;
    }
    bytes_ -= one->bytes;
    give_free(one);
    one = behind;
  }
  ++withdrawing_;
  was_handled_.wait(held, [&] { return at_hand_ == nullptr || at_hand_->message.from != from; });
  --withdrawing_;
}
// Returns null if there is no memory for it. Called under the mutex.
GRADUS_BODY mailbox::frame* mailbox::copy_of(const frame& lent) {
  const protocol_message& m = lent.message;
  const std::size_t values = mailboxes::value_bytes(m), needed = values + mailboxes::table_bytes(m);
  frame* const copy = take_free(needed);
  if (!make_room(*copy, needed)) return give_free(copy), nullptr;
  copy->is_lent = false, copy->bytes = needed > frame::small_bytes ? values : 0;
  bytes_ += copy->bytes;
  fill(*copy, m, false, true);
  return copy;
}
GRADUS_BODY void mailbox::borrow(std::uint32_t from) {
  const std::unique_lock held = lock();
  if (borrowed_.size() <= from) borrowed_.resize(from + std::size_t{1});
  ++borrowed_[from];
}
GRADUS_BODY void mailbox::give_back(std::uint32_t to) {
  std::unique_lock held = lock();
  if (!is_borrowed(to)) return;
  const bool is_waited_for = --borrowed_[to] == 0 && withdrawing_ != 0;
  held.unlock();
  if (is_waited_for) was_handled_.notify_all();
}
GRADUS_BODY bool mailbox::is_wanted_back(std::uint32_t& from) {
  if (!any_wanted_.load(std::memory_order_acquire)) return false;
  const std::unique_lock held = lock();
  from = wanted_.back();
  wanted_.pop_back();
  any_wanted_.store(!wanted_.empty(), std::memory_order_relaxed);
  return true;
}
GRADUS_BODY void mailbox::retire() {
  std::unique_lock held = lock();
  borrowed_.clear();
  held.unlock();
  was_handled_.notify_all();
}
GRADUS_BODY void mailbox::wake() {
  std::unique_lock held = lock();
  is_woken_ = true;
  tell(held);
}
GRADUS_BODY void mailbox::close() {
  std::unique_lock held = lock();
  is_closed_ = true;
  tell(held);
}
GRADUS_BODY bool mailbox::is_closed() const {
  const std::unique_lock held = lock();
  return is_closed_;
}
GRADUS_BODY mailbox_counts mailbox::counts() const {
  const std::unique_lock held = lock();
  return counts_;
}

}  // namespace gradus::detail
