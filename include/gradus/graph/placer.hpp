// A placer is the form in which a graph calls a device function; the functions are in placed_op.hpp. A program that the
// compiler runs has none.
#pragma once
#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD {
struct graph;
}

namespace gradus::inline GRADUS_BUILD::detail {

// Sets the device of a node that was just made.
struct placer {
  void (*place)(placer& self, graph& g, int node);
};
// The placer of a block. It belongs to the block's graph, and a copy of the graph has none.
struct placer_slot {
  placer* now = nullptr;

  constexpr placer_slot() = default;
  constexpr placer_slot(const placer_slot&) {}
  constexpr placer_slot& operator=(const placer_slot&) { return *this; }
};
// g.device(function) returns this; placed_op.hpp defines it.
template <class F>
class device_scope;

}  // namespace gradus::detail
