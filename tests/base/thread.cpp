#include "gradus/base/thread.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <utility>

// That no thread can be had is in tests/whole/no_threads.cpp, which stands in for the system.
TEST_CASE("a thread calls what it is given, and is waited for when it is destroyed") {
  int called = 0;
  gradus::start_thread("a test", "do without", [&] { ++called; }).join();
  CHECK(called == 1);
  std::atomic<bool> go = false;
  bool ended = false;
  {
    const auto thread = gradus::start_thread("a test", "do without", [&] {
      go.wait(false);
      ended = true;
    });
    CHECK(thread.joinable());
    go = true;
    go.notify_all();
  }
  CHECK(ended);
  gradus::start_thread<std::thread>("a test", "do without", [&] { ++called; }).join();
  CHECK(called == 2);
}

TEST_CASE("a thread that is replaced is waited for; one that was moved from is none") {
  int first = 0, second = 0;
  auto thread = gradus::start_thread("a test", "do without", [&] { first = 1; });
  thread = gradus::start_thread("a test", "do without", [&] { second = 1; });
  CHECK(first == 1);
  auto other = std::move(thread);
  CHECK(!thread.joinable());
  other.join();
  CHECK(second == 1);
  CHECK(!other.joinable());
}
