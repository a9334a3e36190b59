// The bodies of simulated_network.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../base/body.hpp"
#include "simulated_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline std::vector<std::string> names_of_nodes(const cluster_shape& shape) {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < shape.shards; ++i) all.push_back(text("ps ", i));
  for (std::uint32_t i = 0; i < shape.workers; ++i) all.push_back(text("worker ", i));
  return all;
}
GRADUS_BODY simulated_network::simulated_network(const cluster_shape& shape, const std::shared_ptr<turn_driver>& driver,
                                                 std::uint64_t seed, const simulated_faults& faults,
                                                 std::vector<std::string>* log)
    : message_network(shape, task_system(driver)),
      simulated_links(names_of_nodes(shape), driver, seed, faults, log),
      nodes_(std::size_t{shape.shards} + shape.workers),
      program_(tasks_) {
  for (node_state& n : nodes_) {
    n.box = std::make_unique<mailbox>(tasks_);
    n.met.assign(shape_.shards, 1);
  }
  plan_cuts_and_stops();
  plan(faults_.crashes, [this](nanos length) { crash_one(length); });
  plan(faults_.ps_crashes, [this](nanos length) { crash_ps(length); });
}

// ---- messages

GRADUS_BODY void simulated_network::post(const protocol_message& m) {
  node_state& from = nodes_[m.from];
  if (m.kind == message_kind::push && (from.incarnation != m.incarnation || from.sequence != m.sequence)) {
    from.incarnation = m.incarnation, from.sequence = m.sequence;  // the first of a step
    tasks_.sleep(step_secs(m.from));
  }
  if (from.is_gone() || has_ended_) return;
  if (from.messages_left != 0 && --from.messages_left == 0) {
    crash(m.from, from.outage);
    throw simulated_crash{name_of(m.from)};
  }
  if (m.kind == message_kind::join) from.joined = m.incarnation;
  if (m.kind == message_kind::leave) from.has_said_leave = true;
  if (m.kind == message_kind::decide) decided_ = std::max(decided_, m.about);
  if (m.kind == message_kind::started && m.about < decided_) {
    counts_.lost_updates += decided_ - m.about;
    log(text("the cluster goes on from update ", m.about, ": later ones, up to ", decided_, ", are lost"));
    decided_ = m.about;
  }
  if (m.from == m.to) return from.box->put(m);  // no transport loses a message to the node itself
  std::vector<std::byte> frame;
  for (const auto& piece : frames_.encode(m)) frame.insert(frame.end(), piece.begin(), piece.end());
  const std::string line =
      text(name_of(m.from), " says to ", name_of(m.to), ": ", kind_name(m.kind), ", incarnation ", m.incarnation,
           ", sequence ", m.sequence, ", about ", m.about, "; ", frame.size(), " bytes, sum ", sum_of_bytes(frame));
  const auto shared = std::make_shared<std::vector<std::byte>>(std::move(frame));
  simulated_links::send(m.from, m.to, line, [this, shared, r = between_nodes(m.from, m.to)] { deliver(*shared, r); });
}

// What was sent to a parameter server ends with its process, as the connection does. A worker's new process gets what
// was sent to the one before.
GRADUS_BODY void simulated_network::deliver(const std::vector<std::byte>& frame, const route& r) {
  node_state& to = nodes_[r.to];
  const bool is_there = !to.is_gone() && (shape_.is_worker(r.to) || to.process == r.to_process);
  if (!is_there || (nodes_[r.from].process == r.process && !meet(r.from, r.to))) {
    ++counts_.to_nobody;
    return;
  }
  const protocol_message m = frames_.decode(frame, r.to);
  if (m.kind == message_kind::left) to.has_heard_left = true;
  ++counts_.delivered;
  to.box->put(m);
}

// ---- faults

