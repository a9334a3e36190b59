// The bodies of transport_ranks.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "shard_program.hpp"
#include "task_crew.hpp"
#include "transport_ranks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY transport_ranks::transport_ranks(const server_def& def, std::unique_ptr<transport> carrier,
                                             const task_system& tasks, const rank_options& o)
    : o_(o), nodes_(def), tasks_(tasks), changed_(tasks), peers_(nodes_.names.size()), carrier_(std::move(carrier)) {
  since_ = tasks_.elapsed();
  carrier_->tell(*this);
  port_ = carrier_->listen(nodes_.addresses[nodes_.me]);
  for (std::uint32_t k = 0; k < nodes_.me; ++k) carrier_->connect(k, nodes_.addresses[k], own_hello(nodes_, boot_));
  beats_ = tasks_.start("a worker's heartbeat", "give the process one more thread", [this] { beat(); });
}
GRADUS_BODY transport_ranks::~transport_ranks() {
  server_stopped();
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }
  beats_ = {};
  carrier_->close(o_.close_secs);
}

GRADUS_BODY message_network& transport_ranks::refuse_shards() { detail::refuse_shards(); }
GRADUS_BODY void transport_ranks::offer(shard_program, const std::string&) { refuse_shards(); }

GRADUS_BODY int transport_ranks::share(transport_told* sessions, transport*& carrier) {
  carrier = carrier_.get();
  port_of_sessions_.give_to(sessions);
  return port_;
}

// ---- waits

GRADUS_BODY void transport_ranks::end(const std::string& why, status kind) {
  if (why_.empty()) why_ = why, kind_ = kind;
  changed_.notify_all();
}
GRADUS_BODY void transport_ranks::lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  end(why);
}
GRADUS_BODY bool transport_ranks::has_ended() {
  const std::lock_guard lock(mutex_);
  return !why_.empty();
}
GRADUS_BODY std::uint64_t transport_ranks::process_of(std::uint32_t node) {
  const std::lock_guard lock(mutex_);
  return peers_[node].boot;
}
GRADUS_BODY void transport_ranks::check(const char* waits_for) const {
  if (!why_.empty())
    raise(kind_, text("the cluster has ended, while ", nodes_.task, " waited for ", waits_for, ": ", why_));
}
template <class Ready>
void transport_ranks::wait_until(std::unique_lock<std::mutex>& lock, const char* waits_for, Ready ready) {
  while (!ready()) {
    check(waits_for);
    changed_.wait(lock);
  }
}

GRADUS_BODY bool transport_ranks::all_take_part(bool this_one) {
  tell_all(this_one ? says::takes_part : says::does_not);
  std::unique_lock lock(mutex_);
  bool all = this_one;
  for (std::uint32_t k = 0; k < peers_.size(); ++k) {
    if (k == nodes_.me) continue;
    peer& p = peers_[k];
    constexpr const char* waits_for = "the others to begin a step";
    wait_until(lock, waits_for, [&] { return !p.votes.empty() || p.has_left; });
    if (p.votes.empty()) check(waits_for);  // a rank that has failed has not ended its part
    all = all && !p.votes.empty() && p.votes.front();
    if (!p.votes.empty()) p.votes.pop_front();
  }
  return all;
}

