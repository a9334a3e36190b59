// A thread slot is a small number that identifies the calling thread, for data that are kept per thread so that threads
// do not share cache lines.
#pragma once
#include "build.hpp"

#if defined(__STDCPP_THREADS__)
#include <atomic>
#include <bit>

namespace gradus::inline GRADUS_BUILD::detail {

// The number of slots. Threads that share a slot only wait for its cache line.
inline constexpr unsigned thread_slots = 16;

// The slots that are taken by living threads are kept as bits. A thread gets the lowest free slot, which is free again
// when the thread ends. If slots were counted up instead, the numbers would wrap around, and a new thread would share a
// slot with a thread that lives long.
class thread_slot_holder {
public:
  thread_slot_holder() {
    unsigned known = taken().load(std::memory_order_relaxed);
    do {
      slot_ = static_cast<unsigned>(std::countr_one(known));
      owns_ = slot_ < thread_slots;
    } while (owns_ && !taken().compare_exchange_weak(known, known | 1U << slot_, std::memory_order_relaxed));
    if (!owns_) slot_ = shared();
  }
  ~thread_slot_holder() {
    if (owns_) taken().fetch_and(~(1U << slot_), std::memory_order_relaxed);
  }
  thread_slot_holder(const thread_slot_holder&) = delete;
  unsigned slot() const { return slot_; }

private:
  unsigned slot_ = 0;
  bool owns_ = false;

  static std::atomic<unsigned>& taken() {
    static std::atomic<unsigned> bits{0};
    return bits;
  }
  // Returns a slot for a thread if all slots are taken.
  static unsigned shared() {
    static std::atomic<unsigned> next{0};
    return next.fetch_add(1, std::memory_order_relaxed) % thread_slots;
  }
};
inline unsigned thread_slot() {
  thread_local const thread_slot_holder mine;
  return mine.slot();
}

}  // namespace gradus::detail
#endif
