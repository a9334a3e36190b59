#include "gradus/checkpoint/on_signal.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <memory>

using namespace gradus;

namespace {
volatile std::sig_atomic_t seen_before = 0;
}

TEST_CASE("on_signal: due once for a signal, then stops; the handler that was there comes back") {
  std::signal(SIGUSR1, [](int) { seen_before = seen_before + 1; });
  {
    on_signal d{SIGUSR1};
    CHECK(!d.due({}));
    CHECK(!d.stop());
    std::raise(SIGUSR1);
    CHECK(d.due({}));
    CHECK(!d.due({}));
    CHECK(d.stop());
    CHECK(seen_before == 0);
    on_signal goes_on{SIGUSR2, false};
    std::raise(SIGUSR2);
    any_of both{every_steps{100}, goes_on};
    CHECK(both.due({.step = 1}));
    CHECK(!both.stop());
  }
  std::raise(SIGUSR1);
  CHECK(seen_before == 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("on_signal: each of several objects is due, and the last one restores the handler") {
  std::signal(SIGUSR1, [](int) { seen_before = seen_before + 1; });
  seen_before = 0;
  {
    auto first = std::make_unique<on_signal>(SIGUSR1);
    on_signal second{SIGUSR1};
    std::raise(SIGUSR1);
    CHECK(first->due({}));
    CHECK(second.due({}));
    first.reset();
    std::raise(SIGUSR1);
    CHECK(second.due({}));
    on_signal third{SIGUSR1};
    CHECK(!third.due({}));  // what came before it was made
    CHECK(seen_before == 0);
  }
  std::raise(SIGUSR1);
  CHECK(seen_before == 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("on_signal: what cannot be caught is refused") {
  for (const int signal : {0, -1, 1000, SIGKILL})
    CHECK_THROWS_AS(on_signal{signal}, error_of<status::invalid_argument>);
}
