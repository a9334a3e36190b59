// The bodies of step_counter.hpp.
#pragma once
#include "../base/body.hpp"
#include "step_counter.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY progress_report step_counter::count(std::int64_t step, std::int64_t last, double loss, double rate,
                                                double now, double every) {
  due_ = divides(every, step);
  if (last == until_data_end) last = 0;
  if (step > from_ && now > since_)  // the mean since the last report that was due
    steps_per_sec_ = static_cast<double>(step - from_) / (now - since_);
  if (due_) start(step, now);
  const double left = last > 0 && steps_per_sec_ > 0 ? static_cast<double>(last - step) / steps_per_sec_ : 0;
  return {step, last, loss, rate, steps_per_sec_, left, now};
}

}  // namespace gradus::detail
