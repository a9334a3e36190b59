// The bodies of remote_network.hpp.
#pragma once
#include <algorithm>
#include <cstdio>
#include <exception>

#include "../base/body.hpp"
#include "plain_bytes.hpp"
#include "remote_network.hpp"
#include "task_crew.hpp"
#include "transport_ranks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The last messages of a parameter server, in a hello that needs no answer: the cluster has ended without an error, or
// this task has ended with one, and the reason. The first is also the answer to it, for which number 0 waits; a
// worker's `leave` announces that.
inline constexpr std::uint64_t says_goodbye = 1, says_gone = 2, waits_for_end = 1;
// The request for the list of members, to parameter server 0 in such a hello, and the answer in one.
inline constexpr std::uint64_t asks_members = 3, tells_members = 4;

// What may have happened where nobody is there, as the end of an error.
inline constexpr std::string_view lonely =
    "; if the last step is saved, the run is complete, and this task need not be started again";

// Returns whether a message of this kind needs the chief's certificate: only the chief's task may begin and save.
constexpr bool is_of_chief(message_kind k) {
  return k == message_kind::begin || k == message_kind::start || k == message_kind::hold ||
         k == message_kind::release || k == message_kind::fetch;
}

GRADUS_BODY remote_network::remote_network(const server_def& def, std::unique_ptr<transport> carrier,
                                           const task_system& tasks, const remote_options& o)
    : message_network({0, 0}, tasks),
      o_(o),
      nodes_(def),
      box_(tasks),
      changed_(tasks),
      peers_(nodes_.names.size()),
      program_(tasks),
      dead_after_(o.members.dead_after),
      carrier_(std::move(carrier)),
      out_(carrier_->limits()) {
  shape_ = {nodes_.shards, nodes_.workers};
  if (shape_.shards == 0 || shape_.workers == 0)
    raise(status::invalid_argument, text("a cluster that trains: expected one ps and one worker or chief or more, "
                                         "found ",
                                         shape_.shards, " and ", shape_.workers));
  for (peer& p : peers_) p.frames = std::make_unique<message_frames>(carrier_->limits());
  carrier_->tell(*this);
  if (!is_ps()) return;
  port_ = carrier_->listen(nodes_.addresses[nodes_.me]);
  if (nodes_.me != cluster_shape::decider) connect(cluster_shape::decider, {});
}

GRADUS_BODY remote_network::~remote_network() {
  close("its server has ended");
  beats_ = {};
  carrier_->close(o_.close_secs);
}

GRADUS_BODY int remote_network::share(transport_told* sessions, transport*& carrier) {
  if (!is_ps()) return 0;
  carrier = carrier_.get();
  port_of_sessions_.give_to(sessions);
  return port_;
}
GRADUS_BODY void remote_network::connect(std::uint32_t node, const task_hello& h) {
  carrier_->connect(node, nodes_.addresses[node], own_hello(nodes_, boot_, h));
}

GRADUS_BODY std::shared_ptr<task_network> network_by(const server_def& def, std::unique_ptr<transport> carrier,
                                                     const task_system& run, double connect_secs) {
  if (cluster_nodes(def).shards == 0)
    return std::make_shared<transport_ranks>(def, std::move(carrier), run, rank_options{.connect_secs = connect_secs});
  remote_options o;
  o.connect_secs = connect_secs;
  return std::make_shared<remote_network>(def, std::move(carrier), run, o);
}

// ---- programs

