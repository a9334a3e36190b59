// The network of a task that is a process of its own: it sends frames to the other tasks and receives theirs, by any
// transport.
//
//   auto network = std::make_shared<detail::remote_network>(def, transport, tasks);
//   server here(def, network, tasks);        // a parameter server's join serves; a worker's trainer connects
//
// Every worker connects to every parameter server, and parameter servers to number 0, in whose process the decider
// orders updates. A parameter server gets its program from the first worker's hello. A process is identified by a
// number of its own (its boot): a parameter server that comes back as another process has lost its values, and a task
// that detects that ends with an error, so that all tasks are started again from the last checkpoint.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "message_network.hpp"
#include "offered_program.hpp"
#include "seen_peer.hpp"
#include "server.hpp"
#include "shared_port.hpp"
#include "task_network.hpp"
#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct remote_options {
  membership_options members = {};
  nanos retry = 1'000 * one_millisecond, retry_most = 2'000 * one_millisecond, patience = 30'000 * one_millisecond;
  nanos heartbeat = 1'000 * one_millisecond;
  std::function<void(std::string_view line)> log = nullptr;  // gets the waits that take long; default: stderr
  // The time that a task waits for those without which it cannot begin, as TensorFlow's sessions do: a worker for its
  // parameter servers and for the chief, a parameter server for a worker.
  double connect_secs = connect_secs_of_sessions;
  double close_secs = 5;
  // The time that parameter server 0 waits, when the cluster has ended, until all others that end then have heard of
  // it.
  double last_secs = 30;
  double answer_secs = 10;  // the time that known_members waits for parameter server 0
};

class remote_network final : public message_network, public task_network, transport_told {
public:
  // Takes connections, if the task is a parameter server. Raises not_found for a task that is no node, and the errors
  // of the transport.
  remote_network(const server_def& def, std::unique_ptr<transport> carrier, const task_system& tasks,
                 const remote_options& o = {});
  ~remote_network() override;

  // ---- task_network
  message_network& messages() override { return *this; }
  void offer(shard_program program, const std::string& task) override;
  void serve(std::uint32_t shard) override;
  void finish() override;
  void server_stopped() override;
  int share(transport_told* sessions, transport*& carrier) override;
  std::vector<cluster_member> known_members() override;

  // ---- message_network
  mailbox& inbox(std::uint32_t node) override;
  void post(const protocol_message& m) override;
  void withdraw(std::uint32_t) override { carrier_->take_back(); }
  void part_with(std::uint32_t) override { carrier_->part_with(); }
  std::size_t piece_bytes() const override { return std::size_t{256} << 10; }
  void end() override;
  void check(const std::string& waited) const override;
  bool is_over() const override;
  membership_options members(nanos transit) override;
  std::uint64_t process_of(std::uint32_t) const override { return boot_; }
  worker_options patience(worker_options o) const override;
  void report(const std::string& wait) override;

  int port() const { return port_; }  // of a parameter server
  std::uint64_t refused_messages() const;

private:
  struct peer : seen_peer {
    // A node's old connection may still deliver a frame when its new one begins, so `frames` is used under `receiving`.
    std::unique_ptr<std::mutex> receiving = std::make_unique<std::mutex>();
    std::unique_ptr<message_frames> frames;
    bool is_welcome = false;
    bool is_waited_for = false;  // at the end, by parameter server 0
    std::string role;
  };

  remote_options o_;
  cluster_nodes nodes_;
  std::uint64_t boot_ = draw_boot();
  mailbox box_;
  mutable std::mutex mutex_;
  mutable task_condition changed_;
  std::vector<peer> peers_;
  offered_program program_;
  bool ended_ = false, is_stopped_ = false;
  bool is_refused_ = false;        // it has ended for this task alone
  std::string why_;                // empty: it has ended without an error
  status kind_ = status::aborted;  // of that error
  std::uint64_t incarnation_ = 0;  // with which this worker has joined; 0: none
  bool has_left_ = false;
  bool has_begun_ = false;  // this worker has had a step of the run
  nanos waits_since_ = 0;   // for the run to begin, or, as a parameter server, for a worker
  std::uint64_t refused_ = 0;
  nanos dead_after_;                     // until a silent worker is taken for dead
  std::vector<cluster_member> members_;  // the last answer of parameter server 0
  std::uint64_t answers_ = 0;
  std::mutex sending_;
  int port_ = 0;
  shared_port port_of_sessions_;  // before the transport, whose callbacks use it
  std::unique_ptr<transport> carrier_;
  message_frames out_;
  task_handle beats_;

  bool is_ps() const { return nodes_.me < nodes_.shards; }
  void connect(std::uint32_t node, const task_hello& h);
  void close(const std::string& why, status kind = status::aborted);
  std::string last_words();
  void beat();
  std::string waits_in_vain();
  std::vector<cluster_member> members_here();  // under the mutex
  bool another_trains();
  void tell_members(std::uint32_t node);
  void say(std::uint32_t node, std::uint64_t about, std::span<const wire_slice> slices = {});
  void tell_all(std::uint64_t about, const std::string& why = {});
  shard_program program_of(const task_hello& h) const;
  void see_boot(std::uint32_t node, std::uint64_t boot);
  std::string not_welcome() const;  // under the mutex
  void say_line(const std::string& line) const;
  void start_beating();
  double secs_since(nanos since) const;
  std::string waits_for(nanos since) const;  // how long, as the end of a sentence
  std::string absent_workers();              // by the list of parameter server 0, as the end of a sentence
  std::string problems() const;  // which keep this worker from its parameter servers, as the end of a sentence

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override;
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override;
  void refused(std::uint32_t node, const std::string& why) override;
  void came(std::uint32_t node, const received_frame& frame) override;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "remote_network.ipp"
#endif
