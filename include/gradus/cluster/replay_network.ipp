// The bodies of replay_network.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../base/body.hpp"
#include "replay_network.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY replay_network::replay_network(std::shared_ptr<const replay_plan> plan, std::uint64_t until,
                                           const std::shared_ptr<turn_driver>& driver)
    : message_network(plan->shape(), task_system(driver)),
      plan_(std::move(plan)),
      until_(until),
      order_(plan_->first() - 1),
      driver_(driver),
      program_(tasks_),
      changed_(tasks_),
      seats_(shape_.workers),
      applied_(shape_.shards, order_) {
  for (std::uint32_t node = 0; node < shape_.shards + shape_.workers; ++node)
    boxes_.push_back(std::make_unique<mailbox>(tasks_));
  for (std::uint64_t w = 0; w < seats_.size(); ++w) {
    seat& s = seats_[w];
    s.machine = driver_->add_machine({.name = text("worker ", w)});
    s.next = {plan_->first(), 0};
    s.has_next = plan_->find(w, s.next, until_);
    if (w == 0) chief_began_anew_ = begins_anew(w, s.next);
    s.frames.resize(shape_.shards), s.served.resize(shape_.shards), s.asked.resize(shape_.shards);
  }
}

GRADUS_BODY bool replay_network::repeats(const cluster_fingerprint& of, decider_options& decides, std::uint32_t shard) {
  plan_->must_be(of, decides, shard);
  const std::lock_guard lock(mutex_);
  by_rounds_ = decides.settled().mode == staleness::synchronous;
  // How far workers lead each other was decided in the logged run.
  if (!by_rounds_) decides.mode = staleness::asynchronous;
  return true;
}

// The same as those of local_network.
GRADUS_BODY membership_options replay_network::members(nanos) {
  constexpr nanos years = 100LL * 365 * 86400 * 1000 * one_millisecond;
  return {years, years};
}
GRADUS_BODY worker_options replay_network::patience(worker_options o) const {
  o.heartbeat = 86400LL * 1000 * one_millisecond;
  return o;
}

GRADUS_BODY void replay_network::differs(const std::string& what) const {
  raise(status::failed_precondition,
        text("the program does not repeat the run that was logged in \"", plan_->directory(), "\": ", what));
}

// ---- messages

// Returns whether the gradient that the worker computes now, or computes next, is in the log.
GRADUS_BODY bool replay_network::is_logged_next(const seat& s) const {
  return s.has_next && (!by_rounds_ || plan_->at(s.next.order, s.next.i).number == s.number + 1);
}

GRADUS_BODY void replay_network::post(const protocol_message& m) {
  const std::lock_guard lock(mutex_);
  if (has_ended_ || (is_worker(m.from) && seat_of(m.from).is_down)) return;
  try {
    if (is_worker(m.from))
      from_worker(m);
    else if (is_worker(m.to))
      to_worker(m);
    else
      deliver(m);
  } catch (const error&) {  // an error of the log, or a difference of the program
    stuck(std::current_exception());
  }
  changed_.notify_all();
}

GRADUS_BODY void replay_network::from_worker(const protocol_message& m) {
  seat& s = seat_of(m.from);
  switch (m.kind) {
  case message_kind::join:
    if (m.incarnation > s.incarnation) {
      s.incarnation = m.incarnation, s.sequence = s.number = 0;
      forget_push(s);
    }
    break;
  case message_kind::push: return push(s, m);
  case message_kind::pull:
    if (is_logged_next(s)) return;  // the network requests the values that the worker needs
    break;
  case message_kind::start:
    if (m.about != order_ && !has_started_)
      differs(text("it begins behind update ", m.about, ", and the log behind update ", order_,
                   order_ == 0 ? "; give it a model_dir without a checkpoint"
                               : text("; give it a model_dir with the checkpoint of step ", order_)));
    has_started_ = true;
    break;
  case message_kind::leave:
    // A worker whose log goes on with gradient 1 may train once more.
    if (s.has_next && !is_anew(s))
      differs(text("worker ", shape_.worker_of(m.from), " ends behind its gradient ", s.number,
                   ", and the log has its ", "gradient ", plan_->at(s.next.order, s.next.i).number, " in update ",
                   s.next.order, "; give it as many steps, or replay up to update ", s.next.order - 1, " by .until"));
    break;
  default: break;
  }
  deliver(m);
}

