// What the networks of a simulated cluster (simulated.hpp) share, with parameter servers (simulated_network.hpp) or
// without (simulated_ranks.hpp): a machine for each node, actions in virtual time, the faults of links and machines,
// and the log of all events.
//
// The thread that calls `carry` is the network: it makes what is due, such as a message's arrival or a planned fault.
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

#include "server.hpp"
#include "simulated_faults.hpp"
#include "turns.hpp"

namespace gradus::inline GRADUS_BUILD {

// This exception ends a simulated task that crashes: it is thrown where the task's program waits for its cluster. It is
// not one of the library's errors, so that a program which handles those does not survive by that. A program that
// catches all exceptions may catch it, and should rethrow it; if it goes on instead, its task is started again anyway.
struct simulated_crash {
  std::string task;
};

namespace detail {

class simulated_links {
public:
  simulated_links(const simulated_links&) = delete;
  simulated_links& operator=(const simulated_links&) = delete;
  virtual ~simulated_links() = default;

  // ---- calls of the cluster around it
  // The running task is this node from now on.
  void arrive(std::uint32_t node) { driver_->move_to(machines_[node].number); }
  // Calls the program of a task once. Returns false if the task has crashed, or has lost its cluster, and is to be
  // started again. Raises the program's error otherwise.
  virtual bool run_once(const server_def& def, std::uint32_t node,
                        const std::function<void(server& here)>& program) = 0;
  // Waits until the node's machine is up again. Returns false if its cluster has ended meanwhile.
  virtual bool revive(std::uint32_t node) = 0;
  // To be called when no worker is left.
  virtual void end_of_workers() = 0;
  // Ends the cluster; only the first reason counts.
  void fail(const std::exception_ptr& error, const std::string& task);
  // Runs until `stop`.
  void carry();
  void stop();

  const std::string& name_of(std::uint32_t node) const { return machines_[node].name; }
  simulated_counts counts() const { return counts_; }
  std::uint64_t hash() const { return hash_; }
  // Returns the error that nothing went on or that time was over; null if there was none.
  const std::exception_ptr& why_stuck() const { return why_stuck_; }
  void log(const std::string& what);

protected:
  struct machine {
    std::string name = {};
    std::size_t number = 0;  // of the driver
    double slowness = 1;
  };
  std::shared_ptr<turn_driver> driver_;
  simulated_faults faults_;
  random_stream dice_;
  mutable std::mutex mutex_;
  task_condition changed_, is_over_;
  bool has_ended_ = false;
  std::string why_;  // empty: it has ended without an error
  simulated_counts counts_;

  simulated_links(const std::vector<std::string>& names, const std::shared_ptr<turn_driver>& driver, std::uint64_t seed,
                  const simulated_faults& faults, std::vector<std::string>* log);
  bool chance(double p) { return p > 0 && dice_.uniform() < p; }
  nanos between(double least_secs, double most_secs);
  nanos delay() { return between(faults_.least_delay, faults_.most_delay); }
  nanos outage() { return between(faults_.least_outage, faults_.most_outage); }
  double step_secs(std::uint32_t node);
  void at(nanos time, std::function<void()> what);
  // Plans n faults, of drawn times and durations.
  void plan(int n, const std::function<void(nanos length)>& what);
  void plan_cuts_and_stops();
  // Sends a message: `arrives` is called when it is due, twice if it is doubled, or not at all. The log gets the line.
  // Messages of a stream, which has the time of its last one in `stream`, arrive in their order except for late ones.
  void send(std::uint32_t from, std::uint32_t to, const std::string& line, const std::function<void()>& arrives,
            nanos* stream = nullptr);
  bool is_cut(std::uint32_t a, std::uint32_t b) const {
    return driver_->time() < cut_until_ && is_cut_off_[a] != is_cut_off_[b];
  }
  const machine& machine_of(std::uint32_t node) const { return machines_[node]; }
  // Returns the node of the running task; the number of nodes if it has none.
  std::uint32_t here() const;
  void reset_clock(std::uint32_t node);
  // Lets a machine that is stopped go on, so that the tasks of a crashed process can end.
  void let_go_on(std::uint32_t node) { driver_->stop(machines_[node].number, 0); }
  bool wait_until_up(nanos up_at);
  void close(const std::string& why);
  // Called when the cluster ends: ends all waits of its tasks.
  virtual void ended() = 0;

private:
  std::vector<machine> machines_;                    // by node
  std::multimap<nanos, std::function<void()>> due_;  // the actions of the network, by right time
  bool is_stopped_ = false;
  std::exception_ptr why_stuck_;
  std::vector<bool> is_cut_off_;
  nanos cut_until_ = at_once;
  std::uint64_t hash_ = 0xCBF29CE484222325u;
  std::vector<std::string>* lines_;

  void cut(nanos length);
  void stop_one(nanos length);
};

// Returns a number for the bytes, for the log.
std::uint64_t sum_of_bytes(std::span<const std::byte> bytes);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "simulated_links.ipp"
#endif
