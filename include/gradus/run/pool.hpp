// `pool` is a thread pool; any type that satisfies `thread_pool` may be used in its place.
#pragma once
#include "../base/build.hpp"

#if defined(__STDCPP_THREADS__)
#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "../base/error.hpp"
#include "../base/owned.hpp"
#include "../base/thread.hpp"

namespace gradus::inline GRADUS_BUILD {

// run(f) calls f(i) for every i < size(), all at the same time, each on a thread of its own (they wait for each other),
// the caller being 0; it returns when all calls have, and the caller sees their writes. f does not throw.
template <class P>
concept thread_pool = requires(P& p, void (*f)(int)) {
  { p.size() } -> std::convertible_to<int>;
  p.run(f);
};

// How long a thread polls before it sleeps. A thread that polls notices a change in a tenth of a microsecond and keeps
// its processor; one that sleeps needs tens of microseconds to wake. Between the two it polls and lets others run.
struct waiting {
  int spins = 2000;   // polls that keep the processor, some 5 to 50 ns each
  int yields = 2000;  // then polls that offer it to others
};

namespace detail {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns whether there are more threads than processors, if they all work at once.
inline bool is_crowded(std::size_t threads) {
  const std::size_t processors = std::thread::hardware_concurrency();
  return processors != 0 && threads > processors;
}

// Polls ready() for as long as `w` allows; returns its last value. With more threads than processors, the awaited
// thread may need this very processor.
template <class Ready>
bool look(const waiting& w, bool crowded, Ready ready) {
  if (ready()) return true;
  for (int i = crowded ? w.spins : 0; i < w.spins; ++i) {
    if (ready()) return true;
    relax();
  }
  for (int i = 0, n = crowded ? std::min(w.yields, 64) : w.yields; i < n; ++i) {
    if (ready()) return true;
    std::this_thread::yield();
  }
  return ready();
}

// A count that grows, and wraps around; it is on a cache line of its own.
class alignas(64) progress {
public:
  std::uint32_t value() const { return now_.load(std::memory_order_relaxed); }
  void reach(std::uint32_t value) {
    now_.store(value, std::memory_order_release);
    now_.notify_all();  // this is only a load if no thread sleeps
  }
  void wait(std::uint32_t target, const waiting& w, bool crowded) const {
    if (look(w, crowded, [&] { return reached(target, now_.load(std::memory_order_acquire)); })) return;
    for (std::uint32_t seen = now_.load(std::memory_order_acquire); !reached(target, seen);
         seen = now_.load(std::memory_order_acquire))
      now_.wait(seen, std::memory_order_acquire);
  }

private:
  std::atomic<std::uint32_t> now_{0};
  static bool reached(std::uint32_t target, std::uint32_t seen) {
    return static_cast<std::int32_t>(seen - target) >= 0;
  }
};

}  // namespace detail

// The pool has size() - 1 threads of its own, and uses the caller's. It binds none to a processor. run() allocates
// nothing and takes no lock.
class worker_pool {
public:
  // Raises invalid_argument unless 1 <= size <= 1024; resource_exhausted if a thread cannot be created, after those
  // that were created have ended.
  explicit worker_pool(int size, const waiting& w = {});
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;
  ~worker_pool() { end(); }
  int size() const { return size_; }
  const waiting& wait() const { return wait_; }
  bool crowded() const { return crowded_; }  // more threads than processors

  template <class F>
  void run(F&& f) {
    what_ = const_cast<void*>(static_cast<const void*>(&f));
    call_ = [](void* what, int i) { (*static_cast<std::remove_reference_t<F>*>(what))(i); };
    const std::uint32_t round = started().value() + 1;
    started().reach(round);
    f(0);
    for (std::size_t i = 1; i < static_cast<std::size_t>(size_); ++i) finished_[i].wait(round, wait_, crowded_);
  }

private:
  int size_;
  waiting wait_;
  bool crowded_ = false;
  void* what_ = nullptr;
  void (*call_)(void*, int) = nullptr;
  // That of thread 0, the caller, counts the rounds that have started. All are apart from the pool, whose owner then
  // needs no more than the alignment of a pointer (g++ 12 does not align the frames of coroutines).
  detail::owned_array<detail::progress> finished_;
  std::vector<detail::joining_thread> workers_;  // the last member: joined before the members that they read go

  static int checked(int size);
  detail::progress& started() { return finished_[0]; }
  // Makes the threads end; they are joined when they are destroyed.
  void end() {
    call_ = nullptr;
    started().reach(started().value() + 1);
  }
  void work(int self);
};

}  // namespace gradus

#endif

#ifndef GRADUS_COMPILED
#include "pool.ipp"
#endif
