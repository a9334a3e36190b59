// In the network of a simulated cluster (simulated.hpp) messages travel as the bytes of the wire, in virtual time, and
// are lost, doubled, delayed and cut off by drawn numbers; nodes stop, and crash and are started again.
//
// A node is a process, and has a number that counts its starts. A parameter server that is started again is another
// process, and has lost what it held unless its program has a log. A task that meets the new process has met the old
// one before, so it ends, as over a network (remote_network.hpp), and is started again too: all go on from the last
// checkpoint. Tasks learn this at different times, so new processes meet those that do not know it yet.
//
// Time, links and machines are those of simulated_links.hpp: the network's thread puts due messages into mailboxes, and
// makes the planned faults.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "message_network.hpp"
#include "offered_program.hpp"
#include "simulated_links.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class simulated_network final : public message_network,
                                public task_network,
                                public simulated_links,
                                public std::enable_shared_from_this<simulated_network> {
public:
  simulated_network(const cluster_shape& shape, const std::shared_ptr<turn_driver>& driver, std::uint64_t seed,
                    const simulated_faults& faults, std::vector<std::string>* log);

  // ---- task_network
  message_network& messages() override { return *this; }
  void offer(shard_program program, const std::string& task) override;
  void serve(std::uint32_t shard) override;

  // ---- message_network. Members and patience are the protocol's own.
  mailbox& inbox(std::uint32_t node) override { return *nodes_[node].box; }
  void post(const protocol_message& m) override;
  void withdraw(std::uint32_t) override {}  // nothing is lent: messages are copied
  std::size_t piece_bytes() const override { return 1; }
  void end() override;
  void check(const std::string& waited) const override;
  membership_options members(nanos) override { return {}; }
  worker_options patience(worker_options o) const override { return o; }

  // ---- calls of the cluster around it
  bool run_once(const server_def& def, std::uint32_t node, const std::function<void(server& here)>& program) override;
  bool revive(std::uint32_t node) override;
  void end_of_workers() override { end(); }
  // A worker's program has ended without an error; it leaves, if it has not left, and waits for the cluster's end.
  // Returns false if the cluster was lost before all had left: then the task is to be started again.
  bool wait_for_end(std::uint64_t worker);
  // Returns whether the process of the node has crashed, or has ended because its cluster was lost.
  bool has_crashed(std::uint32_t node) const { return nodes_[node].is_gone(); }
  // A program has raised this error. Returns whether it is one of a cluster in which not all tasks know yet that it was
  // lost: then the task ends by it, and is to be started again.
  bool ends_by(const error& e, std::uint32_t node);

private:
  struct node_state {
    std::unique_ptr<mailbox> box;
    bool is_down = false, is_lost = false, serves = false, has_said_leave = false, has_heard_left = false;
    std::string why = {};  // it is lost
    nanos up_at = 0;
    nanos outage = 0;                             // of the crash that is to come after so many messages
    std::uint32_t messages_left = 0;              // 0: none is to come
    std::uint64_t process = 1;                    // the number of its starts
    std::vector<std::uint64_t> met = {};          // by shard: the process that it knows; 0: none
    std::uint64_t joined = 0;                     // the incarnation of the last join
    std::uint64_t incarnation = 0, sequence = 0;  // of the last push

    bool is_gone() const { return is_down || is_lost; }
  };

  std::vector<node_state> nodes_;
  offered_program program_;
  message_frames frames_{wire_limits::of_this_process()};
  std::uint64_t decided_ = 0;  // the last update of which a decision was sent

  // The nodes of a message, and their processes when it was sent.
  struct route {
    std::uint32_t from = 0, to = 0;
    std::uint64_t process = 0, to_process = 0;
  };
  route between_nodes(std::uint32_t from, std::uint32_t to) const {
    return {from, to, nodes_[from].process, nodes_[to].process};
  }
  const node_state* state_here() const { return here() < nodes_.size() ? &nodes_[here()] : nullptr; }
  void deliver(const std::vector<std::byte>& frame, const route& r);
  bool meet(std::uint32_t a, std::uint32_t b);
  bool sees_another(std::uint32_t node, std::uint32_t shard);
  void lose(std::uint32_t node, const std::string& why);
  bool connects(std::uint32_t from, std::uint32_t to) const;
  void connect(const route& r);
  void say_leave(std::uint32_t node);
  void crash_one(nanos length);
  void crash_ps(nanos length);
  void crash(std::uint32_t node, nanos length);
  void ended() override;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "simulated_network.ipp"
#endif
