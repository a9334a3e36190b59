// A caught_signal counts how often a signal came. Several objects of a program may catch one signal: each has a count
// of its own, and the last one restores the handler that was there before the first. POSIX only.
#pragma once
#include "../base/build.hpp"

#include <csignal>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

enum class signal_use {
  reports,  // the program goes on, whatever comes
  ends      // the next signal ends the program, and a handler that was there before is called as well
};

class caught_signal {
public:
  // Catches the signal; with signal_use::ends only if the program does not ignore it. Raises invalid_argument, whose
  // message begins with `caller`, for a number that is no signal and for a signal that cannot be caught.
  caught_signal(const char* caller, int signal, signal_use use);
  caught_signal(const caught_signal&) = delete;
  caught_signal& operator=(const caught_signal&) = delete;
  ~caught_signal();
  // Returns true if the signal came since this object was made.
  bool arrived() const;
  // Returns true if the signal came since this object was made and since the last call that returned true.
  bool pending();

private:
  int signal_;
  signal_use use_;
  bool caught_ = true;
  std::sig_atomic_t first_ = 0, seen_ = 0;
};

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "caught_signal.ipp"
#endif
