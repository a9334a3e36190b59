// The server's side of sessions that other processes run here: TensorFlow's master service. Programs make a
// session_service (train/session_service.hpp); this class is the part of it that is the same for all devices.
//
// Each call is made by a thread of a pool, so a run that waits in a queue holds up no other call. A call is made once,
// however often it is received; its answer is kept until the client has it. A session whose client is silent for
// `silent_secs` is closed.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../base/cancellation.hpp"
#include "../run/base_session.hpp"
#include "graph_bytes.hpp"
#include "server.hpp"
#include "session_calls.hpp"
#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD {

// Bounds for what untrusted clients may use; a call above one is refused with resource_exhausted.
struct session_limits {
  std::size_t sessions = 1024;                   // open at once
  std::size_t calls = 64;                        // of one session that are not answered yet
  std::size_t threads = 256;                     // that make calls; each may wait in a queue for long
  std::uint64_t bytes = std::uint64_t{1} << 30;  // of calls at work and answers that are kept
  double silent_secs = 120;
};

namespace detail {

class session_host final : public transport_told {
public:
  // Makes a session of this graph that shares these resources.
  using opener = std::function<std::unique_ptr<base_session>(graph&, session_resources&)>;
  // Takes connections at the address of the server's task from now on. Raises failed_precondition for a server without
  // a transport, and the errors of the transport.
  session_host(const server& here, opener open, card_finder cards, const session_limits& limits);
  session_host(const session_host&) = delete;
  ~session_host();

  // Returns the address that a client connects to: the server's target, with the port that was chosen.
  std::string target() const;
  std::size_t sessions() const;  // open now

private:
  struct call {
    enum states { at_work, answered, gone } state = at_work;
    std::vector<std::byte> answer;
    std::uint64_t bytes = 0;  // counted against the limit
    cancellation stop;
  };
  struct served {
    std::uint32_t node = 0;
    std::mutex opening;
    unknown_ops unknown;
    std::unique_ptr<graph> what;
    std::shared_ptr<base_session> session;  // null: not opened yet, or opening it failed
    std::map<std::uint64_t, std::shared_ptr<call>> calls;
    std::uint64_t done = 0;  // the client has the answers of all calls up to this one
    std::size_t at_work = 0;
    bool is_closed = false;
    bool is_gone = false;  // its client is gone, so that answers are kept for nobody
  };
  struct job {
    std::shared_ptr<served> of;  // null: from a client without a session
    std::shared_ptr<call> what;
    session_frame frame;
    std::uint32_t node = 0;
  };
  struct client {
    std::uint64_t number = 0;
    std::string role;
    double heard = 0;
  };

  const server& here_;
  opener open_;
  card_finder cards_;
  session_limits limits_;
  task_system tasks_;
  std::unique_ptr<transport> own_;
  transport* carrier_ = nullptr;
  std::atomic<int> port_ = 0;  // clients may come while the constructor sets it
  mutable std::mutex mutex_;
  task_condition changed_;
  std::map<std::uint32_t, client> clients_;                    // by node
  std::map<std::uint64_t, std::shared_ptr<served>> sessions_;  // by the number that the client gave it
  std::deque<job> jobs_;
  std::uint64_t bytes_ = 0;
  std::uint32_t next_node_;
  std::size_t idle_ = 0;
  bool ended_ = false;
  std::vector<task_handle> crew_;
  task_handle sweeper_;

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override;
  void welcomed(std::uint32_t, std::span<const std::byte>) override {}
  void refused(std::uint32_t, const std::string&) override {}
  void came(std::uint32_t node, const received_frame& frame) override;

  void take(std::uint32_t node, session_frame f);
  void note(std::uint32_t node, const message_head& h);
  void work();
  void sweep();
  void make(job& j, bool may_wait = true);
  void drop(const std::vector<std::shared_ptr<served>>& all);
  std::vector<std::byte> answer_to(job& j, std::uint64_t& code);
  void say(std::uint32_t node, const message_head& of, std::uint64_t code, std::span<const std::byte> said = {},
           std::span<const std::span<const std::byte>> tensors = {});
  void refuse(std::uint32_t node, const message_head& of, status kind, const std::string& why);
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_host.ipp"
#endif
