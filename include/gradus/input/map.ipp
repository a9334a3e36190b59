// The bodies of map.hpp.
#pragma once
#include "../base/body.hpp"
#include "map.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY map_threads::map_threads(function f, int threads, const task_system& of)
    : f_(std::move(f)), ring_(static_cast<std::size_t>(threads)), work_(of), done_(of) {
  threads_.reserve(static_cast<std::size_t>(threads));
  // If a thread or memory is missing, the threads that have begun are waiting for work, and would be waited for.
  struct until_all_began {
    map_threads* all;
    ~until_all_began() {
      if (all != nullptr) all->end();
    }
  } guard{this};
  for (int i = 0; i < threads; ++i)
    threads_.push_back(of.start(text("map with ", threads, " threads, ", i, " begun,"), "ask for fewer (parallel)",
                                [this] { run(); }));
  guard.all = nullptr;
}

GRADUS_BODY void map_threads::put() {
  {
    const std::lock_guard lock(mutex_);
    ring_[put_ % ring_.size()].done = false;
    ++put_;
  }
  work_.notify_one();
}

GRADUS_BODY void map_threads::take(datum& out) {
  place& p = ring_[taken_ % ring_.size()];
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return p.done; });
    ++taken_;
  }
#if defined(__cpp_exceptions)
  if (p.error) std::rethrow_exception(std::exchange(p.error, nullptr));
#endif
  std::swap(out, p.out);
}

GRADUS_BODY void map_threads::drop() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] {
    for (std::size_t i = taken_; i < put_; ++i)
      if (!ring_[i % ring_.size()].done) return false;
    return true;
  });
  taken_ = put_;
  for (auto& p : ring_) p.error = nullptr;
}

GRADUS_BODY void map_threads::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
}

GRADUS_BODY void map_threads::run() {
  for (;;) {
    place* p = nullptr;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return ending_ || begun_ < put_; });
      if (begun_ == put_) return;
      p = &ring_[begun_++ % ring_.size()];
    }
#if defined(__cpp_exceptions)
    try {
      f_(p->in, p->out);
    } catch (...) {
      p->error = std::current_exception();
    }
#else
    f_(p->in, p->out);
#endif
    {
      const std::lock_guard lock(mutex_);
      p->done = true;
    }
    done_.notify_one();
  }
}

}  // namespace gradus::detail