GRADUS_BODY std::size_t transport_ranks::send(int to, std::span<const std::byte> bytes) {
  add(static_cast<std::uint32_t>(to), says::data, bytes);
  started_.push_back({});
  return started_.size() - 1;
}
GRADUS_BODY std::size_t transport_ranks::receive(int from, std::span<std::byte> into) {
  started_.push_back({from, into});
  return started_.size() - 1;
}
// Messages of one rank come in the order in which they were sent, and are waited for in this order.
GRADUS_BODY void transport_ranks::wait(std::size_t number) {
  const started what = started_[number];
  if (what.from >= 0) {
    for (std::size_t k = 0; k < number; ++k)
      if (started_[k].from == what.from && !started_[k].is_here) take(started_[k]);
    if (!what.is_here) take(started_[number]);
  }
  if (++ended_waits_ == started_.size()) started_.clear(), ended_waits_ = 0;
}
GRADUS_BODY void transport_ranks::take(started& what) {
  aligned_buffer bytes;
  {
    std::unique_lock lock(mutex_);
    peer& p = peers_[static_cast<std::size_t>(what.from)];
    const std::string& name = nodes_.names[static_cast<std::size_t>(what.from)];
    constexpr const char* waits_for = "the gradients of others";
    wait_until(lock, waits_for, [&] {
      if (p.data.empty() && p.has_left) {  // the rank sends nothing any more
        check(waits_for);
        raise(status::aborted,
              text(name, " has ended its program in the middle of a step, while ", nodes_.task, " waited for it"));
      }
      return !p.data.empty();
    });
    bytes = std::move(p.data.front());
    p.data.pop_front();
    p.early -= bytes.size();
    if (bytes.size() != what.into.size())
      raise(status::internal,
            text(name, " sent ", bytes.size(), " bytes to ", nodes_.task, ", which expected ", what.into.size()));
  }
  if (bytes.size() != 0) std::memcpy(what.into.data(), bytes.data(), bytes.size());
  what.is_here = true;
}

// ---- sending

GRADUS_BODY void transport_ranks::add(std::uint32_t to, says what, std::span<const std::byte> bytes) {
  // It is refused here, in the thread that sends: frames that wait are sent by a thread that can tell nobody.
  constexpr std::uint64_t front = 2 * wire_alignment;  // the head, and the row of one slice
  static_assert(wire_head_bytes + wire_row_bytes <= front);
  if (const std::uint64_t most = carrier_->limits().frame_bytes; most < front || bytes.size() > most - front)
    raise(status::resource_exhausted,
          text(nodes_.task, " sends ", bytes.size(), " bytes to ", nodes_.names[to],
               ", above the limit frame_bytes of ", most, "; raise the transport's .limits.frame_bytes in every task"));
  outgoing o{what, std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())};
  std::uint64_t number = 0;
  bool is_there = false;
  {
    const std::lock_guard lock(mutex_);
    peer& p = peers_[to];
    p.sent.push_back(o);
    number = p.next++;
    is_there = p.is_there;
  }
  if (is_there) transmit(to, number, o);
}
GRADUS_BODY void transport_ranks::transmit(std::uint32_t to, std::uint64_t number, const outgoing& o) {
  message_encoder encoder(carrier_->limits());
  carrier_->send(to, encoder.encode({.kind = message_kind::push,
                                     .sender = nodes_.me,
                                     .incarnation = boot_,
                                     .sequence = number,
                                     .about = static_cast<std::uint64_t>(o.what)},
                                    {{"", dtype::uint8, 0, std::span<const std::byte>(*o.bytes)}}));
}
GRADUS_BODY void transport_ranks::say(std::uint32_t to, message_kind kind, std::uint64_t about,
                                      std::uint64_t sequence) {
  message_encoder encoder(carrier_->limits());
  carrier_->send(
      to,
      encoder.encode({.kind = kind, .sender = nodes_.me, .incarnation = boot_, .sequence = sequence, .about = about}));
}
GRADUS_BODY void transport_ranks::tell_all(says what, const std::string& why) {
  for (std::uint32_t k = 0; k < peers_.size(); ++k)
    if (k != nodes_.me) add(k, what, std::as_bytes(std::span(why)));
}

