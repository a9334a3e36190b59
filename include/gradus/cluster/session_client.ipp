// The bodies of session_client.hpp.
#pragma once
#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "../base/body.hpp"
#include "listener.hpp"
#include "session_client.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A client's frames go to the one server that it has.
inline constexpr std::uint32_t server_node_number = 0;

GRADUS_BODY session_client::session_client(const std::string& target, std::string_view protocol,
                                           std::unique_ptr<transport> carrier, const remote_session_options& o)
    : target_(target), o_(o), changed_(o.tasks), carrier_(std::move(carrier)) {
  const std::string begin = text(protocol, "://");
  // A target that is the protocol itself is an address of the transport, such as "local".
  if (target != protocol && !target.starts_with(begin))
    raise(status::not_found, text("there is no server \"", target, "\": expected ", begin,
                                  "host:port, since the transport speaks ", protocol));
  address_ = target == protocol ? target : target.substr(begin.size());
  std::random_device chance;
  session_hello h;
  while (h.client == 0) h.client = std::uint64_t{chance()} << 32 | chance();
  const auto said = bytes_of_said(h);
  std::vector<std::byte> frame;
  message_encoder out(carrier_->limits());
  const session_slices slices(said, {});
  for (const auto piece : out.encode({.kind = message_kind::hello}, slices.slices()))
    frame.insert(frame.end(), piece.begin(), piece.end());
  carrier_->tell(*this);
  carrier_->connect(server_node_number, address_, std::move(frame));
  beats_ = o_.tasks.start("a client of sessions", "raise the limit of threads", [this] { beat(); });
}
GRADUS_BODY session_client::~session_client() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  beats_ = {};
  constexpr double last_words_secs = 1;
  carrier_->close(last_words_secs);
}

GRADUS_BODY void session_client::beat() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, o_.alive_secs, [&] { return ended_; });
    if (ended_) return;
    const auto received = received_;
    lock.unlock();
    send(session_op::alive, 0, 0, {}, {});
    for (const auto& [session, sequence] : received) send(session_op::received, session, sequence, {}, {});
    lock.lock();
  }
}

GRADUS_BODY void session_client::send(session_op op, std::uint64_t session, std::uint64_t sequence,
                                      std::span<const std::byte> said,
                                      std::span<const std::span<const std::byte>> tensors) {
  const session_slices slices(said, tensors);
  message_encoder out(carrier_->limits());
  carrier_->send(server_node_number, out.encode({.kind = message_kind::call,
                                                 .incarnation = session,
                                                 .sequence = sequence,
                                                 .about = static_cast<std::uint64_t>(op)},
                                                slices.slices()));
}

// ---- callbacks of the transport

GRADUS_BODY transport_greeting session_client::greeted(std::span<const std::byte>, const transport_peer&) {
  raise(status::failed_precondition, text("a client of sessions takes no connections"));
}
GRADUS_BODY void session_client::welcomed(std::uint32_t, std::span<const std::byte> answer) {
  if (!is_hello_of_sessions(answer))
    raise(status::failed_precondition, text("at ", address_, " answers no server of sessions"));
  const std::lock_guard lock(mutex_);
  is_welcome_ = true;
  heard_ = o_.tasks.elapsed();
  for (auto& [key, w] : waiting_) w->is_asked_again = true;  // frames that were under way may be lost
  changed_.notify_all();
}
GRADUS_BODY void session_client::refused(std::uint32_t, const std::string& why) {
  const std::lock_guard lock(mutex_);
  refused_ = why;
  changed_.notify_all();
}
GRADUS_BODY void session_client::came(std::uint32_t, const received_frame& frame) {
  session_frame f = keep_frame(frame.bytes, carrier_->limits());
  if (f.head.kind != message_kind::answer)
    raise(status::data_loss, text("a server of sessions has sent ", kind_name(f.head.kind)));
  const std::lock_guard lock(mutex_);
  heard_ = o_.tasks.elapsed();
  if (f.head.about == answer_codes::let_go || f.head.about == answer_codes::no_session)
    received_.erase({f.head.incarnation, f.head.sequence});
  const auto w = waiting_.find({f.head.incarnation, f.head.sequence});
  if (w == waiting_.end() || w->second->is_answered || f.head.about == answer_codes::working ||
      f.head.about == answer_codes::let_go)
    return;
  // The server does not know a session before it has received its first call.
  if (f.head.about == answer_codes::not_heard || (f.head.about == answer_codes::no_session && f.head.sequence == 1)) {
    w->second->is_asked_again = true;
  } else {
    w->second->answer = std::move(f);
    w->second->is_answered = true;
  }
  changed_.notify_all();
}

