// The bodies of simulated_network.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../base/body.hpp"
#include "simulated_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY simulated_network::simulated_network(const cluster_shape& shape, const std::shared_ptr<turn_driver>& driver,
                                                 std::uint64_t seed, const simulated_faults& faults,
                                                 std::vector<std::string>* log)
    : message_network(shape, task_system(driver)),
      driver_(driver),
      faults_(faults),
      dice_{seed ^ 0x6A09E667F3BCC909u},
      nodes_(std::size_t{shape.shards} + shape.workers),
      program_(tasks_),
      changed_(tasks_),
      lines_(log) {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    node_state& n = nodes_[i];
    n.box = std::make_unique<mailbox>(tasks_);
    n.machine = driver_->add_machine({.name = name_of(i)});
    n.slowness = 1 + (faults_.slowness - 1) * dice_.uniform();
    reset_clock(n);
  }
  plan();
}

GRADUS_BODY std::string simulated_network::name_of(std::uint32_t node) const {
  return shape_.is_worker(node) ? text("worker ", shape_.worker_of(node)) : text("ps ", node);
}

GRADUS_BODY nanos simulated_network::between(double least_secs, double most_secs) {
  return static_cast<nanos>((least_secs + (most_secs - least_secs) * dice_.uniform()) * 1e9);
}

// Sets the clock ahead or behind, so that a machine which is started again may show an earlier time than before.
GRADUS_BODY void simulated_network::reset_clock(node_state& n) {
  if (!faults_.skewed_clocks) return;
  const nanos ahead = between(0, 600) - 300 * 1000 * one_millisecond;
  driver_->set_clock(n.machine, ahead, 0.99 + 0.02 * dice_.uniform());
}

GRADUS_BODY void simulated_network::plan() {
  const auto times = [&](int n, void (simulated_network::*what)(nanos)) {
    for (int i = 0; i < n; ++i) {
      const nanos when = between(0, faults_.within);
      const nanos length = between(faults_.least_outage, faults_.most_outage);
      at(when, [this, what, length] { (this->*what)(length); });
    }
  };
  times(faults_.cuts, &simulated_network::cut);
  times(faults_.stops, &simulated_network::stop_one);
  times(faults_.crashes, &simulated_network::crash_one);
}

GRADUS_BODY void simulated_network::log(const std::string& what) {
  const std::string line = text(seconds_text(driver_->time()), " ", what);
  for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  if (lines_ != nullptr) lines_->push_back(line);
}

GRADUS_BODY void simulated_network::at(nanos time, std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  due_.emplace(time, std::move(what));
  changed_.notify_all();
}

// ---- messages

GRADUS_BODY void simulated_network::post(const protocol_message& m) {
  node_state& from = nodes_[m.from];
  if (m.kind == message_kind::push && (from.incarnation != m.incarnation || from.sequence != m.sequence)) {
    from.incarnation = m.incarnation, from.sequence = m.sequence;  // the first of a step
    tasks_.sleep(from.slowness * static_cast<double>(between(faults_.least_step, faults_.most_step)) / 1e9);
  }
  if (from.is_down || has_ended_) return;
  if (m.kind == message_kind::join) from.joined = m.incarnation;
  if (m.kind == message_kind::leave) from.has_said_leave = true;
  if (m.from == m.to) return from.box->put(m);  // no transport loses a message to the node itself
  std::vector<std::byte> frame;
  for (const auto& piece : frames_.encode(m)) frame.insert(frame.end(), piece.begin(), piece.end());
  std::uint64_t content = 0xCBF29CE484222325u;
  for (const std::byte b : frame) content = (content ^ static_cast<std::uint64_t>(b)) * 0x100000001B3u;
  const std::string line =
      text(name_of(m.from), " says to ", name_of(m.to), ": ", kind_name(m.kind), ", incarnation ", m.incarnation,
           ", sequence ", m.sequence, ", about ", m.about, "; ", frame.size(), " bytes, sum ", content);
  ++counts_.messages;
  const nanos now = driver_->time();
  if (now < cut_until_ && is_cut_off_[m.from] != is_cut_off_[m.to]) {
    ++counts_.cut_off;
    return log(line + "; cut off");
  }
  if (chance(faults_.lost)) {
    ++counts_.lost;
    return log(line + "; lost");
  }
  const auto shared = std::make_shared<std::vector<std::byte>>(std::move(frame));
  const int copies = chance(faults_.doubled) ? 2 : 1;
  counts_.doubled += copies == 2;
  std::string comes;
  for (int i = 0; i < copies; ++i) {
    nanos when = now + between(faults_.least_delay, faults_.most_delay);
    if (chance(faults_.late)) {
      ++counts_.late;
      when += between(0, faults_.late_secs);
    }
    comes += text(i == 0 ? "; comes at " : " and ", seconds_text(when));
    at(when, [this, shared, to = m.to] { deliver(*shared, to); });
  }
  log(line + comes);
}

