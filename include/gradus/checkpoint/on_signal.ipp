// The bodies of on_signal.hpp.
#pragma once
#include "../base/body.hpp"
#include "on_signal.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool on_signal::due(const save_moment&) {
  const bool is = handler_->pending();
  arrived_ = arrived_ || is;
  return is;
}

GRADUS_BODY on_signal::handler::handler(int signal) : signal_(signal) {
  if (signal <= 0 || signal >= most)
    raise(status::invalid_argument, text("on_signal: ", signal, " is no signal number; give SIGTERM or another"));
  struct sigaction mine {};
  mine.sa_handler = [](int s) { count()[static_cast<std::size_t>(s)] = 1; };
  mine.sa_flags = SA_RESTART;
  if (::sigaction(signal, &mine, &before_) != 0)
    raise(status::invalid_argument, text("on_signal: the signal ", signal, " cannot be caught"));
}

GRADUS_BODY bool on_signal::handler::pending() {
  auto& c = count()[static_cast<std::size_t>(signal_)];
  return c != 0 ? (c = 0, true) : false;
}

GRADUS_BODY std::array<volatile std::sig_atomic_t, on_signal::handler::most>& on_signal::handler::count() {
  static std::array<volatile std::sig_atomic_t, most> arrived{};
  return arrived;
}

}  // namespace gradus
