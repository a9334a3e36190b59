// Membership tracks the nodes: heartbeats, incarnations, suspicion and death by deadlines. A node that was silent for
// `suspect_after` is suspected, and after `dead_after` it is dead. A message of a suspected node makes it alive again;
// a dead one needs a later incarnation. Time is this node's own, so clocks of others do not matter.
//
//   gradus::detail::membership members(3, {}, now);
//   members.hear(1, 7, now);                       // node 1 lives, in its incarnation 7
//   members.advance(now, [&](const member& m) { ... });     // at members.next(): called for each whose state changes
//   for (const member& m : members.view()) ...     // all members, with a version that counts changes
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

enum class member_state : std::uint8_t { expected, alive, suspected, dead, left };
constexpr std::string_view state_name(member_state s) {
  constexpr std::string_view names[] = {"expected", "alive", "suspected", "dead", "left"};
  return names[static_cast<int>(s)];
}

struct member {
  std::uint64_t number = 0, incarnation = 0;
  member_state state = member_state::expected;
  nanos heard = 0;  // the time of its last message; at first, when it began to be expected
  nanos since = 0;  // the time since which it is in this state
};

struct membership_options {
  nanos suspect_after = 3'000 * one_millisecond, dead_after = 10'000 * one_millisecond;
};

class membership {
public:
  membership(std::uint32_t members, membership_options o, nanos now) : o_(o) {
    if (o.suspect_after <= 0 || o.dead_after < o.suspect_after)
      raise(status::invalid_argument, text("membership: expected 0 < suspect_after <= dead_after, found ",
                                           o.suspect_after, " and ", o.dead_after, " ns"));
    for (std::uint32_t i = 0; i < members; ++i) members_.push_back({i, 0, member_state::expected, now, now});
  }
  std::span<const member> view() const { return members_; }
  // Returns the number of changes of a state or an incarnation.
  std::uint64_t version() const { return version_; }

  // Takes a message of a member. Returns false if it is of an incarnation that was replaced, or that has left or died.
  bool hear(std::uint64_t number, std::uint64_t incarnation, nanos now) {
    member& m = members_[number];
    const bool gone = m.state == member_state::left || m.state == member_state::dead;
    if (incarnation < m.incarnation || (gone && incarnation == m.incarnation)) return false;
    const bool anew = incarnation != m.incarnation;
    m.incarnation = incarnation, m.heard = now;
    if (anew || m.state != member_state::alive) change(m, member_state::alive, now);
    return true;
  }
  void leave(std::uint64_t number, std::uint64_t incarnation, nanos now) {
    member& m = members_[number];
    if (incarnation < m.incarnation) return;
    m.incarnation = incarnation;
    if (m.state != member_state::left) change(m, member_state::left, now);
  }
  // Nobody read messages for `time`, until `now`. If that is long, it is no silence of the members, and what they sent
  // meanwhile has time to come.
  void was_away(nanos time, nanos now) {
    if (time < o_.suspect_after) return;
    for (member& m : members_) m.heard = std::min(m.heard + time + o_.suspect_after, now);
  }
  // Calls `changed(member)` for each member that is suspected or dead from now on.
  template <class Changed>
  void advance(nanos now, Changed changed) {
    for (member& m : members_) {
      if (m.state == member_state::left || m.state == member_state::dead) continue;
      const nanos silent = now - m.heard;
      if (silent >= o_.dead_after) {
        change(m, member_state::dead, now);
        changed(m);
      } else if (silent >= o_.suspect_after && m.state != member_state::suspected) {
        change(m, member_state::suspected, now);
        changed(m);
      }
    }
  }
  nanos next() const {
    nanos at = never_due;
    for (const member& m : members_) {
      if (m.state == member_state::left || m.state == member_state::dead) continue;
      at = std::min(at, m.heard + (m.state == member_state::suspected ? o_.dead_after : o_.suspect_after));
    }
    return at;
  }

private:
  membership_options o_;
  std::vector<member> members_;
  std::uint64_t version_ = 0;

  void change(member& m, member_state to, nanos now) {
    m.state = to, m.since = now;
    ++version_;
  }
};

}  // namespace gradus::detail
