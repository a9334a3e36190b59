// This header counts the steps per second of a run, between one due report and the next.
#pragma once
#include "../base/build.hpp"

#include <cstdint>

#include "progress.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline bool divides(double n, std::int64_t step) { return n >= 1 && step % static_cast<std::int64_t>(n) == 0; }

// This counts steps per second, between one due report and the next.
class step_counter {
public:
  void start(std::int64_t step, double now) { from_ = step, since_ = now; }
  // Call this after a step; `last` is 0 if the number of steps is unknown.
  progress_report count(std::int64_t step, std::int64_t last, double loss, double rate, double now, double every);
  bool due() const { return due_; }  // true if the counted step is one of every `every`
  double steps_per_sec() const { return steps_per_sec_; }

private:
  std::int64_t from_ = 0;
  double since_ = 0, steps_per_sec_ = 0;
  bool due_ = false;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "step_counter.ipp"
#endif
