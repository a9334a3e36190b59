// What a session keeps beside its variables: which of them have no value, where its random stream stands, and whether a
// thread is at work in it.
#pragma once
#include <atomic>
#include <cstring>
#include <string_view>
#include <vector>

#include "machine.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// State of a session in a checkpoint: the names of the variables that have no value, each with a zero byte behind it.
// Local variables are not in checkpoints.
class variables_without_value final : public blob {
public:
  explicit variables_without_value(variable_arena& variables) : variables_(variables) {}
  void save(std::vector<std::byte>& out) const override;
  void load(std::span<const std::byte> in) override;

private:
  variable_arena& variables_;
};

// The number of a run that draws: one more than that of the last one. Runs that start side by side take different ones.
void take_number(std::int64_t& last);
// Whether a node reads the seed and the position of the random stream (ops/random.hpp).
bool draws_numbers(const runnable& r);

// In a debug build, says so when a session is entered while it is at work; not where there are no threads.
class one_thread_at_a_time {
public:
#if !defined(NDEBUG) && (defined(__unix__) || defined(__APPLE__) || defined(_WIN32))
  explicit one_thread_at_a_time(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acquire))
      raise(status::failed_precondition,
            "this session is at work in another call: a session takes one thread at a time; give each thread a session "
            "of its own, or lock a mutex around every call of this one");
  }
  ~one_thread_at_a_time() { busy_.store(false, std::memory_order_release); }
  one_thread_at_a_time(const one_thread_at_a_time&) = delete;

private:
  std::atomic<bool>& busy_;
#else
  explicit one_thread_at_a_time(std::atomic<bool>&) {}
#endif
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "session_state.ipp"
#endif