// ---- calls

GRADUS_BODY answered_call session_client::call(session_op op, std::uint64_t session, std::uint64_t sequence,
                                               std::span<const std::byte> said,
                                               std::span<const std::span<const std::byte>> tensors,
                                               cancellation* stop) {
  waiting mine;
  const double since = o_.tasks.elapsed();
  bool is_stopped = false, wakes = false;
  std::optional<cancellation::link> link;
  if (stop != nullptr)
    link.emplace(*stop, [&] {
      const std::lock_guard here(mutex_);
      wakes = true;
      changed_.notify_all();
    });
  std::unique_lock lock(mutex_);
  const struct unlinks {  // before the objects that the link's function uses are destroyed
    std::optional<cancellation::link>& link;
    std::unique_lock<std::mutex>& lock;
    ~unlinks() {
      if (lock.owns_lock()) lock.unlock();
      link.reset();
    }
  } unlinks{link, lock};
  // The link is destroyed without this mutex, which its function takes.
  const auto raise_stop = [&] {
    lock.unlock();
    raise(stop->kind(), stop->reason());
  };
  changed_.wait_for(lock, o_.connect_secs, [&] { return is_welcome_ || !refused_.empty() || wakes; });
  if (!is_welcome_ && wakes) raise_stop();
  const auto check_refused = [&] {
    if (!refused_.empty())
      raise(status::failed_precondition, text("the server \"", target_, "\" refuses this client: ", refused_));
  };
  check_refused();
  if (!is_welcome_)
    raise(status::deadline_exceeded,
          text("the server \"", target_, "\" was not reached for ", o_.tasks.elapsed() - since,
               " s (connect_secs); is it started, and does it run a session_service? ",
               carrier_->problem(server_node_number)));
  waiting_[{session, sequence}] = &mine;
  const struct forgets {  // after an error too, since nobody waits for the answer then
    session_client& c;
    std::unique_lock<std::mutex>& lock;
    std::uint64_t session, sequence;
    ~forgets() {
      if (!lock.owns_lock()) lock.lock();
      c.waiting_.erase({session, sequence});
      c.received_.insert({session, sequence});
      lock.unlock();
      c.send(session_op::received, session, sequence, {}, {});
    }
  } forgets{*this, lock, session, sequence};
  heard_ = std::max(heard_, o_.tasks.elapsed());
  const double patience = op == session_op::close ? o_.close_secs : o_.silence_secs;
  mine.is_asked_again = true;
  double stopped_at = 0;
  for (;;) {
    if (mine.is_answered) break;
    check_refused();
    if (wakes && !is_stopped) {
      is_stopped = true, stopped_at = o_.tasks.elapsed();
      lock.unlock();
      send(session_op::cancel, session, sequence, {}, {});
      lock.lock();
      continue;
    }
    // A call that was stopped waits for its answer as long as the server is there.
    if (is_stopped && o_.tasks.elapsed() - std::max(heard_, stopped_at) > o_.close_secs) raise_stop();
    if (o_.tasks.elapsed() - heard_ > patience)
      raise(status::unavailable,
            text("the server \"", target_, "\" has been silent for ", patience,
                 " s while a call waited (silence_secs, close_secs); ", carrier_->problem(server_node_number)));
    const bool whole = std::exchange(mine.is_asked_again, false);
    lock.unlock();
    if (whole) {
      send(op, session, sequence, said, tensors);
    } else {
      if (is_stopped) send(session_op::cancel, session, sequence, {}, {});  // the first one may be lost
      send(session_op::ask, session, sequence, {}, {});
    }
    lock.lock();
    changed_.wait_for(lock, o_.retry_secs, [&] {
      return mine.is_answered || mine.is_asked_again || !refused_.empty() || wakes != is_stopped;
    });
  }
  answered_call a{std::move(mine.answer), {}};
  const std::uint64_t code = a.frame.head.about;
  if (code == answer_codes::no_session)
    raise(status::aborted,
          text("the server \"", target_,
               "\" does not know the session: it was started again, or has not heard of this client for "
               "long; make another session"));
  a.said = said_in<session_answer>(a.frame);
  if (code != 0) {
    if (is_stopped && code == static_cast<std::uint64_t>(status::cancelled)) raise_stop();
    const auto known = static_cast<std::uint64_t>(status::unauthenticated);
    raise(code <= known ? static_cast<status>(code) : status::unknown, a.said.why);
  }
  return a;
}

}  // namespace gradus::detail
