// The bodies of core.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>

#include "../../base/body.hpp"
#include "../../run/pool.hpp"
#include "core.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class queue_core::turn {
public:
  explicit turn(queue_core& c) : lock_(c.mutex_, std::defer_lock) { relock(); }
  ~turn() {
    if (lock_.owns_lock()) unlock();
  }
  void wake(place* at) {
    at->called.store(true, std::memory_order_release);
    if (!at->asleep) return;
    if (woken_ == most) notify();
    list_[woken_++] = at;
  }
  // The woken threads need the lock, so it is released first.
  void unlock() {
    lock_.unlock();
    notify();
  }
  // Spins first, since the lock is held for less time than falling asleep takes.
  void relock() {
    if (lock_.owns_lock()) return;
    for (int i = 0; i < looks; ++i) {
      if (lock_.try_lock()) return;
      relax();
    }
    lock_.lock();
  }
  void sleep(place& at, double secs) {
    notify();
    at.asleep = true;
    at.changed.wait_for(lock_, secs);
    at.asleep = false;
  }

private:
  static constexpr int most = 8;
  void notify() {
    while (woken_ > 0) list_[--woken_]->changed.notify_one();
  }
  std::unique_lock<std::mutex> lock_;
  place* list_[most];
  int woken_ = 0;
};

// However the call ends, its attempt leaves the line, and its elements and its place go back to the free lists.
class queue_core::visit {
public:
  visit(queue_core& c, turn& t, attempt& a) : core_(c), turn_(t), attempt_(a) { core_.join(a); }
  ~visit() {
    turn_.relock();
    if (!attempt_.ended()) {
      core_.end(turn_, attempt_, outcome::cancelled);
      core_.serve(turn_);
    }
    core_.free_.append(attempt_.elements);
    if (attempt_.at != nullptr) core_.free_places_.push_back(attempt_.at);
  }

private:
  queue_core& core_;
  turn& turn_;
  attempt& attempt_;
};

GRADUS_BODY queue_core::queue_core(const queue_spec& spec, const task_system& run)
    : spec_((spec.check(), spec)), layout_(spec_), tasks_(run), storage_(make_storage(spec_)) {}

GRADUS_BODY std::int64_t queue_core::size() const {
  const std::lock_guard lock(mutex_);
  return storage_->size();
}

GRADUS_BODY bool queue_core::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

GRADUS_BODY pending_calls queue_core::pending() const {
  const std::lock_guard lock(mutex_);
  pending_calls n;
  for (const attempt* a = enqueues_.first; a != nullptr; a = a->next) n.enqueues += a->is_hungry() ? 0 : 1;
  for (const attempt* a = dequeues_.first; a != nullptr; a = a->next) ++n.dequeues;
  return n;
}

GRADUS_BODY void queue_core::enqueue(std::span<const const_tensor_view> from, bool many, const blocking_options& wait) {
  const std::int64_t rows = spec_.check_element(from, many);
  check_begin(wait);
  if (rows == 0) return;
  attempt a{attempt::putting, rows};
  double until = -1;
  {
    turn t(*this);
    fill(t, a, from, many);
    const visit here(*this, t, a);
    serve(t);
    while (!a.ended())
      if (a.is_hungry()) {
        fill(t, a, from, many);
        serve(t);
      } else {
        await(t, a, wait, until);
      }
  }
  if (a.result != outcome::done) raise_for(a, wait);
}

GRADUS_BODY void queue_core::dequeue(std::int64_t n, bool up_to, element_reader& to, const blocking_options& wait) {
  check_begin(wait);
  attempt a{attempt::taking, n, up_to};
  double until = -1;
  {
    turn t(*this);
    const visit here(*this, t, a);
    serve(t);
    while (!a.ended()) await(t, a, wait, until);
    if (a.result == outcome::done && to.is_quick) {
      to.read(a.elements);
    } else if (a.result == outcome::done) {
      t.unlock();
      try {
        to.read(a.elements);
      } catch (...) {
        t.relock();
        storage_->put_back(a.elements);
        serve(t);
        throw;
      }
      t.relock();
    }
  }
  if (a.result != outcome::done) raise_for(a, wait);
}