GRADUS_BODY void remote_network::offer(shard_program program, const std::string& task) {
  if (!program.cannot_be_sent.empty())
    raise(status::invalid_argument,
          text("this policy of the optimizer cannot be sent to a parameter server: ", program.cannot_be_sent,
               "; expected one of numbers, strings and lists of them, or a lambda without captures. Make it a struct "
               "whose members are what the lambda captures"));
  const task_hello h{.program = program.name, .recipe = program.recipe};
  program_.offer(std::move(program), task);
  for (std::uint32_t k = 0; k < shape_.shards; ++k) connect(k, h);
  const nanos since = now();
  std::string waited;
  for (double patience = static_cast<double>(o_.patience) / 1e9, said = 0;; patience *= 2) {
    std::unique_lock lock(mutex_);
    said = std::min(said + patience, o_.connect_secs);
    const bool is_done =
        changed_.wait_for(lock, said - secs_since(since), [&] { return ended_ || not_welcome().empty(); });
    const std::string missing = not_welcome();
    waited = text("waited for ", missing.empty() ? "its parameter servers" : missing, waits_for(since));
    if (is_done) break;
    lock.unlock();
    if (said == o_.connect_secs) raise(status::deadline_exceeded, text(nodes_.task, " ", waited, problems(), lonely));
    say_line(text(nodes_.task, " has ", waited, problems()));
  }
  if (is_over()) return say_line(text("the cluster has ended; ", nodes_.task, " had done its part before"));
  check(waited);
  start_beating();
}
// Heartbeats go on until the cluster ends, also for another trainer of this process.
GRADUS_BODY void remote_network::start_beating() {
  if (beats_.joinable()) return;
  waits_since_ = now();
  beats_ = tasks_.start("heartbeats of a task", "give the process one more thread", [this] { beat(); });
}
GRADUS_BODY double remote_network::secs_since(nanos since) const { return static_cast<double>(now() - since) / 1e9; }
GRADUS_BODY std::string remote_network::waits_for(nanos since) const { return text(" for ", secs_since(since), " s"); }
GRADUS_BODY std::string remote_network::problems() const {
  std::string why;
  for (std::uint32_t k = 0; k < shape_.shards; ++k)
    if (const std::string problem = carrier_->problem(k); !problem.empty())
      why += text("; ", nodes_.names[k], ": ", problem);
  return why;
}
GRADUS_BODY std::string remote_network::not_welcome() const {
  std::string s;
  for (std::uint32_t k = 0; k < shape_.shards; ++k)
    if (!peers_[k].is_welcome) s += text(s.empty() ? "" : ", ", nodes_.names[k], " at ", nodes_.addresses[k]);
  return s;
}

GRADUS_BODY shard_program remote_network::program_of(const task_hello& h) const {
  const shard_maker::function make = shard_maker::find(h.program);
  if (make == nullptr)
    raise(status::failed_precondition, text(nodes_.task, " has no optimizer as that of ", h.task,
                                            " in its program; start all tasks from one build. It is ", h.program));
  shard_program made = make(h.recipe);
  made.name = h.program, made.recipe = h.recipe;
  return made;
}

GRADUS_BODY void remote_network::serve(std::uint32_t shard) {
  start_beating();
  try {
    program_.serve(*this, shard);
  } catch (...) {
    tell_all(says_gone, error_text(std::current_exception()));
    carrier_->close(o_.close_secs);
    throw;
  }
  const std::string why = last_words();
  carrier_->close(o_.close_secs);
  if (!why.empty()) raise(kind_, text(nodes_.task, " has ended: ", why));
}

// Tells the others how this parameter server has ended, and returns the reason. If it is number 0, it waits until all
// that end with it have heard of the end: one whose connection was broken then, or that was killed and is started
// again, finds it still there.
GRADUS_BODY std::string remote_network::last_words() {
  std::unique_lock lock(mutex_);
  const std::string why = why_;
  if (is_stopped_ && !why.empty()) return {};
  const auto done = [this] { return is_stopped_ || std::ranges::none_of(peers_, &peer::is_waited_for); };
  for (const double until = tasks_.elapsed() + o_.last_secs;;) {
    lock.unlock();
    tell_all(why.empty() ? says_goodbye : says_gone, why);
    if (!why.empty() || nodes_.me != cluster_shape::decider || tasks_.elapsed() > until) return why;
    lock.lock();
    if (changed_.wait_for(lock, static_cast<double>(o_.retry) / 1e9, done)) return why;
  }
}

GRADUS_BODY void remote_network::server_stopped() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
    if (ended_) return;
  }
  if (is_ps()) tell_all(says_gone);
  close("its server was stopped");
}

// ---- messages

