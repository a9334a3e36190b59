#include <gradus/checkpoint/caught_signal.hpp>

#include <gradus/checkpoint/on_signal.hpp>
#include <gradus/checkpoint/signal_watch.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <csignal>
#include <memory>

using namespace gradus;
using detail::caught_signal, detail::signal_use;

namespace {
volatile std::sig_atomic_t calls = 0, sender = 0;
bool has_default(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}
}  // namespace

TEST_CASE("each object counts from when it was made; the last to go restores the handler, in any order") {
  std::signal(SIGUSR1, [](int) { calls = calls + 1; });
  for (const bool first_goes_first : {true, false}) {
    calls = 0;
    auto one = std::make_unique<caught_signal>("one", SIGUSR1, signal_use::reports);
    std::raise(SIGUSR1);
    auto two = std::make_unique<caught_signal>("two", SIGUSR1, signal_use::reports);
    CHECK((one->arrived() && !two->arrived() && one->pending() && !one->pending() && !two->pending()));
    std::raise(SIGUSR1);
    CHECK((one->pending() && two->pending() && one->arrived() && two->arrived()));
    auto& gone = first_goes_first ? one : two;
    auto& stays = first_goes_first ? two : one;
    gone.reset();
    std::raise(SIGUSR1);
    CHECK((stays->pending() && calls == 0));
    stays.reset();
    std::raise(SIGUSR1);
    CHECK(calls == 1);
  }
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("where the next signal ends the program, the handler that was there before is called, as it was installed") {
  struct sigaction former {};
  for (const bool wants_information : {false, true}) {
    calls = 0;
    sender = 0;
    former = {};
    if (wants_information) {
      former.sa_flags = SA_SIGINFO;
      former.sa_sigaction = [](int, siginfo_t* about, void* context) {
        calls = calls + 1;
        sender = about != nullptr && context != nullptr ? about->si_pid : -1;
      };
    } else {
      former.sa_handler = [](int) { calls = calls + 1; };
    }
    REQUIRE(::sigaction(SIGUSR1, &former, nullptr) == 0);
    {
      caught_signal one("one", SIGUSR1, signal_use::ends);
      std::raise(SIGUSR1);
      CHECK((one.pending() && calls == 1 && has_default(SIGUSR1)));
      CHECK(sender == (wants_information ? ::getpid() : 0));
    }
    // It is back, with its flags.
    std::raise(SIGUSR1);
    CHECK(calls == 2);
  }
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("a policy and a watch of one signal both see it, in either order; the watch decides what the next one does") {
  for (const bool policy_first : {true, false}) {
    std::unique_ptr<on_signal> policy;
    if (policy_first) policy = std::make_unique<on_signal>(SIGUSR1);
    auto watch = std::make_unique<signal_watch>(std::initializer_list<int>{SIGUSR1});
    if (!policy_first) policy = std::make_unique<on_signal>(SIGUSR1);
    std::raise(SIGUSR1);
    CHECK((policy->due({}) && watch->arrived() && has_default(SIGUSR1)));
    watch.reset();
    const on_signal again{SIGUSR1};  // catches the signal again, and without a watch the program goes on
    std::raise(SIGUSR1), std::raise(SIGUSR1);
    CHECK(policy->due({}));
    policy.reset();
  }
  CHECK(has_default(SIGUSR1));
}
