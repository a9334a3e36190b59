// The bodies of turns.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <exception>

#include "../base/body.hpp"
#include "turns.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string seconds_text(nanos n) {
  const bool negative = n < 0;
  const auto whole = static_cast<std::uint64_t>(negative ? -n : n);
  std::string digits = text(whole % 1'000'000'000);
  digits.insert(0, 9 - digits.size(), '0');
  return text(negative ? "-" : "", whole / 1'000'000'000, ".", digits);
}

class turn_driver::place final : public meeting {
public:
  explicit place(std::shared_ptr<turn_driver> of) : of_(std::move(of)) {}
  void wait(std::unique_lock<std::mutex>& lock, double secs) override {
    if (!(secs > 0)) return;
    const struct locked_again {  // after an error too
      std::unique_lock<std::mutex>& lock;
      ~locked_again() { lock.lock(); }
    } after{lock};
    std::unique_lock held(of_->mutex_);
    lock.unlock();
    of_->block(held, this, of_->after(secs), "a notification");
  }
  void notify_one() override { wake(false); }
  void notify_all() override { wake(true); }

private:
  void wake(bool all) {
    const std::lock_guard held(of_->mutex_);
    of_->wake(this, all);
  }
  std::shared_ptr<turn_driver> of_;
};

class turn_driver::begun final : public running {
public:
  begun(std::shared_ptr<turn_driver> of, std::string_view caller, std::function<void()> body)
      : of_(std::move(of)), body_(std::move(body)) {
    {
      const std::lock_guard held(of_->mutex_);
      task_ = of_->add(std::string(caller));
    }
    struct taken_back {
      begun* b;
      ~taken_back() {
        if (b == nullptr) return;
        const std::lock_guard held(b->of_->mutex_);
        b->of_->remove(b->task_);
      }
    } unless{this};
    thread_ = joining_thread([this] { work(); });
    unless.b = nullptr;
  }
  ~begun() override { forget(); }
  void join() override {
    {
      std::unique_lock held(of_->mutex_);
      while (task_->state != task::ended) of_->block(held, task_, never_due, "the end of another task");
    }
    thread_.join();
    forget();
  }

private:
  void work() {
    {
      std::unique_lock held(of_->mutex_);
      of_this_thread_ = task_, driver_of_this_thread_ = of_.get();
      task_->wake.wait(held, [&] { return of_->running_ == task_; });
    }
    try {
      body_();
    } catch (...) {
      const std::lock_guard held(of_->mutex_);
      if (of_->problem_.empty()) throw;  // otherwise it is the error that no task can go on
    }
    body_ = nullptr;  // its captures are destroyed while the task still has its turn
    std::unique_lock held(of_->mutex_);
    task_->state = task::ended;
    of_->wake(task_, true);
    of_->pass(held, nullptr);
  }
  void forget() {
    if (task_ == nullptr) return;
    const std::lock_guard held(of_->mutex_);
    of_->remove(std::exchange(task_, nullptr));
  }

  std::shared_ptr<turn_driver> of_;
  std::function<void()> body_;
  task* task_ = nullptr;
  joining_thread thread_;
};

GRADUS_BODY turn_driver::turn_driver(std::uint64_t seed, nanos most)
    : most_(most == never_due ? never_due : begins_at + most), dice_{seed} {
  machines_.push_back({.name = ""});
}

GRADUS_BODY turn_driver::presence::presence(turn_driver& of, const std::string& caller) : of_(&of) {
  const std::lock_guard held(of.mutex_);
  if (of.running_ != nullptr || of_this_thread_ != nullptr)
    raise(status::failed_precondition, "turns: expected a driver that nobody uses, and a thread that is no task");
  of.running_ = of.add(caller);
  of_this_thread_ = of.running_, driver_of_this_thread_ = &of;
}
GRADUS_BODY turn_driver::presence::~presence() {
  const std::lock_guard held(of_->mutex_);
  of_->remove(of_this_thread_);
  of_->running_ = of_this_thread_ = nullptr, driver_of_this_thread_ = nullptr;
}

GRADUS_BODY double turn_driver::now() const { return 1.5e9 + elapsed(); }
GRADUS_BODY double turn_driver::elapsed() const {
  const std::lock_guard held(mutex_);
  const machine_state& m = machines_[me() != nullptr ? me()->machine : 0];
  return (static_cast<double>(now_) * m.rate + static_cast<double>(m.ahead)) / 1e9;
}
GRADUS_BODY void turn_driver::sleep(double secs) {
  std::unique_lock held(mutex_);
  block(held, nullptr, after(secs), "time to pass");
}
GRADUS_BODY std::unique_ptr<task_driver::meeting> turn_driver::make_meeting() {
  return std::make_unique<place>(shared_from_this());
}
GRADUS_BODY std::unique_ptr<task_driver::running> turn_driver::start_named(std::string_view caller,
                                                                           std::function<void()> body) {
  return std::make_unique<begun>(shared_from_this(), caller, std::move(body));
}

GRADUS_BODY std::size_t turn_driver::add_machine(machine_state m) {
  const std::lock_guard held(mutex_);
  machines_.push_back(std::move(m));
  return machines_.size() - 1;
}
GRADUS_BODY void turn_driver::move_to(std::size_t machine) {
  const std::lock_guard held(mutex_);
  waiting_task("move to a machine").machine = machine;
}
GRADUS_BODY std::size_t turn_driver::here() const {
  const std::lock_guard held(mutex_);
  return me() != nullptr ? me()->machine : 0;
}
GRADUS_BODY void turn_driver::set_clock(std::size_t machine, nanos ahead, double rate) {
  const std::lock_guard held(mutex_);
  machines_[machine].ahead = ahead, machines_[machine].rate = rate;
}
GRADUS_BODY void turn_driver::stop(std::size_t machine, nanos length) {
  const std::lock_guard held(mutex_);
  machines_[machine].stopped_until = now_ + length;
}
GRADUS_BODY nanos turn_driver::time() const {
  const std::lock_guard held(mutex_);
  return now_ - begins_at;
}
GRADUS_BODY void turn_driver::watch() {
  const std::lock_guard held(mutex_);
  watchman_ = &waiting_task("watch");
}
GRADUS_BODY std::string turn_driver::waits() const {
  const std::lock_guard held(mutex_);
  return all_waits();
}

GRADUS_BODY turn_driver::task* turn_driver::add(const std::string& caller) {
  tasks_.push_back(std::make_unique<task>());
  task* const one = tasks_.back().get();
  one->caller = caller, one->since = now_;
  if (me() != nullptr) one->machine = me()->machine;
  return one;
}
GRADUS_BODY void turn_driver::remove(task* one) {
  if (watchman_ == one) watchman_ = nullptr;
  std::erase_if(tasks_, [&](const auto& t) { return t.get() == one; });
}
GRADUS_BODY turn_driver::task& turn_driver::waiting_task(const char* what) const {
  if (me() == nullptr)
    raise(status::failed_precondition,
          text("turns: a thread that takes none wants to ", what, "; start it by the driver's task_system"));
  return *me();
}

GRADUS_BODY nanos turn_driver::after(double secs) const {
  const double wanted = std::ceil(secs * 1e9 / machines_[me() != nullptr ? me()->machine : 0].rate);
  if (!(wanted < 4e18)) return never_due;
  return now_ + std::max<nanos>(1, static_cast<nanos>(wanted));
}
// Returns the time from which the task could have a turn.
GRADUS_BODY nanos turn_driver::due_of(const task& t) const {
  if (t.state == task::ended || (t.state == task::blocked && t.until == never_due)) return never_due;
  const nanos stopped = machines_[t.machine].stopped_until;
  return t.state == task::ready ? stopped : std::max(t.until, stopped);
}

GRADUS_BODY void turn_driver::block(std::unique_lock<std::mutex>& held, const void* at, nanos until, const char* what) {
  task& one = waiting_task("wait");
  one.state = task::blocked, one.at = at, one.until = until, one.since = now_, one.what = what;
  pass(held, &one);
  if (std::exchange(one.fails, false)) raise(kind_, problem_);
}

// Passes the turn on. `from` then waits for its next turn; null if the task has ended.
GRADUS_BODY void turn_driver::pass(std::unique_lock<std::mutex>& held, task* from) {
  task* const next = choose();
  running_ = next;
  if (next != nullptr) {
    next->state = task::ready, next->at = nullptr;
    if (next == from) return;
    next->wake.notify_one();
  }
  if (from != nullptr) from->wake.wait(held, [&] { return running_ == from; });
}
GRADUS_BODY turn_driver::task* turn_driver::choose() {
  for (;;) {
    std::uint32_t able = 0;
    nanos next = never_due;
    bool any = false;
    for (const auto& t : tasks_) {
      const nanos due = due_of(*t);
      able += due <= now_;
      next = std::min(next, due);
      any = any || t->state != task::ended;
    }
    if (able != 0) {
      std::uint32_t drawn = able > 1 ? dice_.below(able) : 0;
      for (const auto& t : tasks_)
        if (due_of(*t) <= now_ && drawn-- == 0) return t.get();
    }
    if (!any) return nullptr;
    if (next == never_due)
      stuck(status::aborted, "nothing goes on: ");
    else if (next > most_)
      stuck(status::deadline_exceeded, text("it has not ended after ", seconds_text(most_ - begins_at), " s: "));
    else
      now_ = next;
  }
}
GRADUS_BODY void turn_driver::stuck(status kind, const std::string& why) {
  kind_ = kind, problem_ = why + all_waits();
  most_ = never_due;
  const auto fail = [](task& t) { t.fails = true, t.state = task::ready; };
  if (task* const first = std::exchange(watchman_, nullptr); first != nullptr && first->state == task::blocked)
    return fail(*first);
  bool any = false;
  for (const auto& t : tasks_) {
    const bool joins = t->at != nullptr && std::ranges::any_of(tasks_, [&](const auto& o) { return o.get() == t->at; });
    if (t->state == task::blocked && !joins) fail(*t), any = true;
  }
  if (!any) std::terminate();  // all tasks that are left join each other
}
// Wakes all tasks that wait there, or a drawn one.
GRADUS_BODY void turn_driver::wake(const void* at, bool all) {
  const auto waits = [&](const auto& t) { return t->state == task::blocked && t->at == at; };
  const auto n = static_cast<std::uint32_t>(std::ranges::count_if(tasks_, waits));
  std::uint32_t drawn = !all && n > 1 ? dice_.below(n) : 0;
  for (const auto& t : tasks_)
    if (waits(t) && (all || drawn-- == 0)) t->state = task::ready;
}
GRADUS_BODY std::string turn_driver::all_waits() const {
  std::string all;
  for (const auto& t : tasks_) {
    if (t->state == task::ended) continue;
    const std::string& on = machines_[t->machine].name;
    all += text(all.empty() ? "" : "; ", on, on.empty() ? "" : ", ", t->caller);
    if (t->state == task::ready) {
      all += " could go on";
    } else {
      all += text(" waits for ", t->what, " since ", seconds_text(t->since - begins_at), " s");
      if (t->until != never_due) all += text(", until ", seconds_text(t->until - begins_at), " s");
    }
    if (const nanos stopped = machines_[t->machine].stopped_until; stopped > now_)
      all += text(" (it is stopped until ", seconds_text(stopped - begins_at), " s)");
  }
  return all;
}

}  // namespace gradus::detail
