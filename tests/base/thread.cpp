#include "gradus/base/thread.hpp"

#include <doctest/doctest.h>

// That no thread can be had is in tests/whole/no_threads.cpp, which stands in for the system.
TEST_CASE("a thread calls what it is given, with its stop token if it wants that") {
  int called = 0;
  gradus::start_thread("a test", "do without", [&] { ++called; }).join();
  CHECK(called == 1);
  bool stopped = false;
  {
    const auto thread = gradus::start_thread("a test", "do without", [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
    });
  }
  CHECK(stopped);
  gradus::start_thread<std::thread>("a test", "do without", [&] { ++called; }).join();
  CHECK(called == 2);
}
