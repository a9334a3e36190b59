// The network of a run that is repeated from its logs (replay.hpp). The machines of the protocol are those of every
// run; the network delivers messages at the times that give the logged run.
//
// Two kinds of messages decide the result of a run whose updates depend on the order of arrival, and the network alone
// decides when they arrive. A push is delivered to the shards when its update in the log is the next one, so updates
// have the logged order. A worker computes from the values of the logged order: values of another order that a shard
// sends are lost, and once the shard is at the logged order, the network asks for them in the worker's place. So no
// update is made before all workers that were given values of the present one have them. A gradient that is in no
// logged update came too late in the logged run; the decider gets it as one of another step, and drops it.
//
// If the numbers of a worker's gradients begin again in the log, its process had ended and was started again, so its
// program is called anew. If the chief's numbers begin again, the program is not called anew, since it would read other
// checkpoints than it did then; or the program trains once more, and all workers do that by themselves.
//
// Tokens of workers that have nothing more in the log wait for its end. Then a push of theirs is answered as one for
// which a synchronous round cannot be filled any more: it is over, and their programs end as they do then; the chief
// saves.
//
// The thread that calls `carry` does all that. Tasks run by turns in virtual time (turns.hpp), so when this thread gets
// its turn after a sleep, all others wait for something.
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "message_network.hpp"
#include "offered_program.hpp"
#include "replay_plan.hpp"
#include "task_network.hpp"
#include "turns.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// This exception ends the program of a worker whose process ended in the logged run. It is thrown where the program
// waits for its cluster; then the program is called anew. It is not one of the library's errors.
struct logged_restart {
  std::uint64_t worker;
};

class replay_network final : public message_network, public task_network {
public:
  // Repeats up to update `until`, which is in the plan, or is the one before its first.
  replay_network(std::shared_ptr<const replay_plan> plan, std::uint64_t until,
                 const std::shared_ptr<turn_driver>& driver);

  // ---- task_network
  message_network& messages() override { return *this; }
  void offer(shard_program program, const std::string& task) override { program_.offer(std::move(program), task); }
  void serve(std::uint32_t shard) override { program_.serve(*this, shard); }

  // ---- message_network. No task is taken for dead because it is silent; `why_stuck` reports tasks that do not go on.
  mailbox& inbox(std::uint32_t node) override { return *boxes_[node]; }
  void post(const protocol_message& m) override;
  void withdraw(std::uint32_t) override {}  // nothing is lent: what is sent was copied
  bool repeats(const cluster_fingerprint& of, decider_options& decides, std::uint32_t shard) override;
  bool is_replay() const override { return true; }
  void end() override { close({}); }
  void check(const std::string& waited) const override;
  membership_options members(nanos transit) override;
  worker_options patience(worker_options o) const override;

  // ---- calls of the cluster around it
  void fail(const std::exception_ptr& error, const std::string& task);
  // A worker's program has ended without an error; it leaves, if it has not left.
  void depart(std::uint64_t worker);
  // The running task is this worker from now on.
  void arrive(std::uint64_t worker) { driver_->move_to(seats_[static_cast<std::size_t>(worker)].machine); }
  // is_down returns true if the worker's process ended here in the logged run; revive then lets it go on, and returns
  // false if the replay has ended meanwhile.
  bool is_down(std::uint64_t worker) const { return seats_[static_cast<std::size_t>(worker)].is_down; }
  bool revive(std::uint64_t worker);
  // Runs until `stop`.
  void carry();
  void stop();
  // Returns the number of updates that were made.
  std::uint64_t order() const { return order_; }
  // Returns the reason why the run does not repeat the logged one; null if it does.
  const std::exception_ptr& why_stuck() const { return why_stuck_; }

private:
  // This says what happens to a worker's push.
  enum class fates : std::uint8_t { none, logged, dropped, behind_the_end };
  struct seat {
    replay_plan::place next = {}, pushed = {};  // its next contribution in the log; that of the push that is here
    bool has_next = false;                      // there is a next contribution
    std::uint64_t incarnation = 0, sequence = 0, number = 0;  // of its last push, if there was one
    bool has_token = false, token_waits = false, is_down = false;
    std::size_t machine = 0;
    fates fate = fates::none;
    std::vector<std::vector<std::byte>> frames = {};  // the push, by shard, until it is delivered
    std::uint32_t frames_here = 0;
    std::vector<bool> served = {}, asked = {};  // by shard: the values of its next contribution were sent, requested
  };

  std::shared_ptr<const replay_plan> plan_;
  std::uint64_t until_, order_;
  std::shared_ptr<turn_driver> driver_;
  std::vector<std::unique_ptr<mailbox>> boxes_;
  offered_program program_;
  message_frames frames_{wire_limits::of_this_process()};
  mutable std::mutex mutex_;
  task_condition changed_;
  std::vector<seat> seats_;
  std::vector<std::uint64_t> applied_;  // by shard
  bool chief_began_anew_ = false;
  bool by_rounds_ = false, has_started_ = false, is_ending_ = false, is_stopped_ = false, has_ended_ = false;
  std::string why_;  // empty: it has ended without an error
  std::exception_ptr why_stuck_;
  nanos progress_ = 0;  // the time of the last progress

  bool is_logged_next(const seat& s) const;
  bool is_worker(std::uint32_t node) const { return shape_.is_worker(node); }
  seat& seat_of(std::uint32_t node) { return seats_[static_cast<std::size_t>(shape_.worker_of(node))]; }
  void from_worker(const protocol_message& m);
  void to_worker(const protocol_message& m);
  void push(seat& s, const protocol_message& m);
  void forget_push(seat& s);
  bool begins_anew(std::uint64_t worker, replay_plan::place p) const;
  bool is_anew(const seat& s) const;
  void end_process(std::uint64_t worker, seat& s);
  void deliver(const protocol_message& m) { boxes_[m.to]->put(m); }
  void deliver_push(seat& s, bool as_stale);
  void say_over(std::uint64_t worker, seat& s);
  void ask_for_token(std::uint64_t worker, seat& s);
  bool tell_values(std::uint64_t worker, seat& s);
  bool may_advance() const;
  bool go_on();
  bool go_on_with(std::uint64_t worker, seat& s);
  std::string waits() const;
  void stuck(const std::exception_ptr& why);
  [[noreturn]] void differs(const std::string& what) const;
  void close(const std::string& why);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "replay_network.ipp"
#endif
