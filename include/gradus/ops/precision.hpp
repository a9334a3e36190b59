// This op rounds numbers to the precision of a 16-bit type and keeps their dtype: mixed precision does so with operands
// of products (pass/mixed_precision.hpp), and a model may do so elsewhere.
#pragma once
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_CARD_FUNCTION void grad_reduce_precision(backward&);
}

namespace cards {
inline constexpr card reduce_precision_bfloat16{"ReducePrecisionBFloat16", 1, trait::elementwise, infer_floats,
                                                grad_reduce_precision},
    reduce_precision_float16{"ReducePrecisionFloat16", 1, trait::elementwise, infer_floats, grad_reduce_precision};
}  // namespace cards

namespace detail {
// Returns nullptr if `to` is not a 16-bit type.
constexpr const card* reduce_precision_card(dtype to) {
  return to == bfloat16  ? &cards::reduce_precision_bfloat16
         : to == float16 ? &cards::reduce_precision_float16
                         : nullptr;
}
}  // namespace detail

// Returns x as if stored as bfloat16 or float16 and read again: it is rounded to nearest, ties to even; a number that
// is too large for the type becomes infinite, one that is too small becomes zero. The result has x's dtype, float32 or
// float64. The gradient passes straight through and is rounded in the same way, as it would be by a cast and its
// gradient. As XLA's and JAX's reduce_precision.
constexpr value reduce_precision(value x, dtype to) {
  const card* op = detail::reduce_precision_card(to);
  if (op == nullptr) {
    x.g->refuse("reduce_precision: expected bfloat16 or float16, got ", to);
    return x;
  }
  return x.g->add(*op, {x});
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_reduce_precision(backward& b) { b.to(0, b.g.add(*b.g.nodes[b.id].op, {b.dy})); }
}  // namespace detail

}  // namespace gradus
