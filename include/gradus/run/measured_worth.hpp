// Whether a step that can be divided among threads is divided: as long as that saves time. A schedule estimates what
// threads gain, on a machine that has nothing else to do; where other programs want the processors, the caller would
// wait for threads that the system does not run. So the time of steps is compared with that of steps on the caller
// alone.
#pragma once
#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD {

// now() returns the time in seconds since any fixed moment. A test brings its own clock.
struct steady_seconds {
  static double now();
};

namespace detail {

// Divided steps save time or lose it, and what they lost is set against what the last ones saved. When they lost more,
// the caller makes the next steps alone: so many that the loss is at most a sixteenth of their time. Then divided steps
// are tried again. The times of steps decide which thread computes what, never the results.
class measured_worth {
public:
  // If it does not measure, every step is divided.
  explicit measured_worth(bool measures = true) : measures_(measures) {}

  bool divides() const { return alone_steps_ == 0; }
  bool measures() const { return measures_; }
  // Call this after every step, with its time: divides() was true of a divided one.
  void took(double seconds);

private:
  static constexpr int first_steps = 4, compared_steps = 2;
  static constexpr double loss_allowed = 16;
  bool measures_;
  int unmeasured_ = 0, alone_steps_ = 0;  // steps to come on the caller alone
  double alone_ = 0, saved_ = 0;          // seconds: a mean of steps on the caller alone; saved lately
};

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "measured_worth.ipp"
#endif
