// This header has mixed precision on graphs: matrix products and convolutions take operands of 16-bit precision and
// accumulate in float32; everything else, and every variable, stays float32 (Micikevicius et al. 2018,
// arXiv:1710.03740).
#pragma once
#include "../base/contract.hpp"
#include "../ops/depthwise_conv.hpp"
#include "../ops/matmul.hpp"
#include "../ops/precision.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

// A trainer or a static stepper with this policy rounds the operands of products to 16-bit precision:
//
//   make_trainer<model>(adam{}, mixed_precision<bfloat16>{});
//   make_trainer<model>(adam{}, mixed_precision<float16>{}, dynamic_loss_scale{});
//
// The compute type is a template argument since the compiler builds the graph. float16 needs a loss scale beside it, as
// its gradients vanish below 6e-8; bfloat16 has float32's range and needs none. docs/mixed_precision.md lists what this
// policy does not do.
template <dtype Compute = bfloat16>
struct mixed_precision {
  static_assert(is_16_bit_float(Compute), "gradus: mixed_precision computes in bfloat16 or float16.");
  using policy_for = kind::precision;
  static constexpr dtype compute = Compute;
};

namespace detail {

struct full_precision {
  using policy_for = kind::precision;
  static constexpr dtype compute = dtype::none;
};

constexpr bool is_product(const node& n) {
  return n.op == &cards::matmul || n.op == &cards::conv2d || n.op == &cards::conv2d_input ||
         n.op == &cards::conv2d_filter || n.op == &cards::depthwise_conv2d || n.op == &cards::depthwise_conv2d_input ||
         n.op == &cards::depthwise_conv2d_filter;
}

}  // namespace detail

// Replaces every float32 operand of a product by a rounded copy: there is one copy per tensor, so a weight is rounded
// once a step, however many products read it. An operand that was rounded and only moved since is left as it is. After
// a write to a variable its copy is not used any more. Before differentiation this rounds the forward products, and, by
// reduce_precision's gradient, the gradients that come back out of them; after differentiation, it rounds the operands
// of the products that differentiation made.
constexpr graph round_operands(const graph_parts& p, dtype compute) {
  const graph_view& v = p.view;
  const card* rounding = detail::reduce_precision_card(compute);
  graph g = detail::like(p);
  g.enter_gradient_scope();
  detail::seq<int> map(v.size, -1), base(v.size, -1), version(v.size, 0), copy(v.size, -1), copied(v.size, -1);
  detail::seq<char> rounded(v.size, 0);
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    base[i] = n.op->is(trait::view | trait::writes) ? base[v.edges[n.first]] : i;
    if (n.op->is(trait::writes)) ++version[base[i]];
    rounded[i] = n.op == rounding || (rounded[n.inputs != 0 ? v.edges[n.first] : i] != 0 &&
                                      (n.op->is(trait::view) || n.op == &cards::transpose));
    if (!detail::is_product(n) || n.type != float32) {
      detail::emit(g, v, i, map.first);
      continue;
    }
    for (int e = n.first, end = e + n.inputs; e < end; ++e) {
      const int u = v.edges[e];
      if (rounded[u] != 0 || (copy[u] >= 0 && copied[u] == version[base[u]])) continue;
      copy[u] = g.add(*rounding, {value{&g, map[u]}}).id, copied[u] = version[base[u]];
      g.nodes[copy[u]].device = n.device, g.nodes[copy[u]].scope = n.scope;
    }
    detail::emit(g, v, i, map.first);
    node& product = g.nodes[map[i]];
    for (int k = 0; k < n.inputs; ++k)
      if (const int u = v.edges[n.first + k]; rounded[u] == 0) g.edges[product.first + k] = copy[u];
  }
  detail::carry(g, p, map.first);
  return g;
}

}  // namespace gradus
