// Programs in virtual time: how tasks take turns, how each fault happens and is counted, how a seed repeats it all.
#include <gradus/cluster/simulated.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;

TEST_CASE("the program runs once for each task, and each knows its place") {
  std::string tasks;
  const auto report = simulated{.ps = 2, .workers = 3}.run([&](server& here) {
    tasks += text(here.target(), " ");
    CHECK(here.network() != nullptr);
    if (here.is_ps()) here.join();
  });
  CHECK(tasks.size() == std::string("in_process://ps0:0 in_process://worker0:0 ").size() / 2 * 5 + 8);
  CHECK(report.counts == simulated_counts{});
}
