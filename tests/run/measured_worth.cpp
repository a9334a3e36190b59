// Steps are divided while that saves time. Times are given by hand; the program never reads a clock.
#include <gradus/run/measured_worth.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using gradus::detail::measured_worth;

namespace {

// Makes `count` steps that take `divided` or `alone` seconds; returns how many were divided.
int steps(measured_worth& w, int count, double divided, double alone) {
  int n = 0;
  for (int i = 0; i < count; ++i) {
    const bool divides = w.divides();
    n += divides;
    w.took(divides ? divided : alone);
  }
  return n;
}
double seconds(measured_worth& w, int count, double divided, double alone) {
  const int n = steps(w, count, divided, alone);
  return n * divided + (count - n) * alone;
}

}  // namespace

TEST_CASE("where threads gain, two steps of all are made alone, to know what that takes") {
  measured_worth w;
  CHECK(steps(w, 4, 0.6, 1) == 4);
  CHECK(steps(w, 2, 0.6, 1) == 0);
  CHECK(steps(w, 100000, 0.6, 1) == 100000);
}

TEST_CASE("where threads lose, a sixteenth of the time is lost at most, after the first steps") {
  for (const double divided : {1.1, 2.0, 50.0}) {
    CAPTURE(divided);
    measured_worth w;
    steps(w, 6, divided, 1);
    const double took = seconds(w, 100000, divided, 1);
    CHECK(took <= 100000 * (1 + 1 / 16.0) + divided);
    CHECK(took > 100000);  // they are tried again and again
  }
}

TEST_CASE("what was saved pays for a step that had to wait") {
  measured_worth w;
  steps(w, 6, 0.5, 1);
  steps(w, 20, 0.5, 1);  // saves 10
  CHECK(w.divides());
  w.took(10);  // loses 9
  CHECK(w.divides());
  w.took(4);  // loses 3
  CHECK(!w.divides());
}
TEST_CASE("what was saved long ago does not") {
  measured_worth w;
  steps(w, 1000, 0.5, 1);
  w.took(18);
  CHECK(!w.divides());
}

TEST_CASE("when the other programs have ended, threads are used again") {
  measured_worth w;
  steps(w, 1000, 50, 1);
  CHECK(steps(w, 2000, 0.5, 1) > 1000);
}

TEST_CASE("a step alone takes longer on a busy machine, and is what divided ones are compared with") {
  measured_worth w;
  steps(w, 20, 0.5, 1);
  w.took(20);
  CHECK(!w.divides());
  steps(w, 500, 6, 10);
  CHECK(steps(w, 1000, 6, 10) == 1000);
}

TEST_CASE("without measuring, every step is divided") {
  measured_worth w(false);
  CHECK(!w.measures());
  CHECK(steps(w, 1000, 50, 1) == 1000);
}
