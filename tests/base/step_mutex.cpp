// sanitized in every run: a guest between steps
#include <gradus/base/step_mutex.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using gradus::detail::step_mutex;

TEST_CASE("a guest gets in while another thread makes steps without a pause; who has it may lock it again") {
  step_mutex m;
  int inside = 0, steps = 0, visits = 0;  // under the mutex
  std::atomic<bool> done = false;
  std::thread guest([&] {
    for (int i = 0; i < 200; ++i) {
      const step_mutex::visiting here(m);
      const step_mutex::visiting again(m);
      CHECK(++inside == 1);
      ++visits, --inside;
    }
    done = true;
  });
  while (!done || steps == 0) {
    const step_mutex::stepping here(m);
    CHECK(++inside == 1);
    ++steps, --inside;
    const step_mutex::visiting look(m);  // also while a guest waits
  }
  guest.join();
  CHECK(visits == 200);
}
