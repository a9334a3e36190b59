// The rank_network of ranks that are processes of their own, connected by a transport. It is for training by all_reduce
// over gRPC.
//
//   gradus::server here(gradus::grpc{gradus::mtls{"certs"}}, config);     // TF_CONFIG names workers and no ps
//   auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::all_reduce{}, gradus::adam{}, config);
//
// Every worker takes connections at its address and dials the workers before it, so two workers share one connection.
// The frames from one rank to another are numbered; frames that are lost with a connection are sent again from a copy
// until they are acknowledged. A rank that is silent for too long, or that comes back as another process after it has
// taken part, ends the cluster: all tasks have to be started again, and go on from the chief's checkpoint.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../tensor/tensor.hpp"
#include "rank_network.hpp"
#include "seen_peer.hpp"
#include "shared_port.hpp"
#include "transport.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct rank_options {
  double connect_secs = connect_secs_of_sessions;  // a rank waits so long for the others at the beginning
  double silence_secs = 30;                        // silence of a rank, later
  double retry_secs = 1;  // between two heartbeats; frames that are not acknowledged are sent again with them
  double close_secs = 5;
  // Bound of the data of one rank that this rank does not wait for yet. More ends the cluster.
  std::uint64_t early_bytes = std::uint64_t{4} << 30;
  std::uint64_t boot = 0;  // the number of this process; 0: a random one
};

class transport_ranks final : public rank_network, public task_network, transport_told {
public:
  // Takes connections from now on. Raises not_found for a task that is no node, and the errors of the transport.
  transport_ranks(const server_def& def, std::unique_ptr<transport> carrier, const task_system& tasks,
                  const rank_options& o = {});
  transport_ranks(const transport_ranks&) = delete;
  ~transport_ranks() override;

  // ---- rank_network
  int rank() const override { return static_cast<int>(nodes_.me); }
  int size() const override { return static_cast<int>(nodes_.names.size()); }
  bool all_take_part(bool this_one) override;
  std::size_t send(int to, std::span<const std::byte> bytes) override;
  std::size_t receive(int from, std::span<std::byte> into) override;
  void wait(std::size_t number) override;
  void fail(const std::exception_ptr& error) override;

  // ---- task_network
  message_network& messages() override { return refuse_shards(); }
  void offer(shard_program, const std::string&) override;
  void serve(std::uint32_t) override { refuse_shards(); }
  rank_network* ranks() override { return this; }
  void finish() override;
  void server_stopped() override;
  int share(transport_told* sessions, transport*& carrier) override;
  std::vector<cluster_member> known_members() override;

  int port() const { return port_; }
  // Ends the cluster for this rank, as if another one was lost: its waits raise aborted with this reason.
  void lose(const std::string& why);
  bool has_ended();
  // Returns the number of another rank's process, as far as this one has exchanged something with it; 0 if it has not
  // come.
  std::uint64_t process_of(std::uint32_t node);

private:
  enum class says : std::uint64_t { data = 1, takes_part, does_not, left, failed };
  struct outgoing {
    says what = says::data;
    std::shared_ptr<const std::vector<std::byte>> bytes;
  };
  struct peer : seen_peer {
    bool is_there = false, sends_again = false;
    std::deque<outgoing> sent;        // frames that are not acknowledged
    std::uint64_t next = 1;           // the number of the next frame to be sent
    std::uint64_t missed = 0;         // the last number that was missed, for which frames were sent again
    std::uint64_t came = 0;           // the number of the last frame that was taken
    std::deque<aligned_buffer> data;  // received data that are not waited for yet
    std::uint64_t early = 0;          // bytes of these data
    std::deque<bool> votes;

    std::uint64_t acknowledged() const { return next - 1 - sent.size(); }
  };
  struct started {
    int from = -1;  // -1: it is a send, whose bytes were copied
    std::span<std::byte> into = {};
    bool is_here = false;
  };

  rank_options o_;
  cluster_nodes nodes_;
  std::uint64_t boot_ = o_.boot != 0 ? o_.boot : draw_boot();
  task_system tasks_;
  std::mutex mutex_;
  task_condition changed_;
  std::vector<peer> peers_;
  std::vector<started> started_;
  std::size_t ended_waits_ = 0;
  std::string why_;                // the reason why the cluster has ended; empty: it has not
  status kind_ = status::aborted;  // deadline_exceeded: a rank has never come
  bool is_closing_ = false, has_left_ = false;
  double since_ = 0;
  int port_ = 0;
  shared_port port_of_sessions_;  // before the transport, whose callbacks use it
  std::unique_ptr<transport> carrier_;
  task_handle beats_;

  [[noreturn]] static message_network& refuse_shards();
  void end(const std::string& why, status kind = status::aborted);  // under the mutex
  void meet(std::uint32_t node, std::uint64_t boot);
  void take(started& what);
  void add(std::uint32_t to, says what, std::span<const std::byte> bytes);
  void transmit(std::uint32_t to, std::uint64_t number, const outgoing& o);
  void say(std::uint32_t to, message_kind kind, std::uint64_t about, std::uint64_t sequence = 0);
  void tell_all(says what, const std::string& why = {});
  void beat();
  void check(const char* waits_for) const;  // under the mutex
  void check_silence();                     // under the mutex
  std::string problem_of_early(std::uint32_t node, std::size_t bytes) const;
  template <class Ready>
  void wait_until(std::unique_lock<std::mutex>& lock, const char* waits_for, Ready ready);

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override;
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override;
  void refused(std::uint32_t node, const std::string& why) override;
  void came(std::uint32_t node, const received_frame& frame) override;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "transport_ranks.ipp"
#endif