GRADUS_BODY void queue_core::close(bool cancel_pending_enqueues, const blocking_options& wait) {
  attempt a{attempt::closing};
  double until = -1;
  if (cancel_pending_enqueues) {
    turn t(*this);
    closed_ = true;
    while (attempt* first = enqueues_.first)
      end(t, *first,
          first->is_cancelled()             ? outcome::cancelled
          : first->kind == attempt::closing ? outcome::closed_before
                                            : outcome::dropped);
    serve(t);
    return;
  }
  check_begin(wait);
  {
    turn t(*this);
    const visit here(*this, t, a);
    serve(t);
    while (!a.ended()) await(t, a, wait, until);
  }
  if (a.result != outcome::done) raise_for(a, wait);
}

GRADUS_BODY void queue_core::join(attempt& a) {
  line& l = line_of(a);
  a.before = l.last;
  (l.last == nullptr ? l.first : l.last->next) = &a;
  l.last = &a;
}

GRADUS_BODY void queue_core::end(turn& t, attempt& a, outcome how) {
  line& l = line_of(a);
  (a.before == nullptr ? l.first : a.before->next) = a.next;
  (a.next == nullptr ? l.last : a.next->before) = a.before;
  a.result = how;
  if (a.kind == attempt::taking && how != outcome::done) storage_->put_back(a.elements);
  if (a.at != nullptr) t.wake(a.at);
}

GRADUS_BODY void queue_core::serve(turn& t) {
  for (bool progress = true; progress;) {
    progress = false;
    for (line* l : {&enqueues_, &dequeues_})
      while (l->first != nullptr && serve_first(t, *l->first)) progress = true;
  }
}

// Returns whether the attempt made progress.
GRADUS_BODY bool queue_core::serve_first(turn& t, attempt& a) {
  if (a.is_cancelled()) {
    end(t, a, outcome::cancelled);
    return true;
  }
  return a.kind == attempt::taking ? take(t, a) : bring(t, a);
}

GRADUS_BODY bool queue_core::bring(turn& t, attempt& a) {
  if (a.kind == attempt::closing || closed_) {
    end(t, a, a.kind == attempt::putting ? outcome::queue_closed : closed_ ? outcome::closed_before : outcome::done);
    closed_ = true;
    return true;
  }
  bool moved = false;
  for (; !a.elements.empty() && has_room(); moved = true, --a.left) storage_->put(a.elements.pop_front());
  if (a.left == 0)
    end(t, a, outcome::done);
  else if (moved && a.is_hungry() && a.at != nullptr)
    t.wake(a.at);
  return moved;
}

GRADUS_BODY bool queue_core::take(turn& t, attempt& a) {
  std::int64_t there = storage_->available(closed_);
  if (closed_ && there < a.left) {
    storage_->put_back(a.elements);
    there = storage_->available(true);
    a.left = a.up_to ? there : a.requested;
    if (a.left > there || there == 0) {
      a.found = there;
      end(t, a, outcome::too_few);
      return true;
    }
  }
  if (!storage_->gathers() && there < a.left) return false;
  bool moved = false;
  for (; a.left > 0 && there > 0; --there, --a.left, moved = true) a.elements.push_back(storage_->take());
  if (a.left == 0) end(t, a, outcome::done);
  return moved;
}

// Copies as many rows as the queue can hold into elements, which it adds to the attempt's.
GRADUS_BODY void queue_core::fill(turn& t, attempt& a, std::span<const const_tensor_view> from, bool many) {
  const std::int64_t n = spec_.capacity < 0 ? a.left : std::min(a.left, spec_.capacity);
  element_chain blank, filled;
  while (blank.size() < n && !free_.empty()) blank.push_back(free_.pop_front());
  const std::int64_t missing = n - blank.size();
  const bool is_quick = n == 1 && missing == 0 && layout_.is_fixed() && layout_.fixed_bytes() <= small;
  if (missing > 0) {
    storage_->reserve(all_ + missing);
    all_ += missing;
  }
  if (!is_quick) t.unlock();
  for (std::int64_t i = 0; i < missing; ++i) blank.push_back(layout_.make());
  for (std::int64_t row = a.requested - a.left; !blank.empty(); ++row) {
    layout_.write(*blank.front(), from, many ? row : -1);
    filled.push_back(blank.pop_front());
  }
  t.relock();
  a.elements.append(filled);
}

