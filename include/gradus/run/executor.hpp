// Who runs the calls of a step. `serial`: this thread, in order. `threads{n}`: this one and n - 1 more, on a schedule
// fixed by the graph's edges. Results are the same bits: calls have no shared sums, and edges order all that touches
// the same memory.
#pragma once
#include <utility>
#if defined(__STDCPP_THREADS__)  // bare metal has none, and only `serial`
#include <atomic>
#include <memory>
#include <thread>
#include <vector>
#if defined(__cpp_exceptions)
#include <exception>
#endif
#endif

#include "../base/contract.hpp"
#include "machine.hpp"

namespace gradus {

// The default: no thread but the caller's.
struct serial {
  using policy_for = kind::executor;
  static constexpr bool concurrent = false;

  struct runner {
    explicit runner(const serial& = {}) {}
    template <class Machine, class Session>
    void run(Machine& m, Session session) {
      m.run(session);
    }
  };
};

#if defined(__STDCPP_THREADS__)
namespace detail {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
// Spins, then parks: a parked hand-off costs tens of microseconds, a spinning one a tenth of one.
inline void wait_until(const std::atomic<std::uint32_t>& flag, std::uint32_t value) {
  for (int i = 0; i < 4096; ++i) {
    if (flag.load(std::memory_order_acquire) == value) return;
    relax();
  }
  for (std::uint32_t seen = flag.load(std::memory_order_acquire); seen != value;
       seen = flag.load(std::memory_order_acquire))
    flag.wait(seen, std::memory_order_acquire);
}

// Which thread runs which call, in which order, and what it waits for. From the edges alone, by list scheduling: a call
// goes to the thread where it can start first. Built once per graph.
class schedule {
public:
  struct task {
    int call;                    // index of the bound call
    int first_wait, wait_count;  // calls of other threads that must be done
  };
  schedule(const runnable& r, int threads) : lists(static_cast<std::size_t>(threads)) {
    const graph_view& v = r.graph.view;
    std::vector<int> call_of(static_cast<std::size_t>(v.size), -1);
    for (int c = 0; c < r.program.call_count; ++c) call_of[static_cast<std::size_t>(r.program.calls[c].node)] = c;
    // the calls that a node stands for: itself, or what a view or a group waits for
    std::vector<std::vector<int>> behind(static_cast<std::size_t>(v.size));
    std::vector<int> owner(static_cast<std::size_t>(r.program.call_count), 0);
    std::vector<double> finish(static_cast<std::size_t>(r.program.call_count), 0), busy(lists.size(), 0);
    for (int i = 0; i < v.size; ++i) {
      const node& n = v.nodes[i];
      auto& mine = behind[static_cast<std::size_t>(i)];
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
        for (int c : behind[static_cast<std::size_t>(v.edges[e])]) insert(mine, c);
      const int c = call_of[static_cast<std::size_t>(i)];
      if (c < 0) continue;
      double cost = 64;  // bytes that it touches stand for its time
      for (int a = r.program.calls[c].first, end = a + r.program.calls[c].count; a < end; ++a) {
        const node& operand = v.nodes[r.program.args[a]];
        cost +=
            static_cast<double>(gradus::count(resolve(operand.dims, 32))) * static_cast<double>(size_of(operand.type));
      }
      std::size_t best = 0;
      double start = 0;
      for (std::size_t t = 0; t < lists.size(); ++t) {
        double ready = busy[t];
        for (int d : mine) ready = std::max(ready, finish[static_cast<std::size_t>(d)]);
        if (t == 0 || ready < start) best = t, start = ready;
      }
      task k{c, static_cast<int>(waits.size()), 0};
      for (int d : mine)
        if (owner[static_cast<std::size_t>(d)] != static_cast<int>(best)) waits.push_back(d), ++k.wait_count;
      lists[best].push_back(k);
      owner[static_cast<std::size_t>(c)] = static_cast<int>(best);
      busy[best] = finish[static_cast<std::size_t>(c)] = start + cost;
      mine.assign(1, c);
    }
    done = std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(r.program.call_count) + 1);
  }
  std::vector<std::vector<task>> lists;
  std::vector<int> waits;
  std::unique_ptr<std::atomic<std::uint32_t>[]> done;  // the number of the step that each call has finished

private:
  static void insert(std::vector<int>& set, int c) {
    for (int x : set)
      if (x == c) return;
    set.push_back(c);
  }
};

}  // namespace detail