// Sends heartbeats, and sends again the frames that were lost with a connection, or are not acknowledged for long.
GRADUS_BODY void transport_ranks::beat() {
  std::unique_lock lock(mutex_);
  std::vector<std::uint64_t> before(peers_.size(), 0);
  double next = tasks_.elapsed() + o_.retry_secs;
  const auto again = [&] {
    return std::any_of(peers_.begin(), peers_.end(), [](const peer& p) { return p.is_there && p.sends_again; });
  };
  while (!is_closing_) {
    changed_.wait_for(lock, std::max(0.0, next - tasks_.elapsed()), [&] { return is_closing_ || again(); });
    const bool is_due = tasks_.elapsed() >= next;
    if (is_due) next = tasks_.elapsed() + o_.retry_secs, check_silence();
    for (std::uint32_t k = 0; k < peers_.size() && !is_closing_; ++k) {
      peer& p = peers_[k];
      if (k == nodes_.me || !p.is_there) continue;
      const std::uint64_t done = p.acknowledged();
      const bool is_late = is_due && !p.sent.empty() && std::exchange(before[k], done) == done;
      const bool all = std::exchange(p.sends_again, false) || is_late;
      const std::vector<outgoing> left(p.sent.begin(), all ? p.sent.end() : p.sent.begin());
      lock.unlock();
      if (is_due) say(k, message_kind::heartbeat, 0);
      for (std::size_t i = 0; i < left.size(); ++i) transmit(k, done + 1 + i, left[i]);
      lock.lock();
    }
  }
}
GRADUS_BODY void transport_ranks::check_silence() {
  const double now = tasks_.elapsed();
  for (std::uint32_t k = 0; k < peers_.size(); ++k) {
    const peer& p = peers_[k];
    if (k == nodes_.me || p.has_left || !why_.empty()) continue;
    const double most = p.boot == 0 ? o_.connect_secs : o_.silence_secs, since = p.boot == 0 ? since_ : p.heard;
    if (now - since <= most) continue;
    const std::string problem = carrier_->problem(k);
    end(text(nodes_.names[k], " at ", nodes_.addresses[k], p.boot == 0 ? " has not come for " : " has been silent for ",
             most, " s", problem.empty() ? "" : ": ", problem,
             "; start all tasks again: they go on from the last checkpoint"),
        p.boot == 0 ? status::deadline_exceeded : status::aborted);
  }
}

// ---- the end

GRADUS_BODY void transport_ranks::fail(const std::exception_ptr& error) {
  tell_all(says::failed, error_text(error));
  const std::lock_guard lock(mutex_);
  has_left_ = true;
}
GRADUS_BODY void transport_ranks::server_stopped() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_left_, true)) return;
  }
  tell_all(std::uncaught_exceptions() > 0 ? says::failed : says::left,
           std::uncaught_exceptions() > 0 ? "its program has ended by an error" : "");
}
GRADUS_BODY void transport_ranks::finish() {
  server_stopped();
  std::unique_lock lock(mutex_);
  if (kind_ == status::deadline_exceeded) return;  // nobody has come, which the wait of the training has said
  for (std::uint32_t k = 0; k < peers_.size(); ++k)
    if (k != nodes_.me)
      wait_until(lock, text("the end of ", nodes_.names[k]).c_str(), [&] { return peers_[k].has_left; });
  // A rank that has left and has received this one's end is gone, and its last acknowledgement may be lost.
  changed_.wait_for(lock, o_.close_secs, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const peer& p) { return p.sent.empty(); });
  });
}

GRADUS_BODY std::vector<cluster_member> transport_ranks::known_members() {
  const std::lock_guard lock(mutex_);
  return members_of(nodes_, peers_, tasks_.elapsed(), o_.silence_secs);
}

// ---- callbacks of the transport

GRADUS_BODY void transport_ranks::meet(std::uint32_t node, std::uint64_t boot) {
  const std::lock_guard lock(mutex_);
  peer& p = peers_[node];
  // A run goes on with the processes that it began with. Nothing is exchanged with another one: what is acknowledged to
  // it would be by the numbers of the process before.
  if (p.boot != 0 && p.boot != boot && (p.came > 0 || p.acknowledged() > 0)) {
    p.is_there = false;
    if (!p.has_left)
      end(text(
          nodes_.names[node], " at ", nodes_.addresses[node],
          " was started again in the middle of a run; start all tasks again: they go on from the last checkpoint"));
    return;
  }
  p.meet(boot, tasks_.elapsed());
  p.is_there = true;
  p.sends_again = !p.sent.empty();
  changed_.notify_all();
}

