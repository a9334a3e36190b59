// A graph digest is a number for the computation of a graph: ops, types, shapes, edges, attributes and fused
// expressions; not for names. Equal graphs of one build have equal numbers.
#pragma once
#include <cstdint>

#include "../graph/node.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

std::uint64_t digest_of(const graph_view& g);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "graph_digest.ipp"
#endif
