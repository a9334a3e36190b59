// The bodies of measured_worth.hpp.
#pragma once
#include "../base/body.hpp"
#include "measured_worth.hpp"

#include <algorithm>
#include <cmath>

#include "../base/clock.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY double steady_seconds::now() { return system_clock{}.elapsed(); }

namespace detail {

GRADUS_BODY void measured_worth::took(double seconds) {
  if (!measures_) return;
  if (!divides()) {
    --alone_steps_;
    alone_ = alone_ == 0 ? seconds : alone_ + (seconds - alone_) / 8;
    return;
  }
  if (alone_ == 0) {  // the first steps touch memory for the first time, and are compared with nothing
    if (++unmeasured_ == first_steps) alone_steps_ = compared_steps;
    return;
  }
  saved_ = std::min(saved_ + alone_ - seconds, loss_allowed * alone_);
  if (saved_ >= 0) return;
  alone_steps_ = static_cast<int>(std::min(std::ceil(-saved_ / alone_ * loss_allowed), 1e6));
  saved_ = 0;
}

}  // namespace detail

}  // namespace gradus
