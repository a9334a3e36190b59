#include "gradus/cluster/protocol/waiting.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("waits end when their order is there, when another begins, or by their deadline") {
  waiting_line line(3);
  CHECK(line.next() == never_due);
  line.wait({1, 5, 7}, 4, 10, 100);
  line.wait({2, 5, 9}, 6, 20, 100);
  line.wait({1, 5, 7}, 4, 50, 100);  // again: since the first
  CHECK(line.next() == 110);
  std::vector<contribution_id> served;
  const auto serve = [&](const contribution_id& id) { served.push_back(id); };
  line.reached(3, serve);
  CHECK(served.empty());
  line.reached(5, serve);
  CHECK(served == std::vector<contribution_id>{{1, 5, 7}});
  std::vector<std::uint64_t> waiting;
  line.each([&](std::uint64_t w, const waiting_line::place& p) { waiting.push_back(w), waiting.push_back(p.order); });
  CHECK(waiting == std::vector<std::uint64_t>{2, 6});
  CHECK(line.next() == 120);
  CHECK(line.expire(119) == 0);
  CHECK(line.expire(120) == 1);
  CHECK((line.expired()[2].order == 6 && line.expired()[2].sequence == 9 && line.expired()[1].order == 0));
  CHECK(line.next() == never_due);
  line.reached(9, serve);
  CHECK(served.size() == 1);
  // Another question of the same worker waits anew; one that is not asked any more is not served.
  line.wait({0, 5, 1}, 2, 0, 100), line.wait({0, 5, 2}, 2, 30, 100), line.wait({0, 6, 2}, 3, 40, 100);
  CHECK(line.next() == 140);
  line.reached(2, serve);
  CHECK(served.size() == 1);
  line.reached(3, serve);
  CHECK(served.back() == contribution_id{0, 6, 2});
}
