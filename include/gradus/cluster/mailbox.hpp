// What the nodes of a cluster in one process hand messages to each other by: any thread puts, the node's own takes.
//
//   gradus::detail::mailbox box(tasks);
//   box.put(message);                                       // copied; put_lent: the bytes of its parts are not
//   while (box.take([&](const protocol_message& m) { ... }, until)) ...
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "../base/tasks.hpp"
#include "../tensor/tensor.hpp"
#include "protocol/message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// On the clock of these tasks.
nanos nanos_now(const task_system& tasks);

struct mailbox_limits {
  std::size_t messages = 1 << 14;
  std::size_t bytes = std::size_t{1} << 32;  // of copies that wait
};

// Messages of one sender come in the order in which they were put. What would go beyond the limits is dropped and
// counted, as a network drops it: whoever waits for an answer says its message again.
class mailbox {
public:
  explicit mailbox(const task_system& tasks, mailbox_limits limits = {}) : tasks_(tasks), limits_(limits), changed_(tasks) {}

  // Copies the message, outside the lock, into memory that is used again.
  void put(const protocol_message& m) { put(m, false); }
  // The same without the bytes of the parts: the sender leaves them alone until this message was handled, or withdraw()
  // has returned.
  void put_lent(const protocol_message& m) { put(m, true); }
  // Drops what `from` has lent and nobody has taken yet, and waits while one of its messages is being handled.
  void withdraw(std::uint32_t from);

  // Calls f(const protocol_message&) with the next message, outside the lock; what it shows is good during the call.
  // Waits for one until this time (never_due: for ever). False: the time came, or the box is closed and empty.
  template <class F>
  bool take(F f, nanos until) {
    std::unique_ptr<letter> l = next(until);
    if (l == nullptr) return false;
    const struct handled {
      mailbox* box;
      std::unique_ptr<letter>* one;
      ~handled() { box->done(std::move(*one)); }
    } after{this, &l};
    f(static_cast<const protocol_message&>(l->message));
    return true;
  }
  // What is put later is dropped; what is there can be taken.
  void close();
  bool is_closed() const;
  std::uint64_t dropped() const;

private:
  struct letter {
    protocol_message message;
    bool lent = false;
    std::vector<contribution_id> ids;
    std::vector<wire_slice> parts;
    aligned_buffer memory;
    std::size_t bytes = 0;  // that are used of it
  };
  task_system tasks_;
  mailbox_limits limits_;
  mutable std::mutex mutex_;
  task_condition changed_;
  std::deque<std::unique_ptr<letter>> waiting_;
  std::vector<std::unique_ptr<letter>> free_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::int64_t lender_ = -1;  // whose lent message is being handled
  bool closed_ = false;

  void put(const protocol_message& m, bool lent);
  static void fill(letter& l, const protocol_message& m, bool lent);
  std::unique_ptr<letter> next(nanos until);
  void done(std::unique_ptr<letter> l);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "mailbox.ipp"
#endif
