// The bodies of simulated_links.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../base/body.hpp"
#include "simulated_links.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY simulated_links::simulated_links(const std::vector<std::string>& names,
                                             const std::shared_ptr<turn_driver>& driver, std::uint64_t seed,
                                             const simulated_faults& faults, std::vector<std::string>* log)
    : driver_(driver),
      faults_(faults),
      dice_{seed ^ 0x6A09E667F3BCC909u},
      changed_(task_system(driver)),
      is_over_(task_system(driver)),
      lines_(log) {
  for (const std::string& name : names) {
    const std::size_t number = driver_->add_machine({.name = name});
    machines_.push_back({name, number, 1 + (faults_.slowness - 1) * dice_.uniform()});
    reset_clock(static_cast<std::uint32_t>(machines_.size() - 1));
  }
}

GRADUS_BODY nanos simulated_links::between(double least_secs, double most_secs) {
  return static_cast<nanos>((least_secs + (most_secs - least_secs) * dice_.uniform()) * 1e9);
}
GRADUS_BODY double simulated_links::step_secs(std::uint32_t node) {
  return machines_[node].slowness * static_cast<double>(between(faults_.least_step, faults_.most_step)) / 1e9;
}

// Sets the clock ahead or behind, so that a machine which is started again may show an earlier time than before.
GRADUS_BODY void simulated_links::reset_clock(std::uint32_t node) {
  if (!faults_.skewed_clocks) return;
  const nanos ahead = between(0, 600) - 300 * 1000 * one_millisecond;
  driver_->set_clock(machines_[node].number, ahead, 0.99 + 0.02 * dice_.uniform());
}
GRADUS_BODY std::uint32_t simulated_links::here() const {
  const auto found = std::ranges::find(machines_, driver_->here(), &machine::number);
  return static_cast<std::uint32_t>(found - machines_.begin());
}

GRADUS_BODY void simulated_links::log(const std::string& what) {
  const std::string line = text(seconds_text(driver_->time()), " ", what);
  for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  if (lines_ != nullptr) lines_->push_back(line);
}
GRADUS_BODY std::uint64_t sum_of_bytes(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xCBF29CE484222325u;
  for (const std::byte b : bytes) sum = (sum ^ static_cast<std::uint64_t>(b)) * 0x100000001B3u;
  return sum;
}

// ---- what is due

GRADUS_BODY void simulated_links::at(nanos time, std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  due_.emplace(time, std::move(what));
  changed_.notify_all();
}
GRADUS_BODY void simulated_links::carry() {
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
GRADUS_BODY void simulated_links::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

GRADUS_BODY void simulated_links::send(std::uint32_t from, std::uint32_t to, const std::string& line,
                                       const std::function<void()>& arrives, nanos* stream) {
  ++counts_.messages;
  const nanos now = driver_->time();
  if (is_cut(from, to)) {
    ++counts_.cut_off;
    return log(line + "; cut off");
  }
  if (chance(faults_.lost)) {
    ++counts_.lost;
    return log(line + "; lost");
  }
  const int copies = chance(faults_.doubled) ? 2 : 1;
  counts_.doubled += copies == 2;
  std::string comes;
  for (int i = 0; i < copies; ++i) {
    nanos when = now + delay();
    if (chance(faults_.late)) {
      ++counts_.late;
      when += between(0, faults_.late_secs);
    } else if (stream != nullptr) {
      when = *stream = std::max(when, *stream);
    }
    comes += text(i == 0 ? "; comes at " : " and ", seconds_text(when));
    at(when, arrives);
  }
  log(line + comes);
}

// ---- faults

GRADUS_BODY void simulated_links::plan(int n, const std::function<void(nanos length)>& what) {
  for (int i = 0; i < n; ++i) {
    const nanos when = between(0, faults_.within);
    at(when, [what, length = outage()] { what(length); });
  }
}
GRADUS_BODY void simulated_links::plan_cuts_and_stops() {
  plan(faults_.cuts, [this](nanos length) { cut(length); });
  plan(faults_.stops, [this](nanos length) { stop_one(length); });
}
GRADUS_BODY void simulated_links::cut(nanos length) {
  if (has_ended_) return;
  std::string parted;
  is_cut_off_.assign(machines_.size(), false);
  for (std::uint32_t i = 0; i < machines_.size(); ++i)
    if (chance(0.5)) is_cut_off_[i] = true, parted += text(parted.empty() ? "" : ", ", name_of(i));
  cut_until_ = driver_->time() + length;
  ++counts_.cuts;
  log(text("the network parts {", parted, "} from the others until ", seconds_text(cut_until_)));
}
GRADUS_BODY void simulated_links::stop_one(nanos length) {
  if (has_ended_) return;
  const std::uint32_t i = dice_.below(static_cast<std::uint32_t>(machines_.size()));
  driver_->stop(machines_[i].number, length);
  ++counts_.stops;
  log(text(name_of(i), " stops until ", seconds_text(driver_->time() + length)));
}

// ---- the end

GRADUS_BODY bool simulated_links::wait_until_up(nanos up_at) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, static_cast<double>(up_at - driver_->time()) / 1e9, [this] { return has_ended_; });
  return !has_ended_;
}
GRADUS_BODY void simulated_links::fail(const std::exception_ptr& error, const std::string& task) {
  close(text(task, " has failed: ", error_text(error)));
}
GRADUS_BODY void simulated_links::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = true, why_ = why;
    changed_.notify_all();
    is_over_.notify_all();
  }
  log(why.empty() ? "the cluster ends" : "the cluster ends: " + why);
  ended();
}

}  // namespace gradus::detail
