// A model marks parts of its forward pass by `recomputed`; the policy recompute_marked{} (pass/recompute.hpp) then
// computes them again where the backward pass needs them.
#pragma once
#include "broadcast.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// A mark is an identity with attributes that no other identity has: the number of the mark's node, and which border it
// is. A border is the beginning of a region, its end, or its end where the backward pass computes even the result
// again.
enum class border : int { begin, end, forgotten_end };
struct mark_attr {
  int node;
  border at;
};
constexpr value mark(value x, border at) {
  return x.g->add_with(cards::identity, {x}, mark_attr{x.g->nodes.count, at});
}
constexpr bool is_mark(const node& n) { return n.op == &cards::identity && n.attrs == words_of<mark_attr>; }

}  // namespace detail

// Returns f(x), a part of the model. With the policy recompute_marked{} the tensors between x and the result are not
// kept: the backward pass computes them again from x. Other tensors that f reads are kept, and so are tensors inside
// that others read. Without the policy this is f(x). Regions may be nested; the outermost counts. Marks are nodes, so
// operations that draw random numbers draw other numbers than in a model without marks. As
// torch.utils.checkpoint.checkpoint(f, x).
template <class F>
constexpr value recomputed(value x, F f) {
  return detail::mark(f(detail::mark(x, detail::border::begin)), detail::border::end);
}

}  // namespace gradus