GRADUS_BODY transport_greeting transport_ranks::greeted(std::span<const std::byte> hello, const transport_peer& from) {
  if (transport_greeting answer; port_of_sessions_.greets(hello, from, nodes_.task, answer)) return answer;
  const task_hello h = read_hello(hello);
  check_hello(h, from, nodes_);
  meet(h.node, h.boot);
  return {h.node, own_hello(nodes_, boot_)};
}
GRADUS_BODY void transport_ranks::welcomed(std::uint32_t node, std::span<const std::byte> answer) {
  meet(node, read_welcome(answer, node, nodes_).boot);
}
GRADUS_BODY void transport_ranks::refused(std::uint32_t node, const std::string& why) {
  const std::lock_guard lock(mutex_);
  end(text(nodes_.names[node], " at ", nodes_.addresses[node], " refuses ", nodes_.task, ": ", why));
}
GRADUS_BODY void transport_ranks::came(std::uint32_t node, const received_frame& frame) {
  if (port_of_sessions_.takes(node, frame)) return;
  message_decoder decoder(carrier_->limits());
  const decoded_message& m = decoder.decode(frame.bytes);
  if (node >= peers_.size() || m.head.sender != node)
    raise(status::permission_denied, text("node ", node, " has sent a message in the name of node ", m.head.sender));
  const std::span<const std::byte> bytes = m.slices.empty() ? std::span<const std::byte>() : m.slices[0].bytes;
  const auto what = static_cast<says>(m.head.about);
  std::string too_early;
  std::unique_lock lock(mutex_);
  peer& p = peers_[node];
  if (m.head.incarnation != p.boot) return;  // from a process that has ended
  p.heard = tasks_.elapsed();
  if (m.head.kind == message_kind::kept) {
    // A frame has come before the one that follows the last. The missing ones are sent again, once for each number that
    // is missed, and later with a heartbeat: if each such answer, or each answer to a frame that came twice, had all
    // frames sent again, there would be more and more of both.
    if (m.head.sequence > m.head.about && m.head.about == p.acknowledged() && !p.sent.empty() &&
        std::exchange(p.missed, m.head.about + 1) != m.head.about + 1)
      p.sends_again = true;
    while (!p.sent.empty() && p.acknowledged() < m.head.about) p.sent.pop_front();
    return changed_.notify_all();
  }
  if (m.head.kind == message_kind::heartbeat) return;
  if (m.head.kind != message_kind::push || what < says::data || what > says::failed)
    raise(status::data_loss, text(nodes_.names[node], " has sent ", kind_name(m.head.kind), " ", m.head.about));
  if (m.head.sequence == p.came + 1) {
    if (what == says::data) {
      too_early = problem_of_early(node, bytes.size());
      if (!too_early.empty()) end(too_early), has_left_ = true;
      if (why_.empty()) {  // otherwise nothing is waited for any more
        aligned_buffer copy = aligned_buffer::untouched(bytes.size());
        if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
        p.early += bytes.size();
        p.data.push_back(std::move(copy));
      }
    } else if (what == says::left) {
      p.has_left = true;
    } else if (what == says::failed) {
      constexpr std::size_t most = 1000;
      std::string why(bytes.size(), ' ');
      if (!bytes.empty()) std::memcpy(why.data(), bytes.data(), bytes.size());
      p.has_left = true;
      end(text(nodes_.names[node], " has failed: ", why.substr(0, most)));
    } else {
      p.votes.push_back(what == says::takes_part);
    }
    ++p.came;
    changed_.notify_all();
  }
  const std::uint64_t taken = p.came;
  lock.unlock();
  say(node, message_kind::kept, taken, m.head.sequence);
  if (!too_early.empty()) tell_all(says::failed, too_early);
}
// Returns the problem of `bytes` more bytes that are not waited for yet; empty if there is room for them, or if the
// cluster has ended. The problem ends the cluster and not the connection, on which the same frame would be sent again.
GRADUS_BODY std::string transport_ranks::problem_of_early(std::uint32_t node, std::size_t bytes) const {
  const std::uint64_t all = peers_[node].early + bytes;
  if (!why_.empty() || all <= o_.early_bytes) return {};
  return text(nodes_.names[node], " has sent ", all, " bytes before ", nodes_.task, " waited for them; expected ",
              o_.early_bytes,
              " at most (early_bytes of rank_options). Allow more there on all workers, or train a model "
              "of this size with parameter servers");
}

}  // namespace gradus::detail