GRADUS_BODY mailbox& remote_network::inbox(std::uint32_t node) {
  if (node != nodes_.me)
    raise(status::internal, text("the mailbox of node ", node, " is not in the process of ", nodes_.me));
  return box_;
}
GRADUS_BODY void remote_network::post(const protocol_message& m) {
  if (m.to == nodes_.me) return box_.put(m);
  const std::lock_guard sending(sending_);
  if (!is_ps()) {
    const std::lock_guard lock(mutex_);
    if (m.kind == message_kind::join) incarnation_ = m.incarnation, has_left_ = false;
    if (m.kind == message_kind::leave) has_left_ = true;
  }
  const auto pieces = out_.encode(m);
  // A piece of a gradient that is sent ahead is in memory of the push.
  is_lent(m.kind) || m.kind == message_kind::ahead ? carrier_->send_lent(m.to, pieces) : carrier_->send(m.to, pieces);
}
GRADUS_BODY void remote_network::beat() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, static_cast<double>(o_.heartbeat) / 1e9, [&] { return ended_; });
    if (ended_) return;
    const std::uint64_t joined = is_ps() || has_left_ ? 0 : incarnation_;
    lock.unlock();
    if (joined != 0) post({message_kind::heartbeat, nodes_.me, cluster_shape::decider, joined, 0, 0, {}, {}});
    if (const std::string why = waits_in_vain(); !why.empty()) return close(why, status::deadline_exceeded);
    lock.lock();
  }
}
// Returns the wait that has lasted for too long: of a parameter server to which no worker is connected, or of a worker
// for a run that the chief does not begin. Once a run has begun, no wait of a worker ends by time. Empty: there is
// none.
GRADUS_BODY std::string remote_network::waits_in_vain() {
  bool is_worker_there = false;
  for (std::uint32_t k = shape_.shards; is_ps() && k < nodes_.names.size(); ++k)
    is_worker_there = is_worker_there || carrier_->problem(k).empty();
  const std::lock_guard lock(mutex_);
  const bool waits = is_ps() ? !is_worker_there : incarnation_ != 0 && !has_left_ && !has_begun_;
  if (!waits) waits_since_ = now();
  if (secs_since(waits_since_) < o_.connect_secs) return {};
  return text("it has waited for ",
              is_ps() ? std::string("a worker") : text("the run to begin, by ", nodes_.names[shape_.shards], ','),
              waits_for(waits_since_), lonely);
}
GRADUS_BODY worker_options remote_network::patience(worker_options o) const {
  o.retry = o_.retry, o.retry_most = o_.retry_most, o.patience = o_.patience, o.heartbeat = o_.heartbeat;
  return o;
}
GRADUS_BODY void remote_network::report(const std::string& wait) {
  const std::string why = problems();
  say_line(text(wait, why.empty() ? text("; its parameter servers are connected: ", absent_workers()) : why));
}
GRADUS_BODY std::string remote_network::absent_workers() {
  std::string absent;
  try {
    const std::vector<cluster_member> all = known_members();
    for (std::uint32_t k = shape_.shards; k < all.size(); ++k) {
      const cluster_member& m = all[k];
      const bool is_silent = m.state == cluster_member::silent;
      if (k == nodes_.me || (!is_silent && m.state != cluster_member::not_heard)) continue;
      absent += text(absent.empty() ? "" : ", ", m.task, " at ", m.address);
      absent += is_silent ? text(" is silent for ", m.silent_secs, " s") : " has not been heard of";
    }
  } catch (const error&) {
    return text(nodes_.names[cluster_shape::decider], " does not say which workers are there");
  }
  return absent.empty() ? "all workers are there, and the step of one may take long" : absent;
}
GRADUS_BODY void remote_network::say_line(const std::string& line) const {
  if (o_.log) return o_.log(line);
  std::fprintf(stderr, "gradus: %s\n", line.c_str());
}

// ---- the end

