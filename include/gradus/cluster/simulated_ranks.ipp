// The bodies of simulated_ranks.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../base/body.hpp"
#include "shard_program.hpp"
#include "simulated_ranks.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// ---- the transport

GRADUS_BODY simulated_transport::simulated_transport(simulated_ranks& all, std::uint32_t node, std::uint64_t process)
    : all_(&all), node_(node), process_(process), changed_(all.tasks_) {}

GRADUS_BODY int simulated_transport::listen(const std::string&) {
  all_->nodes_[node_].transport = this;
  receiver_ = all_->tasks_.start("a worker's transport", "ask for fewer workers", [this] { receive(); });
  return 1;
}
GRADUS_BODY void simulated_transport::connect(std::uint32_t node, const std::string&, std::vector<std::byte> hello) {
  wanted_[node].hello = std::move(hello);
  all_->at(all_->driver_->time() + all_->delay(),
           [all = all_, from = node_, process = process_, node] { all->dial(from, process, node); });
}
GRADUS_BODY void simulated_transport::send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) {
  if (is_closed_ || !connected_.contains(node)) return;
  std::vector<std::byte> frame;
  for (const auto& piece : pieces) frame.insert(frame.end(), piece.begin(), piece.end());
  all_->post(*this, node, std::move(frame));
}
GRADUS_BODY void simulated_transport::put(std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  came_.push_back(std::move(what));
  changed_.notify_all();
}
GRADUS_BODY void simulated_transport::receive() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closed_ || !came_.empty(); });
    if (is_closed_) return;
    const std::function<void()> what = std::move(came_.front());
    came_.pop_front();
    lock.unlock();
    try {
      what();
    } catch (...) {  // no peer is hostile here, so it is a fault of the library
      all_->fail(std::current_exception(), all_->name_of(node_));
    }
    lock.lock();
  }
}
// What was sent arrives after the end of the process too; what comes then arrives nowhere.
GRADUS_BODY void simulated_transport::close(double) {
  if (auto& n = all_->nodes_[node_]; n.transport == this) n.transport = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  receiver_ = {};
}

// ---- a rank

GRADUS_BODY simulated_rank::simulated_rank(simulated_ranks& all, std::uint32_t node, const server_def& def,
                                           const rank_options& o, std::unique_ptr<simulated_transport> carrier,
                                           const task_system& tasks)
    : all_(&all), node_(node), ranks_(def, std::move(carrier), tasks, o) {}

// A process that has crashed leaves its program by an exception that is no error of the library.
template <class F>
auto simulated_rank::unless_crashed(F f) {
  all_->check_crash(node_);
  try {
    const auto result = f();
    all_->check_crash(node_);
    return result;
  } catch (const error&) {
    all_->check_crash(node_);
    throw;
  }
}
GRADUS_BODY bool simulated_rank::all_take_part(bool this_one) {
  return unless_crashed([&] {
    const bool all = ranks_.all_take_part(this_one);
    if (all) all_->compute(node_);
    return all;
  });
}
GRADUS_BODY std::size_t simulated_rank::send(int to, std::span<const std::byte> bytes) {
  return unless_crashed([&] { return ranks_.send(to, bytes); });
}
GRADUS_BODY std::size_t simulated_rank::receive(int from, std::span<std::byte> into) {
  return unless_crashed([&] { return ranks_.receive(from, into); });
}
GRADUS_BODY void simulated_rank::wait(std::size_t number) {
  unless_crashed([&] { return ranks_.wait(number), true; });
}
GRADUS_BODY void simulated_rank::fail(const std::exception_ptr& error) {
  if (!all_->has_crashed(node_)) ranks_.fail(error);
}
GRADUS_BODY void simulated_rank::offer(shard_program program, const std::string& task) {
  ranks_.offer(std::move(program), task);
}
GRADUS_BODY void simulated_rank::finish() {
  unless_crashed([&] {
    ranks_.finish();
    all_->wait_for_end(node_);
    return true;
  });
}

// ---- processes

