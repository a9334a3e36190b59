#include <gradus/checkpoint/signal_watch.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>

using namespace gradus;

namespace {
volatile std::sig_atomic_t calls = 0;
void count(int) { calls = calls + 1; }
bool is_default(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}
}  // namespace

TEST_CASE("a signal is seen by every copy; from then on each of them ends the program") {
  std::optional<signal_watch> watch;
  watch.emplace({SIGUSR1, SIGUSR2});
  const signal_watch copy = *watch;
  CHECK((!watch->arrived() && !copy.arrived() && !is_default(SIGUSR1) && !is_default(SIGUSR2)));
  std::raise(SIGUSR1);
  CHECK((watch->arrived() && copy.arrived()));
  CHECK((is_default(SIGUSR1) && is_default(SIGUSR2)));  // the next one, of either kind
  watch.reset();
  CHECK(copy.arrived());
}

TEST_CASE(
    "what was there before is called as well, and comes back with the last copy; a later watch sees no old signal") {
  std::signal(SIGUSR1, &count);
  calls = 0;
  {
    const signal_watch watch({SIGUSR1});
    std::raise(SIGUSR1);
    CHECK((watch.arrived() && calls == 1));
  }
  std::raise(SIGUSR1);
  CHECK(calls == 2);
  CHECK(!signal_watch({SIGUSR1}).arrived());
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("two at a time see the same signal; one that is ignored stays so") {
  {
    const signal_watch one({SIGUSR1}), two({SIGUSR1, SIGUSR2});
    std::raise(SIGUSR1);
    CHECK((one.arrived() && two.arrived()));
  }
  CHECK((is_default(SIGUSR1) && is_default(SIGUSR2)));
  std::signal(SIGUSR2, SIG_IGN);
  const signal_watch watch({SIGUSR1, SIGUSR2});
  std::raise(SIGUSR2);
  CHECK(!watch.arrived());
  std::signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("the first of two may go first, and one made afterwards sees no signal of before") {
  auto first = std::make_unique<signal_watch>(std::initializer_list<int>{SIGUSR1});
  {
    const signal_watch second({SIGUSR1});
    first.reset();
    CHECK(!is_default(SIGUSR1));
    std::raise(SIGUSR1);
    CHECK(second.arrived());
    CHECK(!signal_watch({SIGUSR1}).arrived());
  }
  CHECK(is_default(SIGUSR1));
  std::signal(SIGUSR1, SIG_IGN);
  CHECK(!signal_watch({SIGUSR1}).arrived());
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("what cannot be caught is refused, and nothing stays taken") {
  for (const int signal : {0, -1, 1000, SIGKILL}) {
    CHECK_THROWS_AS(signal_watch({SIGUSR1, signal}), error_of<status::invalid_argument>);
    CHECK(is_default(SIGUSR1));
  }
}
