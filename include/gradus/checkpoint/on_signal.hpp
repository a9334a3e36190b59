// on_signal saves a checkpoint when the operating system signals that the machine is about to be taken away, and ends
// training after it. POSIX only.
//
//   make_trainer<digits>(adam{}, any_of{every_seconds{600}, on_signal{SIGTERM}}, run_config{...});
#pragma once
#include <array>
#include <csignal>
#include <memory>

#include "save_when.hpp"

namespace gradus::inline GRADUS_BUILD {

// Catches the signal as long as it lives, and then restores the former handler. Two objects at a time for one signal
// share it.
class on_signal {
public:
  using policy_for = kind::save_when;

  explicit on_signal(int signal, bool stops = true) : stops_(stops), handler_(std::make_shared<handler>(signal)) {}

  bool due(const save_moment&);
  // Returns true if training is to end: the signal came, and `stops` is set.
  bool stop() const { return stops_ && arrived_; }

private:
  class handler {
  public:
    explicit handler(int signal);
    handler(const handler&) = delete;
    handler& operator=(const handler&) = delete;
    ~handler() { ::sigaction(signal_, &before_, nullptr); }
    bool pending();

  private:
    static constexpr int most = 65;
    // A signal handler can reach only static data.
    static std::array<volatile std::sig_atomic_t, most>& count();
    int signal_;
    struct sigaction before_ {};
  };
  bool stops_, arrived_ = false;
  std::shared_ptr<handler> handler_;
};
static_assert(save_decision<on_signal>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "on_signal.ipp"
#endif