// Returns whether the worker's numbers begin again somewhere in the log from p on.
GRADUS_BODY bool replay_network::begins_anew(std::uint64_t worker, replay_plan::place p) const {
  for (std::uint32_t number = 0; plan_->find(worker, p, until_); p = plan_->behind(p)) {
    const std::uint32_t here = plan_->at(p.order, p.i).number;
    if (here <= number) return true;
    number = here;
  }
  return false;
}
GRADUS_BODY void replay_network::forget_push(seat& s) {
  s.has_token = s.token_waits = false, s.fate = fates::none, s.frames_here = 0;
  for (auto& f : s.frames) f.clear();
  std::fill(s.served.begin(), s.served.end(), false), std::fill(s.asked.begin(), s.asked.end(), false);
}
// Returns whether the numbers begin again: the number of its next contribution is one that it has had already.
GRADUS_BODY bool replay_network::is_anew(const seat& s) const {
  return s.has_next && plan_->at(s.next.order, s.next.i).number <= s.number;
}
GRADUS_BODY void replay_network::end_process(std::uint64_t worker, seat& s) {
  forget_push(s);
  s.is_down = true;
  boxes_[shape_.node_of(worker)]->close();
}
GRADUS_BODY bool replay_network::revive(std::uint64_t worker) {
  tasks_.sleep(1e-6);  // its incarnation is the time, and must be greater than the one before
  const std::lock_guard lock(mutex_);
  if (has_ended_) return false;
  boxes_[shape_.node_of(worker)] = std::make_unique<mailbox>(tasks_);
  seats_[static_cast<std::size_t>(worker)].is_down = false;
  return true;
}

GRADUS_BODY void replay_network::push(seat& s, const protocol_message& m) {
  const std::uint64_t worker = shape_.worker_of(m.from);
  const push_facts facts = push_facts::of(m);
  if (m.sequence < s.sequence) return;
  if (m.sequence > s.sequence) {
    const bool is_logged = is_logged_next(s);
    s.sequence = m.sequence, s.number = facts.number, s.has_token = false;
    s.frames_here = 0;
    for (auto& f : s.frames) f.clear();
    if (!s.has_next) {
      s.fate = fates::behind_the_end;
    } else if (const order_entry e = plan_->at(s.next.order, s.next.i); e.number == facts.number && is_logged) {
      s.fate = fates::logged, s.pushed = s.next;
    } else if (by_rounds_ && facts.number < e.number) {
      s.fate = fates::dropped;
    } else {
      differs(text("worker ", worker, " computes its gradient ", facts.number, " where the log has its gradient ",
                   e.number, ", in update ", e.order,
                   chief_began_anew_ ? ": the chief's process had begun anew, which is not repeated" : "",
                   "; replay up to update ", e.order - 1, " by .until"));
    }
  }
  std::vector<std::byte>& frame = s.frames[m.to];
  if (!frame.empty() || s.fate == fates::none) return;  // it was sent again
  if (s.fate == fates::logged)
    if (const std::uint64_t read = plan_->read(s.pushed.order, s.pushed.i, m.to); read != facts.read)
      differs(text("worker ", worker, " computes its gradient ", facts.number, " from update ", facts.read, " of ps ",
                   m.to, ", and the log says ", read, "; save checkpoints by steps, and not by seconds"));
  for (const auto& piece : frames_.encode(m)) frame.insert(frame.end(), piece.begin(), piece.end());
  if (++s.frames_here != shape_.shards || s.fate != fates::logged) return;
  s.next = plan_->behind(s.pushed);
  s.has_next = plan_->find(worker, s.next, until_);
  std::fill(s.served.begin(), s.served.end(), false), std::fill(s.asked.begin(), s.asked.end(), false);
}

