// The client's side of a server's sessions: a connection to one server, and calls, each of which the server makes once.
//
// A call waits until it is answered, its `stop` is cancelled, or the server has been silent for `silence_secs`. While
// it waits, it asks the server every `retry_secs` whether the call is still at work.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../base/cancellation.hpp"
#include "../base/or_none.hpp"
#include "../base/tasks.hpp"
#include "session_calls.hpp"
#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD {

struct remote_session_options {
  // For the session on the server, in place of the server's own settings.
  or_none<session_options> config = {};
  double connect_secs = 30;  // time to connect; then deadline_exceeded
  double silence_secs = 30;  // silence of the server while a call waits; then unavailable
  double close_secs = 2;     // the same while a session is closed, or after a stop; then it ends without an answer
  double retry_secs = 0.5;
  double alive_secs = 10;  // the interval at which an idle client sends `alive`
  task_system tasks = {};
};

namespace detail {

// An answer and the memory that its tensors lie in.
struct answered_call {
  session_frame frame;
  session_answer said;
};

class session_client final : transport_told {
public:
  // `target` is "protocol://host:port". Raises invalid_argument for another protocol or a malformed address.
  session_client(const std::string& target, std::string_view protocol, std::unique_ptr<transport> carrier,
                 const remote_session_options& o);
  session_client(const session_client&) = delete;
  ~session_client();

  const std::string& target() const { return target_; }
  // Raises the error that the server answers; deadline_exceeded and unavailable (see the options); failed_precondition
  // if the server refuses this client; aborted if the server does not have the session any more; the error of `stop`.
  answered_call call(session_op op, std::uint64_t session, std::uint64_t sequence, std::span<const std::byte> said,
                     std::span<const std::span<const std::byte>> tensors = {}, cancellation* stop = nullptr);

private:
  struct waiting {
    session_frame answer;
    bool is_answered = false, is_asked_again = false;
  };

  std::string target_, address_;
  remote_session_options o_;
  std::mutex mutex_;
  task_condition changed_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, waiting*> waiting_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> received_;  // answers that the server may still keep
  bool is_welcome_ = false, ended_ = false;
  std::string refused_;
  double heard_ = 0;
  std::unique_ptr<transport> carrier_;
  task_handle beats_;

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override;
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override;
  void refused(std::uint32_t node, const std::string& why) override;
  void came(std::uint32_t node, const received_frame& frame) override;
  void beat();
  void send(session_op op, std::uint64_t session, std::uint64_t sequence, std::span<const std::byte> said,
            std::span<const std::span<const std::byte>> tensors);
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_client.ipp"
#endif