GRADUS_BODY void remote_network::close(const std::string& why, status kind) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    why_ = why, kind_ = kind;
    changed_.notify_all();
  }
  program_.end();
  box_.close();
}
GRADUS_BODY void remote_network::end() { close({}); }
// Returns whether parameter server 0 hears another worker, which has not left.
GRADUS_BODY bool remote_network::another_trains() {
  try {
    const std::vector<cluster_member> all = known_members();
    for (std::uint32_t k = shape_.shards; k < all.size(); ++k)
      if (k != nodes_.me && all[k].state == cluster_member::alive) return true;
  } catch (const error&) {  // parameter server 0 does not answer
  }
  return false;
}
GRADUS_BODY void remote_network::finish() {
  std::unique_lock lock(mutex_);
  const nanos begun = now();
  nanos since = begun;  // when it was last known that another worker trains
  nanos next_report = o_.patience;
  while (!ended_ && incarnation_ != 0) {
    const std::uint64_t joined = incarnation_;
    lock.unlock();
    // Sent again and again, since it may be lost, and since a decider that comes back has only what is in its log.
    post({message_kind::leave, nodes_.me, cluster_shape::decider, joined, 0, waits_for_end, {}, {}});
    while (box_.take([](const protocol_message&) {}, at_once)) {
    }
    lock.lock();
    changed_.wait_for(lock, static_cast<double>(o_.retry) / 1e9, [&] { return ended_; });
    if (!ended_ && now() - begun >= next_report) {
      lock.unlock();
      report(text(nodes_.task, " has done its part, and has waited for the others for ", secs_since(begun), " s"));
      next_report *= 2;
      lock.lock();
    }
    const double waited = static_cast<double>(now() - since) / 1e9;
    if (ended_ || waited < o_.connect_secs) continue;
    lock.unlock();
    const bool goes_on = another_trains();
    const std::string absent = goes_on ? std::string() : absent_workers();
    lock.lock();
    if (goes_on)
      since = now();
    else if (!ended_)
      raise(status::deadline_exceeded,
            text(nodes_.task, " has done its part, and waited for the others for ", waited,
                 " s; see what they do, and start again those that are not there: ", absent));
  }
  if (!why_.empty())
    raise(status::aborted, text(nodes_.task, " has done its part, and the cluster was lost before all had: ", why_));
  lock.unlock();
  say(cluster_shape::decider, says_goodbye);
}
GRADUS_BODY void remote_network::say(std::uint32_t node, std::uint64_t about, std::span<const wire_slice> slices) {
  message_encoder encoder(carrier_->limits());
  carrier_->send(node, encoder.encode({.kind = message_kind::hello, .sender = nodes_.me, .about = about}, slices));
}
GRADUS_BODY void remote_network::tell_all(std::uint64_t about, const std::string& why) {
  const wire_slice reason{"why", dtype::uint8, 0, std::as_bytes(std::span(why))};
  for (std::uint32_t k = 0; k < nodes_.names.size(); ++k)
    if (k != nodes_.me) say(k, about, std::span(&reason, why.empty() ? 0 : 1));
}
GRADUS_BODY bool remote_network::is_over() const {
  const std::lock_guard lock(mutex_);
  return ended_ && why_.empty() && !has_begun_;
}
GRADUS_BODY void remote_network::check(const std::string& waited) const {
  const std::lock_guard lock(mutex_);
  if (!ended_) return;
  raise(kind_, text(is_refused_ ? text(nodes_.task, " has no place in its cluster any more, which it found while it ")
                                : std::string("the cluster has ended, while this worker "),
                    waited, ": ", why_.empty() ? std::string("all other workers have left") : why_));
}
// ---- members

GRADUS_BODY std::vector<cluster_member> remote_network::members_here() {
  return members_of(nodes_, peers_, tasks_.elapsed(), static_cast<double>(dead_after_) / 1e9);
}
GRADUS_BODY membership_options remote_network::members(nanos transit) {
  const std::lock_guard lock(mutex_);
  dead_after_ = o_.members.dead_after + transit;
  return {o_.members.suspect_after, dead_after_};
}
GRADUS_BODY void remote_network::tell_members(std::uint32_t node) {
  std::vector<std::byte> bytes;
  {
    const std::lock_guard lock(mutex_);
    bytes_out out(bytes);
    put_plain(out, members_here());
  }
  const wire_slice list{"members", dtype::uint8, 0, bytes};
  say(node, tells_members, std::span(&list, 1));
}
GRADUS_BODY std::vector<cluster_member> remote_network::known_members() {
  std::unique_lock lock(mutex_);
  if (nodes_.me == cluster_shape::decider) return members_here();
  const std::uint64_t before = answers_;
  const double since = tasks_.elapsed();
  while (answers_ == before && !ended_ && tasks_.elapsed() - since < o_.answer_secs) {
    lock.unlock();
    say(cluster_shape::decider, asks_members);
    lock.lock();
    changed_.wait_for(lock, static_cast<double>(o_.retry) / 1e9, [&] { return answers_ != before || ended_; });
  }
  if (answers_ == before)
    raise(status::deadline_exceeded,
          text(nodes_.names[cluster_shape::decider], " at ", nodes_.addresses[cluster_shape::decider],
               " does not list its members", ended_ ? ": the cluster has ended" : ""));
  return members_;
}

GRADUS_BODY std::uint64_t remote_network::refused_messages() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

// ---- callbacks of the transport

GRADUS_BODY void remote_network::see_boot(std::uint32_t node, std::uint64_t boot) {
  bool is_lost = false;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t before = peers_[node].meet(boot, tasks_.elapsed());
    // A worker that comes when all have left had done its part: it hears so, and has to answer, as all that are new.
    const bool has_to_hear = node < shape_.shards || (ended_ && why_.empty());
    if (before != boot) peers_[node].has_left = false, peers_[node].is_waited_for = has_to_hear;
    is_lost = node < shape_.shards && before != 0 && before != boot && program_.is_there() && !program_.survives();
  }
  if (is_lost)
    close(text(nodes_.names[node], " at ", nodes_.addresses[node],
               " was started again and has lost what it held; start all tasks again: they go on from the last "
               "checkpoint"));
}

