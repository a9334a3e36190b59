// The nodes of a cluster in one process pass messages through mailboxes: each has one, into which any thread puts and
// from which one takes.
//
//   gradus::detail::mailbox box(tasks);
//   box.put(message);                                          // copied
//   box.put_lent(push);                                        // the bytes of its parts are read where they lie
//   while (box.take([&](const protocol_message& m) { shard.receive(m, now); }, shard.next())) ...
//   box.withdraw(me);                                          // now what was lent may be written again
//
// Memory that a message has lent may be read after it was handled, if the taker calls `borrow`, until it calls
// `give_back`. A sender that wants it back before that calls `withdraw`, and the taker sees the request:
//
//   for (std::uint32_t node; box.is_wanted_back(node);) shard.give_back(node);      // whenever take has returned
//   box.retire();                                              // the taker has ended, and reads nothing any more
//
// The taker looks for a while before it parks, since a thread that parks needs tens of microseconds to wake. A putter
// never waits: a mailbox is bounded, and messages beyond its limits are lost, and counted. That is right here, for the
// protocol expects every message to be lost at times, and repeats those without an answer; a sender that waited for
// room could wait for one that waits for it. A node's messages to itself are never lost, which no network does either;
// there is no more of that than a machine says at once. A sender's messages come in the order in which it has put them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../base/tasks.hpp"
#include "../run/pool.hpp"
#include "protocol/message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the monotonic time of tasks, as machines have it.
nanos nanos_now(const task_system& tasks);

// The limits of a mailbox. Bytes are those of large copies; one that no other waits beside is never too large.
struct mailbox_limits {
  std::uint64_t bytes = std::uint64_t{4} << 30;
  std::size_t messages = 1 << 14;
};

// Its counts.
struct mailbox_counts {
  std::uint64_t taken = 0, dropped = 0, withdrawn = 0;
  std::uint64_t allocations = 0;  // of memory for messages
};

class mailbox {
public:
  // `crowded`: more threads work in this process than it has processors, so looking soon gives way to them.
  explicit mailbox(const task_system& tasks, waiting wait = {}, mailbox_limits limits = {}, bool crowded = false);
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox();

  // Copies the message (ids, names, bytes; each slice begins at a multiple of 64 bytes) into memory that is used again:
  // no allocation once messages have had their size and their number.
  void put(const protocol_message& m) { put(m, false); }
  // The same without copying the bytes of the parts: the sender leaves them alone until the message was taken and
  // handled, or `withdraw` has returned.
  void put_lent(const protocol_message& m) { put(m, true); }
  // Drops messages that node `from` has lent and that are not taken yet, and waits while one of its lent messages is
  // being handled or borrowed. It must not be called while handling one.
  void withdraw(std::uint32_t from);
  // The same, but messages not taken yet are copied. None of them is borrowed.
  void part_with(std::uint32_t from);
  // The taker calls these.
  void borrow(std::uint32_t from);
  void give_back(std::uint32_t to);
  bool is_wanted_back(std::uint32_t& from);
  void retire();
  // Waits for the next message, up to `until` on the tasks' monotonic clock (never_due: for ever), and calls f(const
  // protocol_message&) with it; what it shows is good during the call, in which anything may be put. False: the time
  // came, or a thread woke it, or it was closed and is empty. Only one thread takes.
  template <class F>
  bool take(F f, nanos until) {
    frame* const one = next(until);
    if (one == nullptr) return false;
    const handling here{this, one};
    f(std::as_const(one->message));
    return true;
  }
  // take() returns false once, before any message, so that its owner looks around.
  void wake();
  // Wakes the taker for good; puts after it are dropped. Messages in it can still be taken.
  void close();

  bool is_closed() const;
  mailbox_counts counts() const;

private:
  // A message that fits into `small` has no memory of its own.
  struct frame {
    static constexpr std::size_t small_bytes = 448;
    alignas(wire_alignment) std::byte small[small_bytes];
    protocol_message message;
    frame* next = nullptr;
    std::uint64_t bytes = 0;  // that count against the limit
    bool is_lent = false;
    std::byte* memory = nullptr;  // null: small
    std::size_t capacity = small_bytes;
  };
  struct handling {
    mailbox* of;
    frame* one;
    ~handling() { of->handled(one); }
  };

  task_system tasks_;
  waiting wait_;
  mailbox_limits limits_;
  bool crowded_;
  std::atomic<bool> news_{false};  // there is something to look at under the mutex
  mutable std::mutex mutex_;
  task_condition came_, was_handled_;
  frame *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
  std::vector<frame*> free_large_;
  std::vector<std::unique_ptr<frame>> frames_;
  std::uint64_t bytes_ = 0;         // of copies that come, wait, or are being handled
  std::size_t messages_ = 0;        // that come or wait
  const frame* at_hand_ = nullptr;  // a lent one that is being handled
  frame* spent_ = nullptr;          // small ones that were handled, the taker's own until it takes again
  bool is_parked_ = false, is_woken_ = false, is_closed_ = false;
  std::uint32_t withdrawing_ = 0;        // senders that wait for lent memory
  std::vector<std::uint32_t> borrowed_;  // by node: how many of its messages
  std::vector<std::uint32_t> wanted_;    // nodes that want back what is borrowed
  std::atomic<bool> any_wanted_{false};
  mailbox_counts counts_;

  std::unique_lock<std::mutex> lock() const;
  void put(const protocol_message& m, bool lent);
  frame* take_free(std::size_t needed);
  static bool make_room(frame& one, std::size_t needed);
  void give_free(frame* one);
  void append(frame* one);
  void tell(std::unique_lock<std::mutex>& held);
  frame* next(nanos until);
  void handled(frame* one);
  frame* copy_of(const frame& lent);
  bool is_borrowed(std::uint32_t from) const { return from < borrowed_.size() && borrowed_[from] != 0; }
  static void fill(frame& to, const protocol_message& m, bool lent);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "mailbox.ipp"
#endif
