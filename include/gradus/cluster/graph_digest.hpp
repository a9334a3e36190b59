// A graph digest is a hash of the computation of a graph: of ops, types, shapes, edges, attributes and fused
// expressions, but not of names. Equal graphs of one build have equal digests.
#pragma once
#include "../base/build.hpp"

#include <cstdint>

#include "../graph/node.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

std::uint64_t digest_of(const graph_view& g);

// The same for what one node needs, whatever else its graph has; `numbered` says which ops have
// numbers of nodes as attributes, which do not count.
struct op_digest {
  int ops = 0;
  std::uint64_t value = 0;
};
op_digest digest_of(const graph_view& g, int needed, bool (*numbered)(const card*));

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_digest.ipp"
#endif
