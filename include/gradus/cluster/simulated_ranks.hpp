// The workers of a simulated cluster without parameter servers (simulated.hpp). Each is a rank as between processes
// (transport_ranks.hpp), over a transport whose connections are lost with a process, and whose frames are lost,
// doubled, delayed and cut off by drawn numbers.
//
// A rank that crashes, or is silent for too long, ends the cluster: its workers end, as they learn it, and are started
// again, and go on from the chief's checkpoint. A worker that has done its part stays until all have done theirs, and
// begins again too if the cluster is lost before.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulated_links.hpp"
#include "transport_ranks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class simulated_ranks;

// The transport of one process of a worker. What comes is passed on by a task of the worker's machine, so that a
// machine that is stopped receives nothing.
class simulated_transport final : public transport {
public:
  simulated_transport(simulated_ranks& all, std::uint32_t node, std::uint64_t process);
  ~simulated_transport() override { close(0); }
  void tell(transport_told& listener) override { listener_ = &listener; }
  int listen(const std::string& address) override;
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override;
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override;
  std::string problem(std::uint32_t) const override { return {}; }
  transport_counts counts() const override { return {}; }
  wire_limits limits() const override { return wire_limits::of_this_process(); }
  void close(double secs) override;

private:
  friend class simulated_ranks;
  struct wanted {  // a connection that this side makes
    std::vector<std::byte> hello;
    std::uint64_t dialled = 0;  // the process that has got the hello; 0: none
  };
  simulated_ranks* all_;
  std::uint32_t node_;
  std::uint64_t process_;
  transport_told* listener_ = nullptr;
  std::mutex mutex_;
  task_condition changed_;
  bool is_closed_ = false;
  std::deque<std::function<void()>> came_;
  std::map<std::uint32_t, wanted> wanted_;
  std::map<std::uint32_t, std::uint64_t> connected_;  // the processes of other nodes that this one is connected to
  std::map<std::uint32_t, nanos> streams_;            // to other nodes: the time when the last frame arrives
  task_handle receiver_;

  void put(std::function<void()> what);
  void receive();
};

// One process of a worker.
class simulated_rank final : public rank_network, public task_network {
public:
  simulated_rank(simulated_ranks& all, std::uint32_t node, const server_def& def, const rank_options& o,
                 std::unique_ptr<simulated_transport> carrier, const task_system& tasks);

  // ---- rank_network
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  // A step begins: it takes its time here.
  bool all_take_part(bool this_one) override;
  std::size_t send(int to, std::span<const std::byte> bytes) override;
  std::size_t receive(int from, std::span<std::byte> into) override;
  void wait(std::size_t number) override;
  void fail(const std::exception_ptr& error) override;

  // ---- task_network
  message_network& messages() override { return ranks_.messages(); }
  void offer(shard_program program, const std::string& task) override;
  void serve(std::uint32_t shard) override { ranks_.serve(shard); }
  rank_network* ranks() override { return this; }
  void finish() override;
  void server_stopped() override { ranks_.server_stopped(); }
  std::vector<cluster_member> known_members() override { return ranks_.known_members(); }

private:
  friend class simulated_ranks;
  simulated_ranks* all_;
  std::uint32_t node_;
  transport_ranks ranks_;

  template <class F>
  auto unless_crashed(F f);
};

class simulated_ranks final : public simulated_links {
public:
  simulated_ranks(int workers, const std::shared_ptr<turn_driver>& driver, std::uint64_t seed,
                  const simulated_faults& faults, std::vector<std::string>* log);

  bool run_once(const server_def& def, std::uint32_t node, const std::function<void(server& here)>& program) override;
  bool revive(std::uint32_t node) override;
  void end_of_workers() override { close({}); }
  // Begins a process of a worker; the caller keeps it until the program has ended.
  std::shared_ptr<simulated_rank> begin(std::uint32_t node, const server_def& def);
  // Returns whether the process of the node has crashed, or has ended because its cluster was lost.
  bool has_crashed(std::uint32_t node) const { return nodes_[node].is_gone(); }

private:
  friend class simulated_transport;
  friend class simulated_rank;
  struct node_state {
    simulated_rank* rank = nullptr;            // its process, while there is one
    simulated_transport* transport = nullptr;  // of that process, while it takes connections
    std::uint64_t process = 1;                 // the number of its starts
    bool is_down = false, is_lost = false, is_done = false;
    nanos up_at = 0;
    nanos outage = 0;               // of the crash that is to come after so many frames
    std::uint32_t frames_left = 0;  // 0: none is to come

    bool is_gone() const { return is_down || is_lost; }
  };
  std::vector<node_state> nodes_;
  task_system tasks_;
  message_decoder frames_{wire_limits::of_this_process()};  // for the log

  // A frame on its way: the nodes, and their processes when it was sent.
  struct route {
    std::uint32_t from = 0, to = 0;
    std::uint64_t process = 0, to_process = 0;
    std::shared_ptr<const std::vector<std::byte>> frame = {};
  };
  void deliver(const route& r);
  void dial(std::uint32_t from, std::uint64_t process, std::uint32_t to);
  void post(simulated_transport& by, std::uint32_t to, std::vector<std::byte> frame);
  void check_crash(std::uint32_t node) const;
  void compute(std::uint32_t node);
  void wait_for_end(std::uint32_t node);
  void crash_one(nanos length);
  void crash(std::uint32_t node, nanos length);
  void lose(std::uint32_t node, const std::string& why);
  void lose_done(const std::string& why);
  void ended() override;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "simulated_ranks.ipp"
#endif