inline std::vector<std::string> names_of_ranks(int workers) {
  std::vector<std::string> all;
  for (int i = 0; i < workers; ++i) all.push_back(text("worker ", i));
  return all;
}
GRADUS_BODY simulated_ranks::simulated_ranks(int workers, const std::shared_ptr<turn_driver>& driver,
                                             std::uint64_t seed, const simulated_faults& faults,
                                             std::vector<std::string>* log)
    : simulated_links(names_of_ranks(workers), driver, seed, faults, log),
      nodes_(static_cast<std::size_t>(workers)),
      tasks_(driver) {
  plan_cuts_and_stops();
  plan(faults_.crashes, [this](nanos length) { crash_one(length); });
}

GRADUS_BODY std::shared_ptr<simulated_rank> simulated_ranks::begin(std::uint32_t number, const server_def& def) {
  node_state& n = nodes_[number];
  auto rank = std::make_shared<simulated_rank>(*this, number, def, rank_options{.boot = n.process},
                                               std::make_unique<simulated_transport>(*this, number, n.process), tasks_);
  n.rank = rank.get();
  return rank;
}
GRADUS_BODY bool simulated_ranks::run_once(const server_def& def, std::uint32_t number,
                                           const std::function<void(server& here)>& program) {
  node_state& n = nodes_[number];
  const std::shared_ptr<simulated_rank> rank = begin(number, def);
  const struct process_ends {
    node_state* of;
    ~process_ends() { of->rank = nullptr; }
  } after{&n};
  try {
    server task(def, rank, tasks_);
    program(task);
    task.finish();
    return true;
  } catch (const error& e) {
    if (!n.is_gone()) {
      if (has_ended_ || !rank->ranks_.has_ended()) throw;
      lose(number, e.what());
    }
  } catch (...) {
    if (!n.is_gone()) throw;
  }
  return false;
}
GRADUS_BODY bool simulated_ranks::revive(std::uint32_t number) {
  node_state& n = nodes_[number];
  if (!wait_until_up(n.up_at)) return false;
  n = {.process = n.process + 1};
  reset_clock(number);
  ++counts_.restarts;
  log(text(name_of(number), " is started again"));
  return true;
}

// ---- connections and frames

// Connects two processes once they can reach each other, and again when the other one is another process.
GRADUS_BODY void simulated_ranks::dial(std::uint32_t from, std::uint64_t process, std::uint32_t to) {
  simulated_transport* const caller = nodes_[from].transport;
  if (has_ended_ || caller == nullptr || caller->process_ != process) return;
  simulated_transport::wanted& link = caller->wanted_[to];
  simulated_transport* const called = nodes_[to].transport;
  if (called != nullptr && link.dialled != called->process_ && !is_cut(from, to)) {
    link.dialled = called->process_;
    log(text(name_of(from), " connects to ", name_of(to)));
    called->put([this, called, from, process, to, hello = link.hello] {
      const transport_greeting greeting = called->listener_->greeted(hello, {name_of(from), "", true});
      called->connected_[from] = process;
      at(driver_->time() + delay(), [this, from, process, to, other = called->process_, answer = greeting.answer] {
        simulated_transport* const back = nodes_[from].transport;
        if (back == nullptr || back->process_ != process) return;
        back->connected_[to] = other;
        back->put([back, to, answer] { back->listener_->welcomed(to, answer); });
      });
    });
  }
  at(driver_->time() + 1000 * one_millisecond, [this, from, process, to] { dial(from, process, to); });
}

