// An executor runs the calls of a step. `serial` uses this thread, in order; `threads{n}` this one and n - 1 more, on a
// schedule fixed by the graph's edges; `threads_on(pool)` the threads of a pool of yours. All give the same bits:
// calls, and the parts of a divided call, have no shared sums, and edges order everything that touches the same memory.
// Where divided steps take longer than steps on the caller, since other programs want the processors, the caller makes
// most of them alone (run/measured_worth.hpp).
#pragma once
#include "../base/build.hpp"

#include <utility>
#if defined(__STDCPP_THREADS__)  // bare metal has no threads, and only `serial`
#include <atomic>
#include <optional>
#include <vector>
#if defined(__cpp_exceptions)
#include <exception>
#endif

#include "../base/owned.hpp"
#include "measured_worth.hpp"
#include "pool.hpp"
#include "schedule.hpp"
#endif

#include "../base/contract.hpp"
#include "../base/subnormals.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

// A runner notifies a probe of this form when a task starts and ends (run/profile.hpp). This one does nothing, and
// nothing of it is left in the program.
struct no_probe {
  void start(int /*thread*/) {}
  void end(int /*thread*/, int /*call*/, int /*part*/, int /*parts*/) {}
};

namespace detail {
template <class Machine, class Session, class Probe>
void run_in_order(Machine& m, Session& session, Probe& probe) {
  for (std::size_t i = 0; i < m.call_count(); ++i) {
    const bound_call& c = m.bound(i);
    probe.start(0);
    if (c.run != nullptr)
      c.run(c.args, c.size, c.what);
    else
      session(c);
    probe.end(0, static_cast<int>(i), 0, 1);
  }
}
}  // namespace detail

// The default uses only the caller's thread.
struct serial {
  using policy_for = kind::executor;
  static constexpr bool concurrent = false;

  struct runner {
    explicit runner(const serial& = {}) {}
    template <class Machine, class Session>
    void run(Machine& m, Session session) {
      m.run(session);
    }
    template <class Machine, class Session, class Probe>
    void run(Machine& m, Session session, Probe& probe) {
      detail::run_in_order(m, session, probe);
    }
    // Calls f(thread) on every thread.
    template <class F>
    void on_each(F f) {
      f(0);
    }
    static constexpr int parts_of_update(std::size_t /*bytes*/) { return 1; }
    static constexpr int size() { return 1; }
    static constexpr bool in_order() { return true; }
  };
};

#if defined(__STDCPP_THREADS__)
namespace detail {

// Runs schedules on a pool.
template <thread_pool Pool>
class scheduled_runner {
public:
  scheduled_runner(Pool& p, const work_division& d, const waiting& w)
      : pool_(&p), division_(d), wait_(w), size_(p.size()) {
    crowded_ =
        std::thread::hardware_concurrency() != 0 && static_cast<unsigned>(size_) > std::thread::hardware_concurrency();
  }
  scheduled_runner(const scheduled_runner&) = delete;
  scheduled_runner& operator=(const scheduled_runner&) = delete;

  // session(c) runs a call that has no kernel. If `session` has divides(node), this returns which of those calls can be
  // done in parts, and c.size then tells the part; if it has in_order(), the result runs the calls of a step that stays
  // on the caller.
  template <class Machine, class Session>
  void run(Machine& m, Session session) {
    no_probe unseen;
    run(m, std::move(session), unseen);
  }
  template <class Machine, class Session, class Probe>
  void run(Machine& m, Session session, Probe& probe) {
    if (last_calls_ != m.what().program.calls || last_batch_ != m.batch_size()) [[unlikely]]
      prepare_for(m, session);
    if (!in_order_) return run_as_is_worth(m, session, probe);
    run_alone(m, session, probe);
  }
  // Calls f(thread) on every thread, at the same time. f does not throw.
  template <class F>
  void on_each(F f) {
    pool_->run(f);
  }
  // Returns the number of parts of a dense update of so many bytes; thread i does part i.
  int parts_of_update(std::size_t bytes) const {
    return division_.parts_of(dense_update_ns(static_cast<double>(bytes)), size_);
  }
  int size() const { return size_; }
  // True if the last run was on the caller alone, in the order of the calls: because the schedule expects no gain, or
  // because divided steps lost time lately.
  bool in_order() const { return in_order_ || was_alone_; }
  // Returns the last run's schedule, or null before the first run.
  const schedule* last() const { return last_ != nullptr ? &last_->plan : nullptr; }

private:
  struct prepared {
    const void* calls;
    unsigned size_class;
    schedule plan;
    detail::owned_array<progress> done;  // of each thread: finished tasks, in all rounds so far
    std::uint32_t round = 0;
    measured_worth worth;
  };
  Pool* pool_;
  work_division division_;
  waiting wait_;
  int size_;
  bool crowded_ = false, in_order_ = true, was_alone_ = false;
  const void* last_calls_ = nullptr;  // the members that a small model reads in every step are placed together
  std::int64_t last_batch_ = -1;
  prepared* last_ = nullptr;
  std::vector<owned<prepared>> prepared_;
  std::atomic<bool> failed_{false};
  std::atomic_flag claimed_;  // where a processor swaps only words, a bool would need a library (RISC-V with g++ 12)
#if defined(__cpp_exceptions)
  std::exception_ptr error_;
#endif