struct threads {
  using policy_for = kind::executor;
  static constexpr bool concurrent = true;
  int count = 2;  // with the caller's; 1 or more

  class runner {
  public:
    explicit runner(const threads& t) {
      if (t.count < 1 || t.count > 1024)
        raise(status::invalid_argument, text("threads: expected a count from 1 to 1024, got ", t.count));
      count_ = t.count;
      for (int i = 1; i < count_; ++i) workers_.emplace_back([this, i] { work(i); });
    }
    runner(const runner&) = delete;
    ~runner() {
      stop_ = true;
      start();
      for (auto& w : workers_) w.join();
    }

    template <class Machine, class Session>
    void run(Machine& m, Session session) {
      job_.schedule = &schedule_of(m);
      job_.self = &m;
      job_.session = &session;
      job_.run = [](void* machine_, void* session_, int call) {
        auto& machine = *static_cast<Machine*>(machine_);
        const bound_call& c = machine.bound(static_cast<std::size_t>(call));
        if (c.run != nullptr)
          c.run(c.args, c.size, c.what);
        else
          (*static_cast<Session*>(session_))(c);
      };
      failed_.store(false, std::memory_order_relaxed);
      const std::uint32_t step = start();
      run_list(0, step);
      for (std::size_t i = 0; i < workers_.size(); ++i) detail::wait_until(finished_[i], step);
#if defined(__cpp_exceptions)
      if (failed_.load(std::memory_order_acquire)) {
        claimed_ = false;
        std::rethrow_exception(std::exchange(error_, nullptr));
      }
#endif
    }

  private:
    struct job {
      detail::schedule* schedule = nullptr;
      void *self = nullptr, *session = nullptr;
      void (*run)(void*, void*, int) = nullptr;
    };
    int count_ = 1;
    std::vector<std::thread> workers_;
    std::vector<std::pair<const void*, std::unique_ptr<detail::schedule>>> schedules_;
    job job_;
    std::atomic<std::uint32_t> epoch_{0};
    std::unique_ptr<std::atomic<std::uint32_t>[]> finished_ = std::make_unique<std::atomic<std::uint32_t>[]>(1024);
    std::atomic<bool> failed_{false}, claimed_{false};
    bool stop_ = false;
#if defined(__cpp_exceptions)
    std::exception_ptr error_;
#endif

    template <class Machine>
    detail::schedule& schedule_of(const Machine& m) {
      const void* key = m.what().program.calls;
      for (auto& s : schedules_)
        if (s.first == key) return *s.second;
      schedules_.emplace_back(key, std::make_unique<detail::schedule>(m.what(), count_));
      return *schedules_.back().second;
    }
    std::uint32_t start() {
      const std::uint32_t step = epoch_.load(std::memory_order_relaxed) + 1;
      epoch_.store(step, std::memory_order_release);
      epoch_.notify_all();
      return step;
    }
    void work(int self) {
      std::uint32_t seen = 0;
      for (;;) {
        detail::wait_until(epoch_, seen + 1);
        ++seen;
        if (stop_) return;
        run_list(self, seen);
        auto& flag = finished_[static_cast<std::size_t>(self) - 1];
        flag.store(seen, std::memory_order_release);
        flag.notify_one();
      }
    }
    void run_list(int self, std::uint32_t step) {
      detail::schedule& s = *job_.schedule;
      for (const auto& t : s.lists[static_cast<std::size_t>(self)]) {
        for (int w = 0; w < t.wait_count; ++w)
          detail::wait_until(s.done[static_cast<std::size_t>(s.waits[static_cast<std::size_t>(t.first_wait + w)])],
                             step);
        run_call(t.call);
        auto& done = s.done[static_cast<std::size_t>(t.call)];
        done.store(step, std::memory_order_release);
        done.notify_all();
      }
    }
    void run_call(int call) {
      if (failed_.load(std::memory_order_acquire)) return;  // the step is lost: finish it without work
#if defined(__cpp_exceptions)
      try {
        job_.run(job_.self, job_.session, call);
      } catch (...) {
        if (!claimed_.exchange(true)) {  // the first error is the one that is reported
          error_ = std::current_exception();
          failed_.store(true, std::memory_order_release);
        }
      }
#else
      job_.run(job_.self, job_.session, call);
#endif
    }
  };
};
#endif

}  // namespace gradus
