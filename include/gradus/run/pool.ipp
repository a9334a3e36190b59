// The bodies of pool.hpp.
#pragma once
#include "../base/body.hpp"
#include "pool.hpp"

#if defined(__STDCPP_THREADS__)
namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY worker_pool::worker_pool(int size, const waiting& w) : size_(checked(size)), wait_(w) {
  crowded_ = detail::is_crowded(static_cast<std::size_t>(size));
  finished_ = detail::owned_array<detail::progress>(static_cast<std::size_t>(size));
  workers_.reserve(static_cast<std::size_t>(size) - 1);
  // If a thread or memory is missing, the threads that have begun are waiting for work, and would be waited for.
  struct until_all_began {
    worker_pool* pool;
    ~until_all_began() {
      if (pool != nullptr) pool->end();
    }
  } guard{this};
  for (int i = 1; i < size; ++i)
    workers_.push_back(start_thread(text("a pool of ", size, " threads, ", i - 1, " of ", size - 1, " begun,"),
                                    "ask for fewer", [this, i] { work(i); }));
  guard.pool = nullptr;
}

GRADUS_BODY int worker_pool::checked(int size) {
  if (size < 1 || size > 1024)
    raise(status::invalid_argument, text("threads: expected a count from 1 to 1024, got ", size));
  return size;
}

GRADUS_BODY void worker_pool::work(int self) {
  for (std::uint32_t round = 1;; ++round) {
    started().wait(round, wait_, crowded_);
    if (call_ == nullptr) return;
    call_(what_, self);
    finished_[static_cast<std::size_t>(self)].reach(round);
  }
}

}  // namespace gradus
#endif
