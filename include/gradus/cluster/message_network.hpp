// message_network is the interface by which the drivers of shards and workers pass messages between the nodes of a
// cluster: threads of one process (node_driver.hpp), a network, or a simulation.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>

#include "hello.hpp"
#include "mailbox.hpp"
#include "protocol/staleness.hpp"
#include "protocol/worker.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns whether messages of this kind are lent: their parts are large, and their sender does not change them until
// they are read, so they are read where they lie.
constexpr bool is_lent(message_kind k) {
  return k == message_kind::push || k == message_kind::begin || k == message_kind::pulled || k == message_kind::fetched;
}

class message_network {
public:
  message_network(const cluster_shape& shape, const task_system& tasks) : shape_(shape), tasks_(tasks) {}
  message_network(const message_network&) = delete;
  message_network& operator=(const message_network&) = delete;
  virtual ~message_network() = default;

  const cluster_shape& shape() const { return shape_; }
  const task_system& tasks() const { return tasks_; }
  nanos now() const { return nanos_now(tasks_); }

  // Returns the mailbox of a node that runs here.
  virtual mailbox& inbox(std::uint32_t node) = 0;
  // Sends the message to the node m.to, or loses it. Either the bytes of its parts are copied, or the sender withdraws
  // the message before it changes them.
  virtual void post(const protocol_message& m) = 0;
  virtual void withdraw(std::uint32_t from) = 0;
  // The same for a sender whose messages must not be lost by it: messages that are not read yet are copied.
  virtual void part_with(std::uint32_t) {}
  // Returns the number of bytes from which on pieces of a gradient are sent while the rest is computed; 0 means never.
  // Between threads, parts are read where they lie, and the copy of a piece would be useless; on a network, a small
  // model pays for messages, not for bytes, and sends one message.
  virtual std::size_t piece_bytes() const { return 0; }
  // Ends the cluster: every wait here ends.
  virtual void end() = 0;
  // Raises `aborted` if the cluster has ended; `waited` names what the caller has waited for, as the end of a sentence.
  virtual void check(const std::string& waited) const = 0;
  // Returns whether a parameter server that begins again does so with new processes of all workers, so that workers
  // that had left may join again.
  virtual bool workers_begin_anew() const { return false; }
  // Returns true if the cluster has ended without an error, and this process has not taken part: its task had done its
  // part before it was started again.
  virtual bool is_over() const { return false; }
  // Returns true if the run is repeated (replay_network.hpp). Its order is known then: nothing is logged, and `decides`
  // is set to what a replay needs. Raises failed_precondition for a parameter server of another run than the one that
  // is repeated.
  virtual bool repeats(const cluster_fingerprint& /*of*/, decider_options& /*decides*/, std::uint32_t /*shard*/) {
    return false;
  }
  virtual bool is_replay() const { return false; }
  // Returns a number of the process of a node, which distinguishes two processes that claim the same incarnation.
  virtual std::uint64_t process_of(std::uint32_t node) const { return 1 + node; }
  // Reports a wait that takes long; it goes on.
  virtual void report(const std::string& /*wait*/) {}
  // Return the time that a worker may be silent, and the intervals of its messages and heartbeats. `transit` is the
  // time that a heartbeat may wait behind other messages.
  virtual membership_options members(nanos transit) = 0;
  virtual worker_options patience(worker_options o) const = 0;

protected:
  cluster_shape shape_;
  task_system tasks_;
};

}  // namespace gradus::detail
