// Activations that the backward pass reads again are kept as bfloat16: a copy of half the size is made where the
// forward pass computes an activation, and turned into float32 where a gradient reads it. What the forward pass reads
// is not rounded, so the loss of a step is that of the same weights without the pass.
//
// An activation is stored in this way under three conditions. It is a float32 result of 32 numbers or more for each
// example; only gradients of products, convolutions, relu, tanh and sigmoid read it again; and something else of that
// size is computed between its last reader of the forward pass and its first of the backward pass, because otherwise
// nothing could use its memory in between. The result of a max_pool is kept as it is. A gradient that is a sweep reads
// the 16 bits itself; a product's operand is widened for it, and lives as long as the product takes. A gradient that
// reads a view (a reshape) reads what the view shows.
#pragma once
#include "../base/build.hpp"

#include <string_view>
#include <utility>

#include "../ops/conv.hpp"
#include "../ops/depthwise_conv.hpp"
#include "../ops/elementwise.hpp"
#include "../ops/matmul.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class storing {
public:
  constexpr explicit storing(const graph_parts& p)
      : p_(p), v_(p.view), base_(v_.size, -1), last_(v_.size, -1), first_(v_.size, -1), flags_(v_.size, 0) {}

  constexpr graph run() {
    classify();
    graph g = like(p_);
    seq<int> map(v_.size, -1), copy(v_.size, -1);
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      if (is_gradient(i)) {
        if (n.op->is(trait::view) && is_stored(base_[i])) {
          map[i] = map[base_[i]];  // its readers widen it themselves
          continue;
        }
        g.enter_gradient_scope();
        seq<int> wide(n.inputs, -1);
        for (int k = 0; k < n.inputs; ++k)
          if (const int u = v_.edges[n.first + k]; is_stored(base_[u])) wide[k] = widen(g, u, map, copy, n);
        emit(g, v_, i, map.first);
        for (int k = 0; k < n.inputs; ++k)
          if (wide[k] >= 0) g.edges[g.nodes[map[i]].first + k] = wide[k];
        continue;
      }
      emit(g, v_, i, map.first);
      if (is_stored(i)) copy[i] = same_place(g, cast({&g, map[i]}, bfloat16), n);
    }
    carry(g, p_, map.first);
    return g;
  }

private:
  static constexpr std::int64_t least = 32;  // numbers for each example
  // fused_pooling's, by name: its card would bring that policy's ops.
  static constexpr std::string_view filter_gradient_of_pools = "Conv2DMaxPoolBackpropFilter";
  enum : char { exact = 1, worthwhile = 2 };
  const graph_parts& p_;
  const graph_view& v_;
  seq<int> base_;
  seq<int> last_, first_;  // readers: the last of the forward pass, the first of the backward pass
  seq<char> flags_;

  constexpr bool is_gradient(int i) const { return v_.nodes[i].scope == graph::gradient_scope; }
  constexpr bool is_stored(int i) const { return (flags_.first[i] & worthwhile) != 0; }
  constexpr bool is_large(int i) const {
    const node& n = v_.nodes[i];
    return !n.op->is(trait::leaf | trait::view | trait::writes | trait::control) && -gradus::count(n.dims) >= least;
  }
  static constexpr int same_place(graph& g, value made, const node& n) {
    g.nodes[made.id].device = n.device, g.nodes[made.id].scope = n.scope;
    return made.id;
  }
  // Returns, as float32, node u, which is stored or a view of a stored node, for its reader `by`.
  constexpr int widen(graph& g, int u, seq<int>& map, const seq<int>& copy, const node& by) const {
    if (base_.first[u] == u) return same_place(g, cast({&g, copy.first[u]}, float32), by);
    const int wide = widen(g, v_.edges[v_.nodes[u].first], map, copy, by), before = map[u];
    emit(g, v_, u, map.first);
    const int made = std::exchange(map[u], before);
    g.edges[g.nodes[made].first] = wide, g.nodes[made].name = g.nodes[wide].name;
    return same_place(g, {&g, made}, by);
  }
  // Returns whether this is a gradient whose result changes in proportion, at random, with a rounded operand. Others
  // read exact operands: those of a softmax, of a norm, and a factor (a dropout's mask holds one number, whose error
  // would be that of every gradient).
  static constexpr bool reads_rounded(const node& n) {
    return n.op == &cards::matmul || n.op == &cards::conv2d || n.op == &cards::conv2d_filter ||
           n.op == &cards::conv2d_input || n.op == &cards::depthwise_conv2d_filter || n.op == &cards::relu_grad ||
           n.op == &cards::tanh_grad || n.op == &cards::sigmoid_grad || n.op->name == filter_gradient_of_pools;
  }

  constexpr void classify() {
    seq<int> large(v_.size + 1, 0);  // how many large results are before node i
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      large[i + 1] = large[i] + (is_large(i) ? 1 : 0);
      base_[i] = n.op->is(trait::view | trait::writes) ? base_[v_.edges[n.first]] : i;
      if (n.op == &cards::max_pool) flags_[i] |= exact;  // as fused_pooling keeps it, so that the bits are the same
      for (int e = n.first, end = e + n.inputs; e < end; ++e) {
        const int u = base_[v_.edges[e]];
        if (is_gradient(i) && n.op->is(trait::view)) continue;  // the view's own readers count instead
        if (!is_gradient(i))
          last_[u] = i;
        else if (first_[u] < 0)
          first_[u] = i;
        if (n.op->is(trait::writes) || (is_gradient(i) && (!reads_rounded(n) || n.type != float32))) flags_[u] |= exact;
      }
    }
    for (int i = 0; i < p_.output_count; ++i) flags_[base_[p_.outputs[i].node]] |= exact;
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      const int from = last_[base_[i]] < i ? i : last_[base_[i]];
      if (is_gradient(i) || n.type != float32 || !is_large(i) || first_[i] < 0 || (flags_[i] & exact) != 0) continue;
      if (large[first_[i]] - large[from + 1] > 0) flags_[i] |= worthwhile;
    }
  }
};

}  // namespace detail

constexpr graph store_activations(const graph_parts& p) {
  if (p.what != mode::train) return detail::thaw(p);
  return detail::storing(p).run();
}

}  // namespace gradus
