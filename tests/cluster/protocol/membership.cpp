#include "gradus/cluster/protocol/membership.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
constexpr nanos ms = one_millisecond;
// What changed: "2 dead".
std::vector<std::string> advanced(membership& m, nanos now) {
  std::vector<std::string> changes;
  m.advance(now, [&](const member& one) { changes.push_back(text(one.number, " ", state_name(one.state))); });
  return changes;
}
}  // namespace

TEST_CASE("silence is suspected, then death; a word brings the suspected back") {
  membership m(2, {.suspect_after = 100 * ms, .dead_after = 300 * ms}, 1000 * ms);
  CHECK(m.view()[0].state == member_state::expected);
  CHECK(m.next() == 1100 * ms);
  CHECK(m.hear(0, 5, 1050 * ms));
  CHECK(m.hear(1, 5, 1060 * ms));
  CHECK(m.view()[0].state == member_state::alive);
  CHECK(m.next() == 1150 * ms);
  CHECK(advanced(m, 1149 * ms).empty());
  CHECK(advanced(m, 1150 * ms) == std::vector<std::string>{"0 suspected"});
  CHECK(m.view()[0].since == 1150 * ms);
  CHECK(m.hear(0, 5, 1155 * ms));
  CHECK(m.view()[0].state == member_state::alive);
  CHECK(advanced(m, 1360 * ms) == std::vector<std::string>{"0 suspected", "1 dead"});
  CHECK(m.next() == 1455 * ms);
  CHECK(advanced(m, 1455 * ms) == std::vector<std::string>{"0 dead"});
  CHECK(m.next() == never_due);
  CHECK(advanced(m, 9000 * ms).empty());
}

TEST_CASE("the dead and the replaced are not heard, a greater incarnation is") {
  membership m(1, {.suspect_after = 100 * ms, .dead_after = 300 * ms}, 0);
  CHECK(m.hear(0, 5, 10 * ms));
  CHECK(!m.hear(0, 4, 20 * ms));
  CHECK(m.view()[0].heard == 10 * ms);
  advanced(m, 310 * ms);
  CHECK(!m.hear(0, 5, 311 * ms));
  CHECK(m.view()[0].state == member_state::dead);
  const auto version = m.version();
  CHECK(m.hear(0, 6, 312 * ms));
  CHECK(m.view()[0].state == member_state::alive);
  CHECK(m.view()[0].incarnation == 6);
  CHECK(m.version() == version + 1);
  CHECK(m.hear(0, 6, 313 * ms));
  CHECK(m.version() == version + 1);  // nothing changed
  m.leave(0, 5, 314 * ms);            // of the past
  CHECK(m.view()[0].state == member_state::alive);
  m.leave(0, 6, 315 * ms);
  CHECK(m.view()[0].state == member_state::left);
  CHECK(!m.hear(0, 6, 316 * ms));
  CHECK(advanced(m, 9000 * ms).empty());
  CHECK(m.next() == never_due);
}

TEST_CASE("a long time in which nobody listened is no silence of the members") {
  membership m(2, {.suspect_after = 100 * ms, .dead_after = 300 * ms}, 0);
  CHECK(m.hear(0, 5, 10 * ms));
  CHECK(m.hear(1, 5, 510 * ms));  // what had come meanwhile is read first
  m.was_away(500 * ms, 520 * ms);
  CHECK(m.view()[0].heard == 520 * ms);
  CHECK(m.view()[1].heard == 520 * ms);  // not in the future
  CHECK(advanced(m, 520 * ms).empty());
  CHECK(m.next() == 620 * ms);
  m.was_away(99 * ms, 700 * ms);  // not long
  CHECK(advanced(m, 820 * ms) == std::vector<std::string>{"0 dead", "1 dead"});
}

TEST_CASE("a member that was silent before a pause as well has time to be heard") {
  membership m(1, {.suspect_after = 100 * ms, .dead_after = 300 * ms}, 0);
  CHECK(m.hear(0, 5, 0));
  CHECK(advanced(m, 100 * ms) == std::vector<std::string>{"0 suspected"});
  m.was_away(700 * ms, 1000 * ms);  // it was due at 300
  CHECK(advanced(m, 1000 * ms).empty());
  CHECK(advanced(m, 1100 * ms) == std::vector<std::string>{"0 dead"});
}

TEST_CASE("deadlines that cannot be") {
  CHECK(message_of(status::invalid_argument, [] { membership m(1, {.suspect_after = 2, .dead_after = 1}, 0); }) ==
        "membership: expected 0 < suspect_after <= dead_after, found 2 and 1 ns");
  CHECK_THROWS_AS(membership(1, {.suspect_after = 0}, 0), invalid_argument);
}
