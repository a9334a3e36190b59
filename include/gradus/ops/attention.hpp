// This header has attention of a sequence to itself, from queries, keys and values that lie side by side. It takes two
// ops forward and one backward, in place of some twenty that transpose, slice, mask and pad.
#pragma once
#include "needed_kernels.hpp"
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
struct attention_attr {
  int heads, causal;
};
inline constexpr int max_head_width = 128;  // a kernel keeps a block of keys of one head on its stack

// From packed [n, time, 3 width], the weights are [n, heads, time, time].
GRADUS_CARD_FUNCTION void infer_attention_weights(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<attention_attr>();
  const shape s = r.in(0);
  if (s.rank != 3 || s[1] <= 0 || s[2] <= 0 || a.heads <= 0 || s[2] % 3 != 0 || s[2] / 3 % a.heads != 0)
    return r.refuse("needs [n, time, 3 width] with a width that ", a.heads, " heads divide, got ", s);
  if (s[2] / 3 / a.heads > max_head_width)
    return r.refuse("a head is at most ", max_head_width, " wide, got ", s[2] / 3 / a.heads);
  r.dims = shape{s[0], a.heads, s[1], s[1]};
}
// From the weights and packed, the result is [n, time, width].
GRADUS_CARD_FUNCTION void infer_attention_mix(inference& r) {
  infer_floats_apart(r);
  const shape s = r.in(1);
  if (r.in(0).rank == 4) r.dims = shape{s[0], s[1], s[2] / 3};
}
GRADUS_CARD_FUNCTION void infer_attention_grad(inference& r) {
  infer_floats_apart(r);
  r.dims = r.in(0);
}
// dims: {0 = n, heads, time, width of a head, causal}
GRADUS_CARD_FUNCTION void lower_attention(lowering& l, const shape& packed) {
  const auto a = l.attributes<attention_attr>();
  l.rows = packed[0], l.dims[1] = a.heads, l.dims[2] = packed[1], l.dims[3] = packed[2] / 3 / a.heads;
  l.dims[4] = a.causal;
}
GRADUS_CARD_FUNCTION void lower_attention_first(lowering& l) { lower_attention(l, l.in(0)); }
GRADUS_CARD_FUNCTION void lower_attention_mix(lowering& l) { lower_attention(l, l.in(1)); }
GRADUS_CARD_FUNCTION void grad_attention_mix(backward&);
}  // namespace detail

namespace cards {
// attention_weights has no gradient of its own: attention_mix, the only reader of the weights, returns it for both ops.
inline constexpr card attention_weights{
    "AttentionWeights", 1, trait::blocks, detail::infer_attention_weights, nullptr, detail::lower_attention_first},
    attention_mix{
        "AttentionMix", 2, 0, detail::infer_attention_mix, detail::grad_attention_mix, detail::lower_attention_mix},
    attention_grad{"AttentionGrad", 4, 0, detail::infer_attention_grad, nullptr, detail::lower_attention_first};
}  // namespace cards

struct self_attention_options {
  int heads = 1;       // must divide the width
  bool causal = true;  // position i sees 0 ... i
};
// Returns, for each head, softmax(q k^T / sqrt(width / heads)) v (Vaswani et al. 2017, arXiv:1706.03762), [n, time,
// width]. packed [n, time, 3 width] holds the queries, keys and values of every head side by side, with width / heads
// numbers to a head, at most 128. The dtype is float32 or float64. There is no second derivative.
GRADUS_RARE constexpr value self_attention(value packed, const self_attention_options& o = {}) {
  detail::need_kernels<detail::attention_kernels>(GRADUS_WHEN_CALLED(packed));
  const detail::attention_attr a{o.heads, o.causal ? 1 : 0};
  const value weights = packed.g->add_with(cards::attention_weights, {packed}, a);
  return packed.g->add_with(cards::attention_mix, {weights, packed}, a);
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_attention_mix(backward& b) {
  if (!b.wants(1)) return;
  const auto a = b.attributes<attention_attr>();
  b.to(1, b.g.add_with(cards::attention_grad, {b.in(1), b.in(0), b.out(), b.dy}, a));
}
}  // namespace detail

}  // namespace gradus
