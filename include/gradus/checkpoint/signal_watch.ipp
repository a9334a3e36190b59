// The bodies of signal_watch.hpp.
#pragma once
#include <utility>

#include "../base/body.hpp"
#include "signal_watch.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A handler can reach only static data; this one reads and writes nothing else, and calls only sigaction and the
// handler that was there before.
struct watched_signals {
  static constexpr int most = 65;
  std::array<volatile std::sig_atomic_t, most> arrived{}, watched{};
  std::array<struct sigaction, most> before{};

  static watched_signals& all() {
    static watched_signals here;
    return here;
  }
  static void take(int signal) {
    watched_signals& w = all();
    w.arrived[static_cast<std::size_t>(signal)] = 1;
    struct sigaction ends {};
    ends.sa_handler = SIG_DFL;
    for (int s = 1; s < most; ++s)
      if (w.watched[static_cast<std::size_t>(s)] != 0) ::sigaction(s, &ends, nullptr);
    const struct sigaction& old = w.before[static_cast<std::size_t>(signal)];
    if ((old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN)
      old.sa_handler(signal);
  }
};
}  // namespace detail

class signal_watch::taken {
public:
  explicit taken(std::initializer_list<int> numbers) {
    auto& all = detail::watched_signals::all();
    for (const int s : numbers)
      if (s <= 0 || s >= detail::watched_signals::most)
        raise(status::invalid_argument, text("signal_watch: ", s, " is no signal number; give SIGTERM or another"));
    for (const int s : numbers) {
      const auto at = static_cast<std::size_t>(s);
      seen_.push_back(s);
      if (all.watched[at] != 0) continue;  // another object catches it and restores the handler
      struct sigaction mine {};
      mine.sa_handler = &detail::watched_signals::take;
      mine.sa_flags = SA_RESTART;
      bool caught = ::sigaction(s, nullptr, &all.before[at]) == 0;
      if (caught && (all.before[at].sa_flags & SA_SIGINFO) == 0 && all.before[at].sa_handler == SIG_IGN) continue;
      all.arrived[at] = 0;
      caught = caught && ::sigaction(s, &mine, nullptr) == 0;
      if (!caught) {
        give_back();
        raise(status::invalid_argument, text("signal_watch: the signal ", s, " cannot be caught"));
      }
      all.watched[at] = 1;
      own_.push_back(s);
    }
  }
  taken(const taken&) = delete;
  ~taken() { give_back(); }
  bool arrived() const {
    for (const int s : seen_)
      if (detail::watched_signals::all().arrived[static_cast<std::size_t>(s)] != 0) return true;
    return false;
  }

private:
  std::vector<int> seen_, own_;

  void give_back() {
    auto& all = detail::watched_signals::all();
    for (const int s : own_) {
      const auto at = static_cast<std::size_t>(s);
      all.watched[at] = 0;
      ::sigaction(s, &all.before[at], nullptr);
    }
    own_.clear();
  }
};

GRADUS_BODY signal_watch::signal_watch(std::initializer_list<int> numbers) : taken_(std::make_shared<taken>(numbers)) {}
GRADUS_BODY bool signal_watch::arrived() const { return taken_->arrived(); }

}  // namespace gradus
