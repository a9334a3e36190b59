// This clock is turned by hand, so that no test has to wait.
#pragma once
#include <memory>

#include "../base/clock.hpp"
#include "../base/contract.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// Copies are the same clock: give one to what is tested, keep one to turn. It stands still by itself.
class hand_clock {
public:
  using policy_for = kind::clock;

  hand_clock() : hand_clock(1.5e9) {}
  explicit hand_clock(double now) : time_(std::make_shared<time>(time{now, 0})) {}
  double now() const { return time_->now; }
  double elapsed() const { return time_->elapsed; }

  // Turns the clock on by so many seconds.
  void advance(double secs) const { time_->now += secs, time_->elapsed += secs; }
  // Sets the wall clock; monotonic time goes on as it was.
  void set(double now) const { time_->now = now; }

private:
  struct time {
    double now, elapsed;
  };
  std::shared_ptr<time> time_;
};
static_assert(clock<hand_clock>);

}  // namespace gradus::testing
