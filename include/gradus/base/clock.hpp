// Time is a policy: code that waits, stamps or measures takes a clock, and tests give it one that they turn by hand
// (testing/clock.hpp). A clock has `now()`, seconds since the epoch, and `elapsed()`, monotonic seconds.
#pragma once
#include <chrono>
#include <concepts>

#include "contract.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class C>
concept clock = requires(const C& c) {
  { c.now() } -> std::convertible_to<double>;
  { c.elapsed() } -> std::convertible_to<double>;
};

struct system_clock {
  using policy_for = kind::clock;
  double now() const {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};
static_assert(clock<system_clock>);

}  // namespace gradus
