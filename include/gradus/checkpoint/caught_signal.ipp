// The bodies of caught_signal.hpp.
#pragma once
#include <array>
#include <cerrno>
#include <mutex>

#include "../base/body.hpp"
#include "caught_signal.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A handler can reach only static data; this one reads and writes nothing else, and calls only sigaction and the
// handler that was there before.
struct signal_table {
  static constexpr int most = 65;
  struct entry {
    volatile std::sig_atomic_t came = 0, ending = 0;  // how often; how many objects have signal_use::ends
    int users = 0;
    struct sigaction before {};
  };
  std::mutex alone;  // of those that change users; a handler takes no lock
  std::array<entry, most> of{};

  static signal_table& all() {
    static signal_table here;
    return here;
  }
  static void take(int signal, siginfo_t* about, void* context) {
    const int error = errno;
    signal_table& t = all();
    entry& e = t.of[static_cast<std::size_t>(signal)];
    e.came = static_cast<std::sig_atomic_t>(static_cast<unsigned>(e.came) + 1u);
    if (e.ending != 0) {
      struct sigaction ends {};
      ends.sa_handler = SIG_DFL;
      for (int s = 1; s < most; ++s)
        if (t.of[static_cast<std::size_t>(s)].ending != 0) ::sigaction(s, &ends, nullptr);
      if (e.before.sa_handler == SIG_DFL || e.before.sa_handler == SIG_IGN) {
        // nothing was there to be called
      } else if ((e.before.sa_flags & SA_SIGINFO) != 0) {
        e.before.sa_sigaction(signal, about, context);
      } else {
        e.before.sa_handler(signal);
      }
    }
    errno = error;
  }
};

GRADUS_BODY caught_signal::caught_signal(const char* caller, int signal, signal_use use) : signal_(signal), use_(use) {
  if (signal <= 0 || signal >= signal_table::most)
    raise(status::invalid_argument, text(caller, ": ", signal, " is no signal number; give SIGTERM or another"));
  signal_table& t = signal_table::all();
  signal_table::entry& e = t.of[static_cast<std::size_t>(signal)];
  const std::lock_guard lock(t.alone);
  first_ = seen_ = e.came;
  struct sigaction now {};
  bool taken = ::sigaction(signal, nullptr, &now) == 0;
  if (taken && use == signal_use::ends && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN) {
    caught_ = false;
    return;
  }
  if (e.users == 0) e.before = now;
  struct sigaction mine {};
  mine.sa_sigaction = &signal_table::take;
  mine.sa_flags = SA_RESTART | SA_SIGINFO;  // a handler that was there before may want to know more of the signal
  taken = taken && ::sigaction(signal, &mine, nullptr) == 0;
  if (!taken) raise(status::invalid_argument, text(caller, ": the signal ", signal, " cannot be caught"));
  ++e.users;
  if (use == signal_use::ends) e.ending = e.ending + 1;
}

GRADUS_BODY caught_signal::~caught_signal() {
  if (!caught_) return;
  signal_table& t = signal_table::all();
  signal_table::entry& e = t.of[static_cast<std::size_t>(signal_)];
  const std::lock_guard lock(t.alone);
  if (use_ == signal_use::ends) e.ending = e.ending - 1;
  if (--e.users == 0) ::sigaction(signal_, &e.before, nullptr);
}

GRADUS_BODY bool caught_signal::arrived() const {
  return caught_ && signal_table::all().of[static_cast<std::size_t>(signal_)].came != first_;
}

GRADUS_BODY bool caught_signal::pending() {
  const std::sig_atomic_t came = signal_table::all().of[static_cast<std::size_t>(signal_)].came;
  const bool is = caught_ && came != seen_;
  seen_ = came;
  return is;
}
}  // namespace detail

}  // namespace gradus
