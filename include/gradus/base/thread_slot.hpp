// A small number of the calling thread, for what is kept once per thread so that threads do not share cache lines.
#pragma once
#if defined(__STDCPP_THREADS__)
#include <atomic>

#include "build.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// So many places are enough: threads that share one only wait for its cache line.
inline constexpr unsigned thread_slots = 16;

// Threads are given 0, 1, 2, ... in the order in which they ask first.
inline unsigned thread_slot() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed) % thread_slots;
  return mine;
}

}  // namespace gradus::detail
#endif
