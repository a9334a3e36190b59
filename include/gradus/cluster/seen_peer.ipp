// The bodies of seen_peer.hpp.
#pragma once
#include "../base/body.hpp"
#include "seen_peer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY cluster_member seen_member(const cluster_nodes& here, std::uint32_t node, const seen_peer& p, double now,
                                       double silent_after) {
  cluster_member m{here.names[node], here.addresses[node], cluster_member::not_heard, 0};
  if (node == here.me) {
    m.state = cluster_member::alive;
  } else if (p.boot != 0) {
    m.silent_secs = now - p.heard;
    m.state = p.has_left                     ? cluster_member::left
              : m.silent_secs > silent_after ? cluster_member::silent
                                             : cluster_member::alive;
  }
  return m;
}

}  // namespace gradus::detail
