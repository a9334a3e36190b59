// A remote_session is a session whose graph runs on a server, in another process: tf.Session("grpc://host:port").
//
//   gradus::remote_session s("grpc://10.0.0.7:2222", g, gradus::grpc{gradus::mtls{"certs"}});
//   s.initialize(42);
//   auto y = s.run("y", {{"x", data}});
//
// The server needs a session_service (train/session_service.hpp). The graph is sent once; then a run sends the feeds
// and receives the fetches. Sessions of one server share its variables and queues by name, whichever process they are
// in.
//
// It is a base_session, so savers, hooks, session managers and monitored sessions take it. Variables are on the server:
// `variable` and a saver copy them here; what is written here (mutable_variable, a restore) is sent with the next
// call, and later writes through the same view of mutable_variable with the calls after it. Such a view does not follow
// what runs change, and the bytes that it has already are not sent: fetch the variable again after runs that change it.
//
// A remote session differs from a session of this process: an op for which the server has no kernel is refused by name
// when a run needs it; so are optimizers, which train where they are made (connected{server}, cluster/connected.hpp). A
// queue of the server can be used by its ops, but not as an object. pause_runs() does not pause runs of other
// processes, but a saver reads all variables between two runs.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../run/base_session.hpp"
#include "server.hpp"
#include "session_client.hpp"

namespace gradus::inline GRADUS_BUILD {

class remote_session final : public base_session, state_mirror {
public:
  // The graph must not change and must outlive the session. Raises the errors of the server's session (invalid_argument
  // for a variable of another shape); not_found for a target of another protocol; invalid_argument for one without a
  // port; deadline_exceeded if nobody answers; failed_precondition if the server refuses this client.
  template <transport_policy Transport>
  remote_session(const std::string& target, graph& g, const Transport& by, const remote_session_options& o = {})
      : remote_session(target, g, Transport::protocol, by.make(o.tasks), o) {}
  ~remote_session() override;

  const std::string& target() const { return client_.target(); }

private:
  class answers;

  mutable detail::session_client client_;
  std::uint64_t number_ = 0;
  mutable std::atomic<std::uint64_t> sequence_ = 0;
  // This is the last known value of a variable on the server, compared with the variable's memory here.
  struct known {
    std::uint32_t crc = 0;
    bool has_value = false;
    bool handed_out = false;  // by mutable_variable: its view may be written to before any call
  };
  mutable std::mutex mirror_;
  mutable std::mutex exchange_;       // what was changed here is sent before the server's values are taken, or after it
  mutable std::vector<known> known_;  // in the order of variables()
  mutable bool may_differ_ = false;
  bool handed_out_ = false;  // one of them
  std::shared_ptr<answers> answers_;

  remote_session(const std::string& target, graph& g, std::string_view protocol,
                 std::unique_ptr<detail::transport> carrier, const remote_session_options& o);

  detail::answered_call call(detail::session_op op, std::span<const std::byte> said,
                             std::span<const std::span<const std::byte>> tensors = {},
                             cancellation* stop = nullptr) const;
  detail::answered_call call_with(detail::session_op op, std::uint64_t seed, std::span<const fetch> fetches,
                                  std::span<const feed> feeds, const run_options& o, bool traced) const;
  void send_changes(cancellation* stop = nullptr) const;
  void send_changes_first(cancellation* stop) const;

  detail::run_lease lease_of(std::span<const fetch> fetches, std::span<const feed> feeds, const run_options& o,
                             run_metadata* meta) override;
  void start_variables(std::uint64_t seed, std::span<const feed> feeds) override;
  void look(std::span<const std::string_view> names) const override;
  void will_change(const detail::resource_variable* for_good) override;
  state_mirror* mirror() override { return this; }
  void refresh() override { look({}), will_change(nullptr); }
  void close_elsewhere() override;
  runnable build(graph, std::shared_ptr<const void>&) const override;
  void start(detail::resource_variable&, std::uint64_t) const override {}
  void execute(step_machine&, const own_calls&, run_metadata*) override {}
};

// Closes the sessions of a server, whichever process they are in, and removes the values of its variables and its
// queues: tf.Session.reset. Raises the errors of remote_session, and permission_denied for a certificate that is not
// the chief's.
void reset_server(const std::string& target, std::string_view protocol, std::unique_ptr<detail::transport> carrier,
                  const std::vector<std::string>& containers, const remote_session_options& o);
template <transport_policy Transport>
void reset_server(const std::string& target, const Transport& by, const std::vector<std::string>& containers = {},
                  const remote_session_options& o = {}) {
  reset_server(target, Transport::protocol, by.make(o.tasks), containers, o);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "remote_session.ipp"
#endif
