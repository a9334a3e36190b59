#include <gradus/base/clock.hpp>

#include <doctest/doctest.h>

#include <ctime>

namespace {
struct stopped_clock {
  double at = 0;
  double now() const { return at; }
  double elapsed() const { return at; }
};
struct half_a_clock {
  double now() const { return 0; }
};
}  // namespace

static_assert(gradus::clock<stopped_clock>);
static_assert(!gradus::clock<half_a_clock>);

TEST_CASE("the system clock counts seconds since the epoch, as the C library does") {
  const auto before = static_cast<double>(std::time(nullptr));
  const double now = gradus::system_clock{}.now();
  const auto after = static_cast<double>(std::time(nullptr));
  // The C library may answer from a coarser clock, one tick behind.
  CHECK(now >= before - 1);
  CHECK(now <= after + 2);
}

TEST_CASE("elapsed time never runs backwards") {
  const gradus::system_clock clock;
  double last = clock.elapsed();
  for (int i = 0; i < 1000; ++i) {
    const double next = clock.elapsed();
    REQUIRE(next >= last);
    last = next;
  }
}