GRADUS_BODY void replay_network::to_worker(const protocol_message& m) {
  seat& s = seat_of(m.to);
  switch (m.kind) {
  case message_kind::token: {
    if (m.sequence != s.sequence) break;  // it was sent again, and came late
    if (m.to != shape_.node_of(0) && !chief_began_anew_ && is_anew(s)) return end_process(shape_.worker_of(m.to), s);
    bool waits = false;
    if (!s.has_next) {
      waits = !is_ending_;
    } else if (by_rounds_ && is_logged_next(s)) {
      const std::uint64_t step = plan_->at(s.next.order, s.next.i).order - 1;
      if (m.about > step)
        differs(text("worker ", shape_.worker_of(m.to), " goes on at step ", m.about,
                     ", and the log has its gradient of ", "step ", step));
      waits = m.about < step;
    }
    s.token_waits = waits;
    if (waits) return;
    s.has_token = true;
    break;
  }
  case message_kind::pulled:
    applied_[m.from] = std::max(applied_[m.from], m.about);
    if (is_logged_next(s)) {
      if (m.about != plan_->read(s.next.order, s.next.i, m.from) || (!s.has_token && s.sequence == 0)) return;
      s.served[m.from] = true;
    }
    break;
  case message_kind::fetched: applied_[m.from] = std::max(applied_[m.from], m.about); break;
  default: break;
  }
  deliver(m);
}

// ---- progress

GRADUS_BODY void replay_network::deliver_push(seat& s, bool as_stale) {
  for (std::uint32_t k = 0; k < shape_.shards; ++k) {
    protocol_message m = frames_.decode(s.frames[k], k);
    if (as_stale) m.about = UINT64_MAX;
    deliver(m);
  }
  s.fate = fates::none;
}
// Ends the worker: its push is in no update, and it makes no other.
GRADUS_BODY void replay_network::say_over(std::uint64_t worker, seat& s) {
  const std::uint32_t node = shape_.node_of(worker);
  for (std::uint32_t k = 0; k < shape_.shards; ++k)
    deliver({message_kind::kept, k, node, s.incarnation, s.sequence, 0, {}, {}});
  deliver({message_kind::refused,
           cluster_shape::decider,
           node,
           s.incarnation,
           static_cast<std::uint64_t>(refusal_code::over),
           s.sequence,
           {},
           {}});
  s.fate = fates::none;
}
// Requests a token in the worker's place; the one that was given was too early.
GRADUS_BODY void replay_network::ask_for_token(std::uint64_t worker, seat& s) {
  s.token_waits = false;
  deliver({message_kind::ask, shape_.node_of(worker), cluster_shape::decider, s.incarnation, s.sequence, 0, {}, {}});
}
// Requests the values of those shards that are at the order from which the worker's next gradient is computed.
GRADUS_BODY bool replay_network::tell_values(std::uint64_t worker, seat& s) {
  bool any = false;
  for (std::uint32_t k = 0; k < shape_.shards; ++k) {
    if (s.served[k] || s.asked[k] || plan_->read(s.next.order, s.next.i, k) != applied_[k]) continue;
    s.asked[k] = any = true;
    deliver({message_kind::pull, shape_.node_of(worker), k, s.incarnation, s.sequence, applied_[k], {}, {}});
  }
  return any;
}
// Returns whether all workers that need values of this order have them.
GRADUS_BODY bool replay_network::may_advance() const {
  for (const seat& s : seats_)
    for (std::uint32_t k = 0; s.has_next && k < shape_.shards; ++k)
      if (!s.served[k] && plan_->read(s.next.order, s.next.i, k) <= order_) return false;
  return true;
}
GRADUS_BODY bool replay_network::go_on_with(std::uint64_t worker, seat& s) {
  const bool is_whole = s.frames_here == shape_.shards;
  if (s.fate == fates::behind_the_end && is_whole && is_ending_) return say_over(worker, s), true;
  if (s.fate == fates::dropped && is_whole) {
    const order_entry e = plan_->at(s.next.order, s.next.i);
    if (e.number == s.number + 1 && e.order - 1 != order_) return false;  // its next gradient is computed at that step
    return deliver_push(s, true), true;
  }
  if (s.token_waits && (is_ending_ || (s.has_next && s.next.order - 1 == order_)))
    return ask_for_token(worker, s), true;
  return s.has_token && is_logged_next(s) && tell_values(worker, s);
}
// Returns false if all wait for each other, or for the computations of tasks.
GRADUS_BODY bool replay_network::go_on() {
  if (!has_started_) return false;
  if (order_ < until_ && std::ranges::all_of(applied_, [&](std::uint64_t n) { return n > order_; }))
    return ++order_, true;
  is_ending_ = order_ >= until_;
  for (std::uint64_t w = 0; w < seats_.size(); ++w)
    if (go_on_with(w, seats_[w])) return true;
  if (is_ending_ || !may_advance()) return false;
  for (std::uint32_t i = 0; i < plan_->of_update(); ++i) {
    seat& s = seats_[static_cast<std::size_t>(plan_->at(order_ + 1, i).worker)];
    const replay_plan::place here{order_ + 1, i};
    if (s.fate == fates::logged && s.frames_here == shape_.shards && s.pushed == here)
      return deliver_push(s, false), true;
  }
  return false;
}

