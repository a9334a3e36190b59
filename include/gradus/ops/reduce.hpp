// This header has the reductions over axes other than the sum, which is in broadcast.hpp. The order of every sum is a
// tree fixed by shape; docs/arithmetic.md describes it.
#pragma once
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_CARD_FUNCTION void infer_argmax(inference& r) {
  infer_reduce(r);
  r.type = int64;
}
// In 8 bits neither a sum nor the number of elements has room.
GRADUS_CARD_FUNCTION void infer_mean(inference& r) {
  infer_reduce(r);
  if (r.type == uint8) r.refuse("takes float32, float64, int32 or int64, got uint8; use cast");
}
GRADUS_CARD_FUNCTION void infer_size(inference& r) {
  r.type = static_cast<dtype>(r.words[2]);
  if (!is_float(r.type) && r.type != int32 && r.type != int64)
    r.refuse("counts in float32, float64, int32 or int64, not in ", r.type);
}
GRADUS_CARD_FUNCTION void lower_size(lowering& l) {
  const auto a = l.attributes<reduce_attr>();
  const shape& s = l.in(0);
  l.dims[0] = 1;
  for (int i = 0; i < s.rank; ++i)
    if (a.mask >> i & 1) l.dims[0] *= s.dims[i];
}
GRADUS_CARD_FUNCTION void grad_mean(backward&);
GRADUS_CARD_FUNCTION void grad_max(backward&);
GRADUS_CARD_FUNCTION void lower_copy(lowering& l) { l.rows = count(l.out()); }
}  // namespace detail

namespace cards {
inline constexpr card mean{"Mean", 1, 0, infer_mean, grad_mean, lower_reduce},
    max{"Max", 1, 0, infer_reduce, grad_max, lower_reduce}, min{"Min", 1, 0, infer_reduce, grad_max, lower_reduce},
    argmax{"ArgMax", 1, trait::blocks, infer_argmax, nullptr, lower_reduce},
    size{"Size", 1, trait::blocks, infer_size, nullptr, lower_size};
inline constexpr card copy{"DeepCopy", 1, trait::tables, infer_same, grad_identity, lower_copy};
}  // namespace cards

// Returns the mean over the axes (negative: from the back), or over all if none is given.
constexpr value reduce_mean(value x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce(cards::mean, x, detail::axis_mask(x, axes), keep_dims);
}
// Returns the largest over the axes; it is not defined where a NaN is among the numbers. Elements that equal it share
// the gradient.
constexpr value reduce_max(value x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce(cards::max, x, detail::axis_mask(x, axes), keep_dims);
}
// Returns the smallest over the axes, likewise.
constexpr value reduce_min(value x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce(cards::min, x, detail::axis_mask(x, axes), keep_dims);
}
// Returns the first index of the largest along an axis, by default the last (tf.argmax: the first), int64 as in
// TensorFlow. A run raises invalid_argument if the axis has no
// elements.
constexpr value argmax(value x, int axis = -1) {
  return detail::reduce(cards::argmax, x, detail::axis_mask(x, {axis}), false);
}
// Returns how many elements stand along the axes, as a number of this dtype; a batch extent is known when the step
// runs.
constexpr value size_of(value x, int mask, dtype type) {
  const int words[3] = {mask, 0, static_cast<int>(type)};
  return x.g->add(cards::size, &x, 1, words, 3);
}
constexpr value size_of(value x, dtype type = float32) { return size_of(x, (1 << x.dims().rank) - 1, type); }

namespace detail {
GRADUS_CARD_FUNCTION void grad_mean(backward& b) {
  const auto a = b.attributes<reduce_attr>();
  b.to(0, broadcast_to(kept(b, b.dy / size_of(b.in(0), a.mask, b.dy.type())), b.in(0).dims()));
}
GRADUS_CARD_FUNCTION void grad_max(backward& b) {  // all that reach the extreme share it equally, as in TensorFlow
  const auto a = b.attributes<reduce_attr>();
  const value reached = cast(equal(b.in(0), kept(b, b.out())), b.dy.type());
  const value many = reduce(cards::sum, reached, a.mask, true);
  const value dy = kept(b, b.dy);
  b.to(0, reached / many * dy);
}
}  // namespace detail

}  // namespace gradus