GRADUS_BODY void queue_core::await(turn& t, attempt& a, const blocking_options& wait, double& until) {
  if (a.at == nullptr) {
    a.wait = &wait;
    if (free_places_.empty()) {
      places_.push_back(std::make_unique<place>(tasks_));
      free_places_.reserve(places_.size());
      free_places_.push_back(places_.back().get());
    }
    a.at = free_places_.back();
    free_places_.pop_back();
  }
  if (until < 0)
    until =
        wait.timeout_secs == task_condition::forever ? task_condition::forever : tasks_.elapsed() + wait.timeout_secs;
  if (wait.cancel == nullptr && wait.stop == nullptr) return park(t, a, until);
  t.unlock();
  {
    std::optional<cancellation::link> by_cancel, by_stop;
    if (wait.cancel != nullptr) by_cancel.emplace(*wait.cancel, [this, &a] { cancel(a); });
    if (wait.stop != nullptr) by_stop.emplace(*wait.stop, [this, &a] { cancel(a); });
    t.relock();
    park(t, a, until);
    t.unlock();  // a link is destroyed without the lock held, since its callback takes the lock
  }
  t.relock();
}

// Spins first: if the other side runs, it calls sooner than this thread would fall asleep.
GRADUS_BODY void queue_core::park(turn& t, attempt& a, double until) {
  if (tasks_.driver() == nullptr && !a.ended() && !a.is_hungry()) {
    a.at->called.store(false, std::memory_order_relaxed);
    t.unlock();
    for (int i = 0; i < looks && !a.at->called.load(std::memory_order_acquire); ++i) relax();
    t.relock();
  }
  while (!a.ended() && !a.is_hungry()) {
    const double left = until == task_condition::forever ? until : until - tasks_.elapsed();
    if (!(left > 0)) {
      end(t, a, outcome::late);
      return serve(t);
    }
    t.sleep(*a.at, left);
  }
}

GRADUS_BODY void queue_core::cancel(attempt& a) {
  turn t(*this);
  if (a.ended()) return;
  end(t, a, outcome::cancelled);
  serve(t);
}

GRADUS_BODY void queue_core::check_begin(const blocking_options& wait) const {
  if (wait.cancel != nullptr && wait.cancel->is_cancelled()) {
    attempt a{attempt::closing};
    a.result = outcome::cancelled;
    raise_for(a, wait);
  }
  if (std::isnan(wait.timeout_secs))
    raise(status::invalid_argument, text("queue \"", spec_.shown_name(), "\": timeout_secs is not a number"));
}

GRADUS_BODY void queue_core::raise_for(const attempt& a, const blocking_options& wait) const {
  const std::string name = text("queue \"", spec_.shown_name(), "\"");
  switch (a.result) {
  case outcome::queue_closed: raise(status::cancelled, text(name, " is closed; nothing can be enqueued any more"));
  case outcome::closed_before: raise(status::cancelled, text(name, " is already closed; close it once"));
  case outcome::dropped:
    raise(status::cancelled, text(name, " was closed and its pending enqueues cancelled; ", a.requested - a.left,
                                  " of the ", a.requested, " elements of this one are in"));
  case outcome::too_few:
    raise(status::out_of_range,
          text(name, " is closed and has insufficient elements (requested ", a.requested, ", has ", a.found, ")"));
  case outcome::late:
    raise(status::deadline_exceeded,
          text(name, ": ",
               a.kind == attempt::taking    ? "no elements came"
               : a.kind == attempt::closing ? "pending enqueues did not end"
                                            : "there was no room",
               " within ", wait.timeout_secs, " seconds; let the other side run, or give a longer timeout_secs"));
  default: {
    const cancellation* by = wait.cancel;
    if ((by == nullptr || !by->is_cancelled()) && wait.stop != nullptr) by = wait.stop;
    raise(by != nullptr ? by->kind() : status::cancelled,
          text(name, ": a waiting call was cancelled", by != nullptr ? text(": ", by->reason()) : std::string()));
  }
  }
}

}  // namespace gradus::detail