GRADUS_BODY void simulated_network::crash_one(nanos length) {
  const std::uint32_t number = shape_.node_of(dice_.below(shape_.workers));
  const node_state& n = nodes_[number];
  if (!has_ended_ && !n.is_gone() && !n.has_said_leave && n.joined != 0) crash(number, length);
}
// A parameter server crashes where it waits, or when it is to send one of its next messages: between a record and what
// depends on it, or between the messages of one decision.
GRADUS_BODY void simulated_network::crash_ps(nanos length) {
  const std::uint32_t number = dice_.below(shape_.shards), messages = dice_.below(8);
  node_state& n = nodes_[number];
  if (has_ended_ || n.is_gone() || !n.serves || !program_.is_there()) return;
  if (messages == 0) return crash(number, length);
  n.messages_left = messages, n.outage = length;
}
GRADUS_BODY void simulated_network::crash(std::uint32_t number, nanos length) {
  node_state& n = nodes_[number];
  n.is_down = true, n.up_at = driver_->time() + length;
  let_go_on(number);
  ++(shape_.is_worker(number) ? counts_.crashes : counts_.ps_crashes);
  log(text(name_of(number), " crashes"));
  n.box->close();
  is_over_.notify_all();
}

// ---- processes

// Two nodes have a connection now, by which a task knows the processes of parameter servers. Returns false if one of
// them ends because of that.
GRADUS_BODY bool simulated_network::meet(std::uint32_t a, std::uint32_t b) {
  const bool first = sees_another(a, b), second = sees_another(b, a);
  const auto ends = [&](std::uint32_t number, std::uint32_t shard) {
    lose(number, text(name_of(shard),
                      " was started again and has lost what it held; start all tasks again: they go on "
                      "from the last checkpoint"));
  };
  if (first) ends(a, b);
  if (second) ends(b, a);
  return !first && !second;
}
// Returns whether a task sees a process that has not what the one before held.
GRADUS_BODY bool simulated_network::sees_another(std::uint32_t number, std::uint32_t shard) {
  node_state& n = nodes_[number];
  if (n.is_gone() || shape_.is_worker(shard)) return false;
  const std::uint64_t before = std::exchange(n.met[shard], nodes_[shard].process);
  return before != 0 && before != n.met[shard] && !program_.survives();
}
// Ends a task. A parameter server informs those that are connected to it, once.
GRADUS_BODY void simulated_network::lose(std::uint32_t number, const std::string& why) {
  node_state& n = nodes_[number];
  n.is_lost = true, n.why = why;
  n.up_at = driver_->time() + outage();
  ++counts_.ended;
  log(text(name_of(number), " ends: ", why));
  n.box->close();
  is_over_.notify_all();
  for (std::uint32_t i = 0; i < nodes_.size() && !shape_.is_worker(number); ++i) {
    if (i == number || nodes_[i].met[number] != n.process || is_cut(i, number) || chance(faults_.lost)) continue;
    at(driver_->time() + delay(),
       [this, r = between_nodes(number, i), what = text(name_of(number), " has stopped: ", why)] {
         const node_state& to = nodes_[r.to];
         if (!has_ended_ && !to.is_gone() && to.process == r.to_process) lose(r.to, what);
       });
  }
}
// An error of a task is that of a cluster that is lost, as long as one of its tasks has not begun again after the loss
// of a parameter server. A worker that is down alone is no such loss.
GRADUS_BODY bool simulated_network::ends_by(const error& e, std::uint32_t number) {
  if (has_ended_ || program_.survives()) return false;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const node_state& n = nodes_[i];
    bool is_behind = n.is_lost || (n.is_down && !shape_.is_worker(i));
    for (std::uint32_t k = 0; k < shape_.shards; ++k)
      is_behind = is_behind || (n.met[k] != 0 && n.met[k] != nodes_[k].process);
    if (is_behind) return lose(number, e.what()), true;
  }
  return false;
}
// Over a network a worker connects to each parameter server, and those to the decider's.
GRADUS_BODY bool simulated_network::connects(std::uint32_t from, std::uint32_t to) const {
  return from != to && (shape_.is_worker(from) ? !shape_.is_worker(to) : to == cluster_shape::decider);
}
// Connects two processes, one of which was started again, once they can reach each other.
GRADUS_BODY void simulated_network::connect(const route& r) {
  node_state& n = nodes_[r.from];
  if (has_ended_ || n.is_gone() || nodes_[r.to].is_gone()) return;
  if (n.process != r.process || nodes_[r.to].process != r.to_process) return;
  if (is_cut(r.from, r.to)) return at(driver_->time() + 1000 * one_millisecond, [this, r] { connect(r); });
  if (!meet(r.from, r.to)) return;
  is_over_.notify_all();
  if (n.joined == 0) return;
  // What was sent before may be lost, at whatever time of its own clock it was sent.
  n.box->put({message_kind::hello, r.to, r.from, n.joined, 0, static_cast<std::uint64_t>(never_due), {}, {}});
}
// A worker begins once it is connected to all parameter servers.
GRADUS_BODY void simulated_network::offer(shard_program program, const std::string& task) {
  program_.offer(std::move(program), task);
  const node_state& n = *state_here();
  {
    std::unique_lock lock(mutex_);
    is_over_.wait(lock, [&] { return has_ended_ || n.is_gone() || std::ranges::count(n.met, 0u) == 0; });
  }
  check("waited for its parameter servers");
}
GRADUS_BODY void simulated_network::serve(std::uint32_t shard) {
  node_state& n = nodes_[shard];
  n.serves = true;
  program_.serve(*this, shard);
  n.serves = false;
  if (n.is_down) throw simulated_crash{name_of(shard)};
  if (n.is_lost) raise(status::aborted, text(name_of(shard), " has ended: ", n.why));
}
GRADUS_BODY bool simulated_network::run_once(const server_def& def, std::uint32_t number,
                                             const std::function<void(server& here)>& program) {
  try {
    server task(def, shared_from_this(), tasks_);
    program(task);
    return !has_crashed(number) && (!shape_.is_worker(number) || wait_for_end(shape_.worker_of(number)));
  } catch (const error& e) {
    if (!has_crashed(number) && !ends_by(e, number)) throw;
  } catch (...) {
    if (!has_crashed(number)) throw;
  }
  return false;
}
GRADUS_BODY bool simulated_network::revive(std::uint32_t number) {
  node_state& n = nodes_[number];
  if (!wait_until_up(n.up_at)) return false;
  n.box = std::make_unique<mailbox>(tasks_);
  n.is_down = n.is_lost = n.serves = n.has_said_leave = n.has_heard_left = false;
  n.joined = 0, n.messages_left = 0, ++n.process;
  n.met.assign(shape_.shards, 0);
  reset_clock(number);
  ++counts_.restarts;
  log(text(name_of(number), " is started again"));
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (connects(number, i))
      connect(between_nodes(number, i));
    else if (connects(i, number))
      at(driver_->time() + between(0.05, 2), [this, r = between_nodes(i, number)] { connect(r); });
  return true;
}

