// A signal_watch notices a signal of the operating system to end the program; a second one ends it at once. POSIX only.
//
//   const gradus::signal_watch watch;            // SIGTERM and SIGINT
//   while (!watch.arrived()) work();             // the first one: end in order
//
// From the first signal on, each of the signals has its default action: it ends the program. The program's own handler,
// if it had one, is called as well; a signal that it ignores stays ignored, as those of a shell's background jobs are.
#pragma once
#include <array>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <vector>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// Takes the signals over until its last copy is gone, and restores the former handlers. Only one does so at a time: a
// second one that is made meanwhile for the same signals sees them as well.
class signal_watch {
public:
  // Error: invalid_argument for a number that is no signal, or for a signal that cannot be caught.
  explicit signal_watch(std::initializer_list<int> numbers = {SIGTERM, SIGINT});
  // True if one of them came since this was made.
  bool arrived() const;

private:
  class taken;
  std::shared_ptr<taken> taken_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "signal_watch.ipp"
#endif
