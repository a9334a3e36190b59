// What a task knows of another one, and how it tells of it.
#include <gradus/cluster/seen_peer.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("a process that says hello is met, and the one before it is told") {
  seen_peer p;
  CHECK(p.meet(7, 1.5) == 0);
  CHECK((p.boot == 7 && p.heard == 1.5 && !p.has_left));
  CHECK(p.meet(7, 2.5) == 7);
  CHECK(p.heard == 2.5);
  CHECK(p.meet(9, 2.75) == 7);
  CHECK(p.boot == 9);
}

TEST_CASE("a process that another has taken the place of is known, also behind fifteen others") {
  seen_peer p;
  p.meet(7, 0);
  CHECK_FALSE(p.was_replaced(7));
  for (std::uint64_t boot = 8; boot < 24; ++boot) {
    CHECK_FALSE(p.was_replaced(boot));
    p.meet(boot, 0);
    CHECK((p.was_replaced(7) && p.was_replaced(boot - 1) && !p.was_replaced(boot)));
  }
  p.meet(23, 1);
  CHECK(p.was_replaced(7));
  p.meet(24, 1);
  CHECK_FALSE(p.was_replaced(7));  // the list ends somewhere
  CHECK(p.was_replaced(8));
}

TEST_CASE("a member is not heard of, alive, silent or has left, and who asks is alive") {
  const cluster_nodes here(
      {.cluster = {{"worker", {"w0", "w1", "w2", "w3", "w4"}}}, .job_name = "worker", .task_index = 1});
  std::vector<seen_peer> peers(5);
  peers[1].heard = -1000;  // nobody hears itself
  peers[2].meet(3, 90);
  peers[3].meet(4, 89.5);
  peers[4].meet(5, 20), peers[4].has_left = true;
  const auto all = members_of(here, peers, 100, 10);
  using m = cluster_member;
  CHECK(all == std::vector<m>{{"worker 0", "w0", m::not_heard, 0},
                              {"worker 1", "w1", m::alive, 0},
                              {"worker 2", "w2", m::alive, 10},
                              {"worker 3", "w3", m::silent, 10.5},
                              {"worker 4", "w4", m::left, 80}});
}
