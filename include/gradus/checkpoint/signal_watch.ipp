// The bodies of signal_watch.hpp.
#pragma once
#include <algorithm>
#include <list>

#include "../base/body.hpp"
#include "caught_signal.hpp"
#include "signal_watch.hpp"

namespace gradus::inline GRADUS_BUILD {

class signal_watch::taken {
public:
  explicit taken(std::initializer_list<int> numbers) {
    for (const int s : numbers) of_.emplace_back("signal_watch", s, detail::signal_use::ends);
  }
  bool arrived() const {
    return std::any_of(of_.begin(), of_.end(), [](const detail::caught_signal& s) { return s.arrived(); });
  }

private:
  std::list<detail::caught_signal> of_;
};

GRADUS_BODY signal_watch::signal_watch(std::initializer_list<int> numbers) : taken_(std::make_shared<taken>(numbers)) {}
GRADUS_BODY bool signal_watch::arrived() const { return taken_->arrived(); }

}  // namespace gradus