  template <class Machine, class Session, class Probe>
  static void run_alone(Machine& m, Session& session, Probe& probe) {
    if constexpr (requires { session.in_order(); })
      run_here(m, session.in_order(), probe);
    else
      run_here(m, session, probe);
  }
  template <class Machine, class Session, class Probe>
  static void run_here(Machine& m, Session session, Probe& probe) {
    if constexpr (std::is_same_v<Probe, no_probe>)
      m.run(session);
    else
      run_in_order(m, session, probe);
  }
  template <class Machine, class Session>
  [[gnu::noinline]] void prepare_for(const Machine& m, const Session& session) {
    last_ = &prepared_for(m, session);
    last_calls_ = m.what().program.calls, last_batch_ = m.batch_size(), in_order_ = last_->plan.serial;
    was_alone_ = false;
  }
  // There is one schedule per graph and power of two of examples, because what is worth dividing depends on their
  // number.
  template <class Machine, class Session>
  prepared& prepared_for(const Machine& m, const Session& session) {
    const void* const calls = m.what().program.calls;
    const auto size_class = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(m.batch_size())));
    for (auto& p : prepared_)
      if (p->calls == calls && p->size_class == size_class) return *p;
    const auto divides = [&](const node& n) {
      if constexpr (requires { session.divides(n); })
        return session.divides(n);
      else
        return false;
    };
    prepared_.push_back(make_owned<prepared>(prepared{
        calls, size_class, schedule(m.what(), m.batch_size(), size_, division_, divides),
        detail::owned_array<progress>(static_cast<std::size_t>(size_)), 0, measured_worth(division_.worth < 1)}));
    return *prepared_.back();
  }

  // This is apart from run(), which a small model passes in nanoseconds.
  template <class Machine, class Session, class Probe>
  [[gnu::noinline]] void run_as_is_worth(Machine& m, Session& session, Probe& probe) {
    measured_worth& worth = last_->worth;
    if (!worth.measures()) return run_divided(m, session, probe);
    const double begin = steady_seconds::now();
    was_alone_ = !worth.divides();
    if (was_alone_)
      run_alone(m, session, probe);
    else
      run_divided(m, session, probe);
    worth.took(steady_seconds::now() - begin);
  }
  template <class Machine, class Session, class Probe>
  [[gnu::noinline]] void run_divided(const Machine& m, Session& session, Probe& probe) {
    prepared& p = *last_;
    const subnormal_mode numbers = current_subnormals();
    failed_.store(false, std::memory_order_relaxed);
    pool_->run([&](int self) { work(self, p, m, session, probe, numbers); });
    ++p.round;
#if defined(__cpp_exceptions)
    if (failed_.load(std::memory_order_acquire)) {
      claimed_.clear();
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
#endif
  }
  template <class Machine, class Session, class Probe>
  void work(int self, prepared& p, const Machine& m, Session& session, Probe& probe, subnormal_mode numbers) {
    const subnormal_scope scope(numbers);
    const auto& list = p.plan.lists[static_cast<std::size_t>(self)];
    progress& mine = p.done[static_cast<std::size_t>(self)];
    std::uint32_t count = p.round * static_cast<std::uint32_t>(list.size());
    for (const schedule::task& t : list) {
      for (int w = t.first_wait, end = w + t.wait_count; w < end; ++w) {
        const schedule::wait& other = p.plan.waits[static_cast<std::size_t>(w)];
        const auto thread = static_cast<std::size_t>(other.thread);
        p.done[thread].wait(
            p.round * static_cast<std::uint32_t>(p.plan.lists[thread].size()) + static_cast<std::uint32_t>(other.tasks),
            wait_, crowded_);
      }
      probe.start(self);
      run_task(t, m.bound(static_cast<std::size_t>(t.call)), session);
      probe.end(self, t.call, t.part, t.parts);
      ++count;
      if (t.awaited) mine.reach(count);
    }
  }
  template <class Session>
  void run_task(const schedule::task& t, const bound_call& whole, Session& session) {
    if (failed_.load(std::memory_order_acquire)) return;  // the step is lost, so it is finished without work
    bound_call c = whole;
    c.size.part = t.part, c.size.parts = t.parts;
#if defined(__cpp_exceptions)
    try {
#endif
      if (c.run != nullptr)
        c.run(c.args, c.size, c.what);
      else
        session(c);
#if defined(__cpp_exceptions)
    } catch (...) {
      if (!claimed_.test_and_set()) {  // the first error is the one that is reported
        error_ = std::current_exception();
        failed_.store(true, std::memory_order_release);
      }
    }
#endif
  }
};

}  // namespace detail

// Uses `count` threads including the caller's; they are made with the runner and joined when it is destroyed. A model
// too small to gain stays on the caller, and no thread is woken.
struct threads {
  using policy_for = kind::executor;
  static constexpr bool concurrent = true;
  int count = 2;  // 1 to 1024
  waiting wait = {};
  gradus::work_division division = {};

  class runner : worker_pool, public detail::scheduled_runner<worker_pool> {
  public:
    explicit runner(const threads& t)
        : worker_pool(t.count, t.wait),
          detail::scheduled_runner<worker_pool>(static_cast<worker_pool&>(*this), t.division, t.wait) {}
    using detail::scheduled_runner<worker_pool>::run;
    using detail::scheduled_runner<worker_pool>::size;
  };
};

// Uses the threads of a pool of yours, which must outlive the runner. One step at a time uses it.
template <thread_pool Pool>
struct threads_on {
  using policy_for = kind::executor;
  static constexpr bool concurrent = true;
  Pool* where;
  waiting wait;
  gradus::work_division division;
  threads_on(Pool& p, const waiting& w = {}, const gradus::work_division& d = {}) : where(&p), wait(w), division(d) {}

  class runner : public detail::scheduled_runner<Pool> {
  public:
    explicit runner(const threads_on& t) : detail::scheduled_runner<Pool>(*t.where, t.division, t.wait) {}
  };
};
#endif

}  // namespace gradus
