// A master string says where a session runs; a connect policy connects to that place.
//
//   ''                      in this process
//   'local'                 the same; with remote_sessions{local_messages{}} (train/session_service.hpp), and in
//                           TensorFlow, by messages to the server of this process
//   'grpc://host:port'      a server; any other protocol has the same form
//
// A supervisor turns a master string into a session by its connect policy. `in_process`, the default, connects to this
// process and raises an error for any other master, with what is missing; for a network give a policy that speaks its
// protocol.
//
//   gradus::server here = gradus::server::create_local_server();
//   gradus::in_process{here}.sessions(here.target(), gradus::sessions_of(g))   // makes sessions that share variables
#pragma once
#include "../base/build.hpp"

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../base/or_none.hpp"
#include "../run/session_options.hpp"

namespace gradus::inline GRADUS_BUILD {

struct master {
  std::string text;      // as it was given
  std::string protocol;  // empty: this process
  std::string host;
  int port = 0;

  bool is_this_process() const { return protocol.empty(); }
};

namespace detail {
bool is_protocol(std::string_view s);
// Splits "host:port" or "[::1]:port"; returns false for any other text. Port 0 is one that the system has yet to
// choose.
bool split_address(std::string_view address, std::string_view& host, int& port);
}  // namespace detail

// Parses a master string. Raises invalid_argument for any other text.
master parse_master(std::string_view given);

// The part of a server's interface that connecting to it needs (cluster/server.hpp). A server that has resources also
// has `resources_for(session_options)`, which returns those that a session gets.
template <class S>
concept reachable = requires(const S& s) {
  { s.target() } -> std::convertible_to<std::string>;
  { s.is_running() } -> std::convertible_to<bool>;
};
struct no_server {
  std::string target() const { return {}; }
  bool is_running() const { return false; }
};
static_assert(reachable<no_server>);

// The interface of a connect policy: `connect(m, open_here)` returns a session of the master m, of any type, or raises
// an error. `open_here()` makes a session in this process, with memory of its own.
template <class C, class OpenHere>
concept connect_policy = policy<C> && std::same_as<typename std::remove_cvref_t<C>::policy_for, kind::connection> &&
                         requires(const C& c, const master& m, OpenHere& open_here) { c.connect(m, open_here); };

// A connect policy for sessions of this process: it takes '', 'local' and the target of the server that it was made
// with, if any. There is no registry of servers: the policy refers to that server, which must outlive it.
template <reachable Server = no_server>
class in_process {
public:
  using policy_for = kind::connection;

  in_process() = default;
  explicit in_process(const Server& server) : server_(&server) {}
  // `config` is used for sessions on the server, in place of the server's own settings.
  in_process(const Server& server, session_options config) : server_(&server), config_(std::move(config)) {}

  // Returns a session of the master m. If m is the server and the server has resources, calls `open_here` with those
  // resources: sessions of the server share variables by name, and end when it stops. Raises unavailable for a server
  // of this process that does not run, or for an address of the protocol `in_process` at which this policy has no
  // server; unimplemented for a protocol that takes a network.
  template <class OpenHere>
  decltype(auto) connect(const master& m, OpenHere&& open_here) const {
    if (!m.is_this_process()) {
      check(m);
      if constexpr (requires { open_here(*server_->resources_for(config_))->keep(server_->resources_for(config_)); }) {
        const auto resources = server_->resources_for(config_);
        auto made = open_here(*resources);
        made->keep(resources);
        return made;
      }
    }
    return open_here();
  }
  // Calls connect with a parsed master string: a session_supervisor takes this object as its `connect`.
  template <class OpenHere>
  decltype(auto) operator()(std::string_view at, OpenHere&& open_here) const {
    return connect(parse_master(at), std::forward<OpenHere>(open_here));
  }
  // Returns a function that makes sessions of the master `at` by `open`, for session managers, session creators and
  // monitored sessions.
  template <class Open>
  auto sessions(std::string_view at, Open open) const {
    return [policy = *this, m = parse_master(at), open = std::move(open)] { return policy.connect(m, open); };
  }

private:
  const Server* server_ = nullptr;
  or_none<session_options> config_ = {};

  void check(const master& m) const {
    const std::string known = server_ == nullptr ? std::string() : server_->target();
    if (server_ != nullptr && m.text == known) {
      if constexpr (requires { server_->was_stopped(); })
        if (server_->was_stopped())  // no session is tried again there
          raise(status::failed_precondition, text("the server \"", known, "\" was stopped; make another one"));
      if (!server_->is_running())
        raise(status::unavailable, text("the server \"", known,
                                        "\" does not run: start() it, and connect before it "
                                        "is stopped"));
      return;
    }
    const std::string reach =
        server_ == nullptr ? std::string("'' and 'local'") : text("'', 'local' and its server \"", known, "\"");
    if (m.protocol == "in_process")
      raise(status::unavailable, text("\"", m.text,
                                      "\" is no server that this program knows: the connect policy "
                                      "in_process reaches ",
                                      reach, "; give it the server, in_process{server}"));
    raise(status::unimplemented, text("\"", m.text, "\" takes a connect policy that speaks ", m.protocol,
                                      ", and none was given: the connect policy in_process reaches ", reach));
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "master.ipp"
#endif
