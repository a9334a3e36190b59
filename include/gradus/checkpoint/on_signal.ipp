// The bodies of on_signal.hpp.
#pragma once
#include "../base/body.hpp"
#include "on_signal.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY on_signal::on_signal(int signal, bool stops)
    : stops_(stops),
      signal_(std::make_shared<detail::caught_signal>("on_signal", signal, detail::signal_use::reports)) {}

GRADUS_BODY bool on_signal::due(const save_moment&) {
  const bool is = signal_->pending();
  arrived_ = arrived_ || is;
  return is;
}

}  // namespace gradus