// ---- the end

GRADUS_BODY bool simulated_network::wait_for_end(std::uint64_t worker) {
  const std::uint32_t number = shape_.node_of(worker);
  node_state& n = nodes_[number];
  n.has_said_leave = true;
  say_leave(number);
  std::unique_lock lock(mutex_);
  is_over_.wait(lock, [&] { return has_ended_ || n.is_gone() || n.joined == 0; });
  return has_ended_ || !n.is_gone();
}
// Repeated until it is answered: the machine's leave message, which no fault affects.
GRADUS_BODY void simulated_network::say_leave(std::uint32_t number) {
  const node_state& n = nodes_[number];
  if (has_ended_ || n.is_gone() || n.has_heard_left) return;
  nodes_[cluster_shape::decider].box->put(
      {message_kind::leave, number, cluster_shape::decider, n.joined, 0, 0, {}, {}});
  at(driver_->time() + 1000 * one_millisecond, [this, number, process = n.process] {
    if (nodes_[number].process == process) say_leave(number);
  });
}
// A decider that has crashed meanwhile ends nothing.
GRADUS_BODY void simulated_network::end() {
  if (const node_state* n = state_here(); n == nullptr || !n->is_gone()) close({});
}
GRADUS_BODY void simulated_network::ended() {
  for (const node_state& n : nodes_) n.box->close();
  program_.end();
}
GRADUS_BODY void simulated_network::check(const std::string& waited) const {
  const node_state* const n = state_here();
  if (n != nullptr && n->is_down) throw simulated_crash{name_of(static_cast<std::uint32_t>(n - nodes_.data()))};
  const bool is_lost = n != nullptr && n->is_lost;
  if (!has_ended_ && !is_lost) return;
  const std::string& why = is_lost ? n->why : why_;
  raise(status::aborted, text("the cluster has ended, while this worker ", waited, ": ",
                              why.empty() ? std::string("all other workers have left") : why));
}

}  // namespace gradus::detail
