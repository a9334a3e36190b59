// In the network of a simulated cluster (simulated.hpp) messages travel as the bytes of the wire, in virtual time, and
// are lost, doubled, delayed and cut off by drawn numbers; nodes stop, and crash and are started again.
//
// A node is a process, and has a number that counts its starts. A parameter server that is started again is another
// process, and has lost what it held unless its program has a log. A task that meets the new process has met the old
// one before, so it ends, as over a network (remote_network.hpp), and is started again too: all go on from the last
// checkpoint. Tasks learn this at different times, so new processes meet those that do not know it yet.
//
// The thread that calls `carry` is the network: it puts due messages into mailboxes, and makes the planned faults.
// Other threads only draw numbers, and record when something is due. Everything runs by turns (turns.hpp).
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "message_network.hpp"
#include "offered_program.hpp"
#include "simulated_faults.hpp"
#include "task_crew.hpp"
#include "task_network.hpp"
#include "turns.hpp"

namespace gradus::inline GRADUS_BUILD {

// This exception ends a simulated task that crashes: it is thrown where the task's program waits for its cluster. It is
// not one of the library's errors, so that a program which handles those does not survive by that. A program that
// catches all exceptions may catch it, and should rethrow it; if it goes on instead, its task is started again anyway.
struct simulated_crash {
  std::string task;
};

namespace detail {

class simulated_network final : public message_network, public task_network {
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
  // The running task is this node from now on.
  void arrive(std::uint32_t node) { driver_->move_to(nodes_[node].machine); }
  void fail(const std::exception_ptr& error, const std::string& task);
  // A worker's program has ended without an error; it leaves, if it has not left, and waits for the cluster's end.
  // Returns false if the cluster was lost before all had left: then the task is to be started again.
  bool wait_for_end(std::uint64_t worker);
  // Returns whether the process of the node has crashed, or has ended because its cluster was lost.
  bool has_crashed(std::uint32_t node) const { return nodes_[node].is_gone(); }
  // A program has raised this error. Returns whether it is one of a cluster in which not all tasks know yet that it was
  // lost: then the task ends by it, and is to be started again.
  bool ends_by(const error& e, std::uint32_t node);
  // Waits until the node's machine is up again. Returns false if its cluster has ended meanwhile.
  bool revive(std::uint32_t node);
  // Runs until `stop`.
  void carry();
  void stop();

  std::string name_of(std::uint32_t node) const;
  simulated_counts counts() const { return counts_; }
  std::uint64_t hash() const { return hash_; }
  // Returns the error that nothing went on or that time was over; null if there was none.
  const std::exception_ptr& why_stuck() const { return why_stuck_; }
  void log(const std::string& what);

private:
  struct node_state {
    std::unique_ptr<mailbox> box;
    std::size_t machine = 0;
    double slowness = 1;
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

  std::shared_ptr<turn_driver> driver_;
  simulated_faults faults_;
  random_stream dice_;
  std::vector<node_state> nodes_;
  offered_program program_;
  message_frames frames_{wire_limits::of_this_process()};
  mutable std::mutex mutex_;
  task_condition changed_, is_over_;
  std::multimap<nanos, std::function<void()>> due_;  // the actions of the network, by right time
  bool is_stopped_ = false, has_ended_ = false;
  std::string why_;  // empty: it has ended without an error
  std::exception_ptr why_stuck_;
  std::vector<bool> is_cut_off_;
  nanos cut_until_ = at_once;
  std::uint64_t decided_ = 0;  // the last update of which a decision was sent
  simulated_counts counts_;
  std::uint64_t hash_ = 0xCBF29CE484222325u;
  std::vector<std::string>* lines_;

  bool chance(double p) { return p > 0 && dice_.uniform() < p; }
  nanos between(double least_secs, double most_secs);
  void at(nanos time, std::function<void()> what);
  void plan();
  void reset_clock(node_state& n);
  // The nodes of a message, and their processes when it was sent.
  struct route {
    std::uint32_t from = 0, to = 0;
    std::uint64_t process = 0, to_process = 0;
  };
  route between_nodes(std::uint32_t from, std::uint32_t to) const {
    return {from, to, nodes_[from].process, nodes_[to].process};
  }
  const node_state* here() const;
  bool is_cut(std::uint32_t a, std::uint32_t b) const {
    return driver_->time() < cut_until_ && is_cut_off_[a] != is_cut_off_[b];
  }
  void deliver(const std::vector<std::byte>& frame, const route& r);
  bool meet(std::uint32_t a, std::uint32_t b);
  bool sees_another(std::uint32_t node, std::uint32_t shard);
  void lose(std::uint32_t node, const std::string& why);
  bool connects(std::uint32_t from, std::uint32_t to) const;
  void connect(const route& r);
  void say_leave(std::uint32_t node);
  void cut(nanos length);
  void stop_one(nanos length);
  void crash_one(nanos length);
  void crash_ps(nanos length);
  void crash(std::uint32_t node, nanos length);
  void close(const std::string& why);
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "simulated_network.ipp"
#endif
