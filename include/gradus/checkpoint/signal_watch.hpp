// A signal_watch reports that a signal requested the end of the program; a second signal ends it at once. POSIX only.
//
//   const gradus::signal_watch watch;            // SIGTERM and SIGINT
//   while (!watch.arrived()) work();             // the first one: end in order
//
// From the first signal on, each of the signals has its default action: it ends the program. If the program had a
// handler of its own, that is called as well. A signal that the program ignores stays ignored, as it is for a shell's
// background jobs.
#pragma once
#include "../base/build.hpp"

#include <csignal>
#include <initializer_list>
#include <memory>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// Catches the signals until its last copy is destroyed. Several objects may catch one signal; the last of them restores
// the former handler.
class signal_watch {
public:
  // Raises invalid_argument for a number that is no signal, or for a signal that cannot be caught.
  explicit signal_watch(std::initializer_list<int> numbers = {SIGTERM, SIGINT});
  // Returns true if one of the signals came since this object was made.
  bool arrived() const;

private:
  class taken;
  std::shared_ptr<taken> taken_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "signal_watch.ipp"
#endif