GRADUS_BODY void simulated_network::deliver(const std::vector<std::byte>& frame, std::uint32_t to) {
  if (nodes_[to].is_down) {
    ++counts_.to_nobody;
    return;
  }
  const protocol_message m = frames_.decode(frame, to);
  if (m.kind == message_kind::left) nodes_[to].has_heard_left = true;
  ++counts_.delivered;
  nodes_[to].box->put(m);
}

GRADUS_BODY void simulated_network::carry() {
  driver_->watch();
  std::unique_lock lock(mutex_);
  while (!is_stopped_) try {
      const nanos now = driver_->time();
      if (due_.empty()) {
        changed_.wait(lock);
      } else if (const auto first = due_.begin(); first->first > now) {
        changed_.wait_for(lock, static_cast<double>(first->first - now) / 1e9);
      } else {
        const std::function<void()> what = std::move(first->second);
        due_.erase(first);
        lock.unlock();
        what();
        lock.lock();
      }
    } catch (const error& e) {  // no task can go on, or time is over: all tasks get the error, and end
      if (!lock.owns_lock()) lock.lock();
      if (why_stuck_ == nullptr) why_stuck_ = std::current_exception();
      const std::string words = e.what();
      due_.clear();
      lock.unlock();
      close(words.substr(0, words.find(':')));  // the list of all waits is reported once, by why_stuck
      lock.lock();
    }
}
GRADUS_BODY void simulated_network::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

// ---- faults

GRADUS_BODY void simulated_network::cut(nanos length) {
  if (has_ended_) return;
  std::string parted;
  is_cut_off_.assign(nodes_.size(), false);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (chance(0.5)) is_cut_off_[i] = true, parted += text(parted.empty() ? "" : ", ", name_of(i));
  cut_until_ = driver_->time() + length;
  ++counts_.cuts;
  log(text("the network parts {", parted, "} from the others until ", seconds_text(cut_until_)));
}
GRADUS_BODY void simulated_network::stop_one(nanos length) {
  if (has_ended_) return;
  const std::uint32_t i = dice_.below(static_cast<std::uint32_t>(nodes_.size()));
  driver_->stop(nodes_[i].machine, length);
  ++counts_.stops;
  log(text(name_of(i), " stops until ", seconds_text(driver_->time() + length)));
}
GRADUS_BODY void simulated_network::crash_one(nanos length) {
  node_state& n = nodes_[shape_.node_of(dice_.below(shape_.workers))];
  if (has_ended_ || n.is_down || n.has_said_leave || n.joined == 0) return;
  n.is_down = true, n.up_at = driver_->time() + length;
  driver_->stop(n.machine, 0);
  ++counts_.crashes;
  log(text(name_of(static_cast<std::uint32_t>(&n - nodes_.data())), " crashes"));
  n.box->close();
}
GRADUS_BODY bool simulated_network::revive(std::uint32_t number) {
  node_state& n = nodes_[number];
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, static_cast<double>(n.up_at - driver_->time()) / 1e9, [this] { return has_ended_; });
  }
  if (has_ended_) return false;
  n.box = std::make_unique<mailbox>(tasks_);
  n.is_down = false, n.joined = 0;
  reset_clock(n);
  ++counts_.restarts;
  log(text(name_of(number), " is started again"));
  return true;
}

// ---- the end

GRADUS_BODY void simulated_network::depart(std::uint64_t worker) { say_leave(shape_.node_of(worker)); }
// Repeated until it is answered: the machine's leave message, which no fault affects.
GRADUS_BODY void simulated_network::say_leave(std::uint32_t number) {
  const node_state& n = nodes_[number];
  if (has_ended_ || n.has_heard_left) return;
  nodes_[cluster_shape::decider].box->put(
      {message_kind::leave, number, cluster_shape::decider, n.joined, 0, 0, {}, {}});
  at(driver_->time() + 1000 * one_millisecond, [this, number] { say_leave(number); });
}
GRADUS_BODY void simulated_network::fail(const std::exception_ptr& error, const std::string& task) {
  close(text(task, " has failed: ", error_text(error)));
}
GRADUS_BODY void simulated_network::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = true, why_ = why;
    changed_.notify_all();
  }
  log(why.empty() ? "the cluster ends" : "the cluster ends: " + why);
  for (const node_state& n : nodes_) n.box->close();
  program_.end();
}
GRADUS_BODY void simulated_network::check(const std::string& waited) const {
  const std::size_t here = driver_->here();
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].machine == here && nodes_[i].is_down) throw simulated_crash{name_of(i)};
  if (!has_ended_) return;
  raise(status::aborted, text("the cluster has ended, while this worker ", waited, ": ",
                              why_.empty() ? std::string("all other workers have left") : why_));
}

}  // namespace gradus::detail
