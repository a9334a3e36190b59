// This header has a clock that a test sets by hand, so that no test has to wait.
#pragma once
#include "../base/build.hpp"

#include <memory>

#include "../base/clock.hpp"
#include "../base/contract.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// Copies share the same clock: give one to the code under test, and keep one to advance. The time changes only by
// `advance` and `set`.
class hand_clock {
public:
  using policy_for = kind::clock;

  hand_clock() : hand_clock(1.5e9) {}
  explicit hand_clock(double now) : time_(std::make_shared<time>(time{now, 0})) {}
  double now() const { return time_->now; }
  double elapsed() const { return time_->elapsed; }

  // Advances the clock by `secs` seconds.
  void advance(double secs) const { time_->now += secs, time_->elapsed += secs; }
  // Sets the wall clock; monotonic time does not change.
  void set(double now) const { time_->now = now; }

private:
  struct time {
    double now, elapsed;
  };
  std::shared_ptr<time> time_;
};
static_assert(clock<hand_clock>);

}  // namespace gradus::testing