GRADUS_BODY transport_greeting remote_network::greeted(std::span<const std::byte> hello, const transport_peer& from) {
  if (transport_greeting answer; port_of_sessions_.greets(hello, from, nodes_.task, answer)) return answer;
  const task_hello h = read_hello(hello);
  check_hello(h, from, nodes_);
  {
    const std::lock_guard lock(mutex_);
    if (peers_[h.node].was_replaced(h.boot))
      raise(status::failed_precondition, text("another process has come as ", h.task,
                                              " since this one did, and has its place; end one of the two, and "
                                              "start each task once"));
  }
  if (h.node >= shape_.shards) program_.offer(program_of(h), h.task);
  see_boot(h.node, h.boot);
  const std::lock_guard lock(mutex_);
  peers_[h.node].role = from.role;
  return {h.node, own_hello(nodes_, boot_)};
}
GRADUS_BODY void remote_network::welcomed(std::uint32_t node, std::span<const std::byte> answer) {
  see_boot(node, read_welcome(answer, node, nodes_).boot);
  const std::lock_guard lock(mutex_);
  peers_[node].is_welcome = true;
  changed_.notify_all();
  if (incarnation_ != 0)
    box_.put({message_kind::hello, node, nodes_.me, incarnation_, 0, static_cast<std::uint64_t>(now()), {}, {}});
}
GRADUS_BODY void remote_network::refused(std::uint32_t node, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    is_refused_ = is_refused_ || !ended_;
  }
  close(text(nodes_.names[node], " at ", nodes_.addresses[node], " refuses ", nodes_.task, ": ", why));
}
GRADUS_BODY void remote_network::came(std::uint32_t node, const received_frame& frame) {
  if (port_of_sessions_.takes(node, frame)) return;
  peer& p = peers_[node];
  const std::lock_guard receiving(*p.receiving);
  protocol_message m = p.frames->decode(frame.bytes, nodes_.me);
  if (m.from != node)
    raise(status::permission_denied, text(nodes_.names[node], " has sent a message in the name of node ", m.from));
  bool is_refused = false;
  {
    const std::lock_guard lock(mutex_);
    p.heard = tasks_.elapsed();
    is_refused = is_of_chief(m.kind) && p.role == "worker";
    if (is_refused) ++refused_;
    if (m.kind == message_kind::leave) p.has_left = true, p.is_waited_for = m.about == waits_for_end;
    if (m.kind == message_kind::join) p.has_left = false, p.is_waited_for = p.is_waited_for && ended_;
    if (m.kind == message_kind::token) has_begun_ = true;
    if (m.kind == message_kind::hello && (m.about == says_goodbye || m.about == says_gone))
      p.has_left = true, p.is_waited_for = false, changed_.notify_all();
  }
  if (m.kind == message_kind::hello) {
    if (node == cluster_shape::decider && m.about == says_goodbye) close({});
    if (m.about == asks_members && nodes_.me == cluster_shape::decider) return tell_members(node);
    if (m.about == tells_members && node == cluster_shape::decider && !m.parts.empty()) {
      bytes_in in(m.parts[0].bytes, "list of members");
      kept_texts texts;
      auto told = take_plain<std::vector<cluster_member>>(in, texts);
      in.end();
      const std::lock_guard lock(mutex_);
      members_ = std::move(told);
      ++answers_;
      return changed_.notify_all();
    }
    if (node < shape_.shards && m.about == says_gone) {
      constexpr std::size_t most = 1000;
      std::string why = m.parts.empty() ? "" : ": ";
      if (!m.parts.empty())
        why.append(reinterpret_cast<const char*>(m.parts[0].bytes.data()), std::min(most, m.parts[0].bytes.size()));
      close(text(nodes_.names[node], " at ", nodes_.addresses[node], " has stopped", why));
    }
    return;
  }
  if (is_refused) return;
  // A message with few values in a large frame does not hold the frame's memory.
  if (payload_bytes(m.parts) >= frame.bytes.size() / 2) m.keeper = frame.keeper;
  box_.put(m);
}

}  // namespace gradus::detail
