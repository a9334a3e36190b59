// The state that a task keeps about another task of its cluster, with any network: its process, the time of its last
// message, and whether it has left.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "task_hello.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct seen_peer {
  std::uint64_t boot = 0;  // the number of its process; 0: no message of it has come
  double heard = 0;        // the time of its last message, on the monotonic clock
  bool has_left = false;
  std::vector<std::uint64_t> replaced = {};  // the numbers of its last processes before this one

  // To be called for its hello. Returns the number of its process before; 0 if there was none.
  std::uint64_t meet(std::uint64_t its_boot, double now) {
    heard = now;
    if (boot != 0 && boot != its_boot) {
      if (replaced.size() == 16) replaced.erase(replaced.begin());
      replaced.push_back(boot);
    }
    return std::exchange(boot, its_boot);
  }
  // Returns whether another process of this task has said hello since that one did. If both live, only the later one
  // can be let in: each would take the other's place again and again, and the task would compute batches twice.
  bool was_replaced(std::uint64_t its_boot) const {
    return std::find(replaced.begin(), replaced.end(), its_boot) != replaced.end();
  }
};

// Returns the task at this node as the task `here` has seen it. It is `silent` if no message of it has come for longer
// than `silent_after`.
cluster_member seen_member(const cluster_nodes& here, std::uint32_t node, const seen_peer& p, double now,
                           double silent_after);
// Returns the members of all peers, in the order of nodes.
template <class Peers>
std::vector<cluster_member> members_of(const cluster_nodes& here, const Peers& peers, double now, double silent_after) {
  std::vector<cluster_member> all;
  for (std::uint32_t k = 0; k < peers.size(); ++k) all.push_back(seen_member(here, k, peers[k], now, silent_after));
  return all;
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "seen_peer.ipp"
#endif