GRADUS_BODY void replay_network::carry() {
  constexpr double moment = 1e-6, pause = 1;
  constexpr nanos most = 3600LL * 1000 * one_millisecond;
  driver_->watch();
  std::unique_lock lock(mutex_);
  progress_ = driver_->time();
  while (!is_stopped_) try {
      lock.unlock();
      tasks_.sleep(moment);  // afterwards all tasks that can go on have gone on
      lock.lock();
      if (has_ended_) {
        if (!is_stopped_) changed_.wait(lock);
        continue;
      }
      if (go_on()) {
        progress_ = driver_->time();
      } else if (driver_->time() - progress_ > most) {
        raise(status::aborted, text("nothing goes on: ", driver_->waits()));
      } else if (!is_stopped_) {
        changed_.wait_for(lock, pause);
      }
    } catch (const error& e) {
      if (!lock.owns_lock()) lock.lock();
      if (e.kind() != status::aborted && e.kind() != status::deadline_exceeded) {
        stuck(std::current_exception());
        continue;
      }
      try {
        differs(text("it stands behind update ", order_, ", and waits for ", waits(), "; ", e.what()));
      } catch (const error&) {
        stuck(std::current_exception());
      }
    }
}
GRADUS_BODY std::string replay_network::waits() const {
  if (!has_started_) return "the chief to begin";
  if (order_ >= until_) return "its workers to end";
  std::string s;
  for (std::uint32_t i = 0; i < plan_->of_update(); ++i) {
    const order_entry e = plan_->at(order_ + 1, i);
    s += text(i == 0 ? "" : ", ", "gradient ", e.number, " of worker ", e.worker);
  }
  return s;
}
GRADUS_BODY void replay_network::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

// ---- the end

GRADUS_BODY void replay_network::depart(std::uint64_t worker) {
  post({message_kind::leave,
        shape_.node_of(worker),
        cluster_shape::decider,
        seats_[static_cast<std::size_t>(worker)].incarnation,
        0,
        0,
        {},
        {}});
}
GRADUS_BODY void replay_network::fail(const std::exception_ptr& error, const std::string& task) {
  close(text(task, " has failed: ", error_text(error)));
}
GRADUS_BODY void replay_network::stuck(const std::exception_ptr& why) {
  if (why_stuck_ == nullptr) why_stuck_ = why;
  if (std::exchange(has_ended_, true)) return;
  why_ = error_text(why);
  changed_.notify_all();
  for (const auto& b : boxes_) b->close();
  program_.end();
}
GRADUS_BODY void replay_network::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_ended_, true)) return;
    why_ = why;
    changed_.notify_all();
  }
  for (const auto& b : boxes_) b->close();
  program_.end();
}
GRADUS_BODY void replay_network::check(const std::string& waited) const {
  const std::size_t here = driver_->here();
  const std::lock_guard lock(mutex_);
  for (std::uint64_t w = 0; w < seats_.size(); ++w)
    if (seats_[w].machine == here && seats_[w].is_down) throw logged_restart{w};
  if (!has_ended_) return;
  raise(status::aborted, text("the cluster has ended, while this worker ", waited, ": ",
                              why_.empty() ? std::string("all other workers have left") : why_));
}

}  // namespace gradus::detail
