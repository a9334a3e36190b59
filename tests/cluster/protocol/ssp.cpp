#include "gradus/cluster/protocol/ssp.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("the fast ones never lead by more than the bound") {
  for (const std::uint64_t bound : {0u, 1u, 3u}) {
    ssp_gate g(3, bound);
    std::uint64_t updates = 0;
    while (g.may_begin(0)) g.count(0), ++updates;  // the others do nothing
    CHECK(updates == bound + 1);
    CHECK(g.may_begin(1));
    g.count(1);
    CHECK(!g.may_begin(0));
    g.count(2);
    CHECK(g.may_begin(0));
    CHECK(g.slowest() == 1);
  }
  ssp_gate free_for_all(2, ssp_gate<>::unbounded);
  for (int i = 0; i < 1000; ++i) free_for_all.count(0);
  CHECK(free_for_all.may_begin(0));
}

TEST_CASE("who is gone holds nobody up, and comes back beside the slowest") {
  ssp_gate g(3, 0);
  g.count(0), g.count(1);
  CHECK(!g.may_begin(0));
  g.leave(2);
  CHECK(!g.takes_part(2));
  CHECK(g.may_begin(0));
  g.count(0), g.count(1);
  g.enter(2);
  CHECK(g.updates_of(2) == 2);
  CHECK(g.may_begin(2));
  g.enter(2);
  CHECK(g.updates_of(2) == 2);
  // One that was ahead stays ahead.
  g.count(2), g.leave(2), g.enter(2);
  CHECK(g.updates_of(2) == 3);
  g.leave(0), g.leave(1), g.leave(2);
  CHECK(g.slowest() == 0);
}

TEST_CASE("clocks come back from what was saved") {
  ssp_gate g(2, 1), h(2, 1);
  g.count(0), g.count(0), g.leave(1);
  std::vector<std::byte> saved;
  g.save(bytes_out(saved));
  bytes_in in(saved, "snapshot");
  h.load(in);
  in.end();
  CHECK(h.updates_of(0) == 2);
  CHECK(!h.takes_part(1));
}
