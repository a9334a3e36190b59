// What a task knows of another one of its cluster, whatever network they have: which process it is, when it was heard
// last, and whether it has done its part.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "task_hello.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct seen_peer {
  std::uint64_t boot = 0;  // the number of its process; 0: it was not heard of
  double heard = 0;        // on the monotonic clock
  bool has_left = false;

  // It has said hello. Returns the process that it was before; 0: none was.
  std::uint64_t meet(std::uint64_t its_boot, double now) {
    heard = now;
    return std::exchange(boot, its_boot);
  }
};

// How the task at this node stands to one that has seen it. It is silent if it was not heard for longer than
// `silent_after`.
cluster_member seen_member(const cluster_nodes& here, std::uint32_t node, const seen_peer& p, double now,
                           double silent_after);
// The same of all, in the order of nodes.
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
