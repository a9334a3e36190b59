// The nodes of a cluster in one process pass messages through mailboxes: each node has one, into which any thread puts
// messages and from which one thread takes them.
//
//   gradus::detail::mailbox box(tasks);
//   box.put(message);                                          // copied
//   box.put_lent(push);                                        // the bytes of its parts are read where they lie
//   while (box.take([&](const protocol_message& m) { shard.receive(m, now); }, shard.next())) ...
//   box.withdraw(me);                                          // from now on the lent memory may be written again
//
// If the taker calls `borrow`, memory that a message has lent may be read after the message was handled, until the
// taker calls `give_back`. A sender that needs the memory before that calls `withdraw`, and the taker sees the request:
//
//   for (std::uint32_t node; box.is_wanted_back(node);) shard.give_back(node);      // whenever take has returned
//   box.retire();                                              // the taker has ended, and reads nothing any more
//
// The taker spins for a while before it parks, since a thread that parks needs tens of microseconds to wake. A putter
// never waits: a mailbox is bounded, and messages beyond its limits are lost, and counted. That is safe, since the
// protocol expects that any message may be lost, and repeats those without an answer; and a sender that waited for
// room could wait for a node that waits for the sender. A node's messages to itself are never lost, since no network
// loses those either; there are no more of them than a machine sends at once. A sender's messages come in the order in
// which it has put them.
#pragma once
#include "../base/build.hpp"

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

// Returns the monotonic time of tasks in nanoseconds, as the protocol's machines use it.
nanos nanos_now(const task_system& tasks);

// The limits of a mailbox. Bytes are those of large copies; a message is never too large if no other waits.
struct mailbox_limits {
  std::uint64_t bytes = std::uint64_t{4} << 30;
  std::size_t messages = 1 << 14;
};

// The counts of a mailbox.
struct mailbox_counts {
  std::uint64_t taken = 0, dropped = 0, withdrawn = 0;
  std::uint64_t allocations = 0;  // of memory for messages
};

class mailbox {
public:
  // `crowded` is true if more threads work in this process than it has processors; then a spinning taker soon yields to
  // them.
  explicit mailbox(const task_system& tasks, waiting wait = {}, mailbox_limits limits = {}, bool crowded = false);
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox();

  // Copies the message (ids, names, bytes; each slice begins at a multiple of 64 bytes) into memory that is used again:
  // it allocates nothing once there were as many and as large messages before. The bytes are not copied if the message
  // has a keeper.
  void put(const protocol_message& m) { put(m, false); }
  // The same without copying the bytes of the parts: the sender must not change them until the message was taken and
  // handled, or `withdraw` has returned.
  void put_lent(const protocol_message& m) { put(m, true); }
  // Drops messages that node `from` has lent and that are not taken yet, and waits while one of its lent messages is
  // being handled or borrowed. It must not be called while handling one.
  void withdraw(std::uint32_t from);
  // The same, but messages that are not taken yet are copied and stay. None of them is borrowed.
  void part_with(std::uint32_t from);
  // The taker calls these.
  void borrow(std::uint32_t from);
  void give_back(std::uint32_t to);
  bool is_wanted_back(std::uint32_t& from);
  void retire();
  // Waits for the next message, up to `until` on the tasks' monotonic clock (never_due: for ever), and calls
  // f(const protocol_message&) with it. What the message points to is valid during the call; f may put messages.
  // Returns false if `until` has come, if a thread called wake, or if the mailbox is closed and empty. Only one thread
  // takes.
  template <class F>
  bool take(F f, nanos until) {
    frame* const one = next(until);
    if (one == nullptr) return false;
    const handling here{this, one};
    f(std::as_const(one->message));
    return true;
  }
  // Makes take() return false once, before any message, so that the taker checks its other state.
  void wake();
  // Closes the mailbox and wakes the taker. Messages that are put from now on are dropped; those in it can still be
  // taken.
  void close();

  bool is_closed() const;
  mailbox_counts counts() const;

private:
  // A message that fits into `small` needs no other memory.
  struct frame {
    static constexpr std::size_t small_bytes = 448;
    alignas(wire_alignment) std::byte small[small_bytes];
    protocol_message message;
    frame* next = nullptr;
    std::uint64_t bytes = 0;  // counted against the limit
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
  std::atomic<bool> news_{false};  // there is something to check under the mutex
  mutable std::mutex mutex_;
  task_condition came_, was_handled_;
  frame *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
  std::vector<frame*> free_large_;
  std::vector<std::unique_ptr<frame>> frames_;
  std::uint64_t bytes_ = 0;         // of copies that are being put, wait, or are being handled
  std::size_t messages_ = 0;        // number of those that are being put or wait
  const frame* at_hand_ = nullptr;  // the lent message that is being handled
  frame* spent_ = nullptr;          // small messages that were handled; the taker keeps them until it takes again
  bool is_parked_ = false, is_woken_ = false, is_closed_ = false;
  std::uint32_t withdrawing_ = 0;        // number of senders that wait for lent memory
  std::vector<std::uint32_t> borrowed_;  // by node: number of its messages that are borrowed
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
  static void fill(frame& to, const protocol_message& m, bool lent, bool copies);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "mailbox.ipp"
#endif