GRADUS_BODY void simulated_ranks::post(simulated_transport& by, std::uint32_t to, std::vector<std::byte> frame) {
  const std::uint32_t from = by.node_;
  node_state& n = nodes_[from];
  if (has_ended_ || n.is_down || n.process != by.process_) return;
  if (n.rank != nullptr && !n.is_gone() && n.frames_left != 0 && --n.frames_left == 0) return crash(from, n.outage);
  const message_head& head = frames_.decode(frame).head;
  const std::string line = text(name_of(from), " says to ", name_of(to), ": ", kind_name(head.kind), ", incarnation ",
                                head.incarnation, ", sequence ", head.sequence, ", about ", head.about, "; ",
                                frame.size(), " bytes, sum ", sum_of_bytes(frame));
  const route r{from, to, by.process_, by.connected_.at(to), std::make_shared<const std::vector<std::byte>>(frame)};
  simulated_links::send(
      from, to, line, [this, r] { deliver(r); }, &by.streams_[to]);
}
GRADUS_BODY void simulated_ranks::deliver(const route& r) {
  simulated_transport* const there = nodes_[r.to].transport;
  if (there == nullptr || there->process_ != r.to_process) {
    ++counts_.to_nobody;
    return;
  }
  if (const auto known = there->connected_.find(r.from);
      known == there->connected_.end() || known->second != r.process) {
    // It comes behind the answer to the hello, in the same stream; or the connection is that of another process now.
    const auto link = there->wanted_.find(r.from);
    if (link != there->wanted_.end() && link->second.dialled == r.process)
      return at(driver_->time() + one_millisecond, [this, r] { deliver(r); });
    ++counts_.to_nobody;
    return;
  }
  ++counts_.delivered;
  there->put([there, r] { there->listener_->came(r.from, {*r.frame}); });
}

// ---- faults

GRADUS_BODY void simulated_ranks::check_crash(std::uint32_t node) const {
  if (nodes_[node].is_down) throw simulated_crash{name_of(node)};
}
GRADUS_BODY void simulated_ranks::compute(std::uint32_t node) { tasks_.sleep(step_secs(node)); }

// A worker crashes at once, or when it is to send one of its next frames: between those of one step.
GRADUS_BODY void simulated_ranks::crash_one(nanos length) {
  const std::uint32_t number = dice_.below(static_cast<std::uint32_t>(nodes_.size())), frames = dice_.below(8);
  node_state& n = nodes_[number];
  if (has_ended_ || n.is_gone() || n.is_done || n.rank == nullptr) return;
  if (frames == 0) return crash(number, length);
  n.frames_left = frames, n.outage = length;
}
GRADUS_BODY void simulated_ranks::crash(std::uint32_t number, nanos length) {
  node_state& n = nodes_[number];
  n.is_down = true, n.up_at = driver_->time() + length;
  n.transport = nullptr;
  let_go_on(number);
  ++counts_.crashes;
  log(text(name_of(number), " crashes"));
  n.rank->ranks_.lose("it has crashed");
  lose_done(text(name_of(number), " has crashed"));
}
GRADUS_BODY void simulated_ranks::lose(std::uint32_t number, const std::string& why) {
  node_state& n = nodes_[number];
  n.is_lost = true;
  n.up_at = driver_->time() + outage();
  ++counts_.ended;
  log(text(name_of(number), " ends: ", why));
  is_over_.notify_all();
  lose_done(why);
}
// Workers that have done their part begin again with the others.
GRADUS_BODY void simulated_ranks::lose_done(const std::string& why) {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].is_done && !nodes_[i].is_gone()) lose(i, text("the cluster was lost: ", why));
}

// ---- the end

// The worker has heard that all others have done their part. They may have begun again meanwhile, and need this one.
GRADUS_BODY void simulated_ranks::wait_for_end(std::uint32_t number) {
  node_state& n = nodes_[number];
  bool all_done = true;
  for (std::uint32_t i = 0; i < nodes_.size() && !n.is_gone() && !has_ended_; ++i) {
    if (i == number) continue;
    const node_state& other = nodes_[i];
    all_done = all_done && other.is_done;
    if (other.is_gone() || n.rank->ranks_.process_of(i) != other.process)
      lose(number, text(name_of(i), " was started again after it had done its part"));
  }
  n.is_done = !n.is_gone();
  if (n.is_done && all_done) close({});
  {
    std::unique_lock lock(mutex_);
    is_over_.wait(lock, [&] { return has_ended_ || n.is_gone(); });
  }
  if (n.is_lost) raise(status::aborted, text("the cluster of ", name_of(number), " was lost before all had left"));
}
GRADUS_BODY void simulated_ranks::ended() {
  for (const node_state& n : nodes_)
    if (n.rank != nullptr && !why_.empty()) n.rank->ranks_.lose(why_);
}

}  // namespace gradus::detail
