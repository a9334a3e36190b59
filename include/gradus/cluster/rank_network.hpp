// A rank_network carries bytes between the workers of a run without parameter servers (cluster/all_reduce.hpp), as
// ranks from 0 on: threads of one process here, MPI in mpi.hpp.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/tasks.hpp"
#include "../run/pool.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The interface of one rank. Messages from one rank to another arrive in the order in which they were sent, each as
// long as the receiver expects. Only one thread may call it at a time. All functions that wait raise `aborted` if the
// cluster ends, with the reason of its end.
class rank_network {
public:
  virtual ~rank_network() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Announces whether this rank takes part in the next common step, waits for the others' answers, and returns whether
  // all do. A rank whose program has ended takes part in no further step.
  virtual bool all_take_part(bool this_one) = 0;

  // Starts to send a message or to receive one into memory, and returns a number. The memory must not be changed (when
  // sending) or used (when receiving) until wait(number) has returned; wait is called once for each number.
  virtual std::size_t send(int to, std::span<const std::byte> bytes) = 0;
  virtual std::size_t receive(int from, std::span<std::byte> into) = 0;
  virtual void wait(std::size_t number) = 0;

  // Replaces the values on all ranks by their sum over all ranks. The library that carries bytes computes it, and adds
  // in an order of its own.
  virtual bool has_sum() const { return false; }
  virtual void sum(dtype /*type*/, std::span<std::byte> /*values*/) {}

  // To be called when this rank has failed while others wait for it: their waits end. Its messages are not read any
  // more.
  virtual void fail(const std::exception_ptr& error) = 0;

  bool is_at_work = false;  // a run of this task has begun to take part, and has not left
};

// These ranks are threads of one process. A message is copied once, from the sender's memory to the receiver's.
class thread_ranks {
public:
  // `name` is the name of the ranks in error messages, such as "worker".
  thread_ranks(int size, std::string name, const task_system& tasks, waiting wait = {});
  thread_ranks(const thread_ranks&) = delete;
  thread_ranks& operator=(const thread_ranks&) = delete;

  rank_network& end_of(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
  // To be called when the program of this rank has ended.
  void depart(int rank);
  // Reports that a task has failed; the first error counts.
  void fail(const std::exception_ptr& error, const std::string& task);
  // Returns that error, from which those of the waits of others follow; null if no task has failed. Waits may end, and
  // their errors arrive, before the error of the task that has failed.
  std::exception_ptr cause() const { return cause_; }

private:
  struct message {
    std::span<const std::byte> bytes;
    bool is_copied = false, is_taken = false;
  };
  struct channel {  // from one rank to another
    std::deque<message> messages;
    std::uint64_t first = 0;  // the number of messages[0]
    std::uint64_t sent = 0, expected = 0;
  };
  struct started {
    bool sends = false;
    int other = 0;
    std::uint64_t message = 0;
    std::span<std::byte> into = {};
  };
  class one_end final : public rank_network {
  public:
    one_end(thread_ranks& all, int rank) : all_(&all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_->ends_.size()); }
    bool all_take_part(bool this_one) override { return all_->all_take_part(rank_, this_one); }
    std::size_t send(int to, std::span<const std::byte> bytes) override;
    std::size_t receive(int from, std::span<std::byte> into) override;
    void wait(std::size_t number) override;
    void fail(const std::exception_ptr& error) override;

  private:
    thread_ranks* all_;
    int rank_;
    std::vector<started> started_;
    std::size_t ended_ = 0;  // number of those that have ended
  };

  std::string name_;
  waiting wait_;
  bool crowded_;
  std::vector<std::unique_ptr<one_end>> ends_;
  std::mutex mutex_;
  task_condition changed_;
  std::atomic<std::uint32_t> news_{0};
  std::vector<channel> channels_;  // from r to q at r size + q
  std::vector<char> gone_;
  int arrived_ = 0;  // number of ranks that have announced whether they take part, or are gone
  bool any_does_not_ = false, all_take_part_ = false;
  std::uint64_t rounds_ = 0;
  std::exception_ptr cause_;
  std::string why_;  // the reason why the cluster has ended; empty: it has not

  std::string name_of(int rank) const { return text(name_, ' ', rank); }
  channel& between(int from, int to) {
    return channels_[static_cast<std::size_t>(from) * ends_.size() + static_cast<std::size_t>(to)];
  }
  bool all_take_part(int rank, bool does);
  void end_round();  // under the mutex, once all ranks have announced it
  void tell();       // under the mutex
  template <class Ready>
  void wait_until(std::unique_lock<std::mutex>& lock, int rank, const char* waits_for, Ready ready);
};

// The task_network of the servers of such ranks: there are no parameter servers, so there are no messages of the
// protocol.
class rank_task final : public task_network {
public:
  explicit rank_task(rank_network& end) : end_(&end) {}
  message_network& messages() override;
  void offer(shard_program program, const std::string& task) override;
  void serve(std::uint32_t shard) override;
  rank_network* ranks() override { return end_; }

private:
  rank_network* end_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "rank_network.ipp"
#endif
