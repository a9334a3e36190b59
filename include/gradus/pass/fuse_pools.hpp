// A convolution, its bias and its relu are computed together with the max_pool behind them, so that no tensor of the
// convolution's extents is kept, forward or backward: one byte for each pooled number records which place of its window
// it comes from. The bits are those of the separate ops.
//
// In the forward pass, conv2d -> (+ bias) -> (relu) -> max_pool becomes conv2d_pool, if nothing else reads the results
// in between and the pool's windows do not overlap. In the backward pass, MaxPoolGrad -> (ReluGrad) is removed: the
// gradients of the filters and of the bias are computed from the pooled gradient and the bytes. Where something else
// needs the gradient of the convolution (because its image depends on other variables), conv2d_unpool makes it for as
// long as it is read.
#pragma once
#include "../ops/pooled_conv.hpp"
#include "../ops/reduce.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class pool_fusing {
public:
  constexpr explicit pool_fusing(const graph_parts& p)
      : p_(p),
        v_(p.view),
        users_(v_.size, 0),
        chain_of_(v_.size, -1),
        role_(v_.size, other),
        base_(v_.size, -1),
        written_(v_.size, v_.size) {}

  constexpr graph run() {
    count_readers();
    for (int i = 0; i < v_.size; ++i)
      if (v_.nodes[i].op == &cards::max_pool) find_forward(i);
    for (int i = 0; chains_.count != 0 && i < v_.size; ++i) find_backward(i);
    for (int k = 0; k < chains_.count; ++k)
      if (is_whole(chains_.first[k])) mark(k);
    for (int i = 0; chains_.count != 0 && i < v_.size; ++i) find_readers(i);
    graph g = like(p_);
    seq<int> map(v_.size, -1);
    for (int i = 0; i < v_.size; ++i) write(g, i, map.first);
    carry(g, p_, map.first);
    return g;
  }

private:
  enum roles : char { other, dropped, last_of_chain, gradient, filter_gradient, bias_gradient };
  // The nodes of a chain; -1 where a chain has none.
  struct chain {
    int conv, bias, relu, last, pool;    // last: what the pool reads
    int pool_grad = -1, relu_grad = -1;  // of the backward pass
    int sums = 0;                        // readers of the convolution's gradient that do not need it as a tensor
    int packed = -1;                     // in the new graph
    constexpr int upstream() const { return relu_grad >= 0 ? relu_grad : pool_grad; }
  };
  const graph_parts& p_;
  const graph_view& v_;
  seq<int> users_, chain_of_;
  seq<char> role_;
  seq<int> base_, written_;  // written_: the first write to this memory
  seq<chain> chains_;

  static constexpr int most_places = 64;  // of a window of the pool, because of the kernel's rows (cpu/pooled_conv.hpp)

  constexpr int operand(int i, int k) const { return v_.edges[v_.nodes[i].first + k]; }
  constexpr bool is(int i, const card& op) const { return v_.nodes[i].op == &op; }

  constexpr void count_readers() {
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) ++users_.first[v_.edges[e]];
      base_.first[i] = n.op->is(trait::view | trait::writes) ? base_.first[v_.edges[n.first]] : i;
      int& written = written_.first[base_.first[i]];
      if (n.op->is(trait::writes) && written == v_.size) written = i;
    }
    for (int i = 0; i < p_.output_count; ++i) users_.first[p_.outputs[i].node] += 2;
  }

  // ---- what belongs to a chain
  constexpr void find_forward(int i) {
    const auto window = from_words<window_attr>(v_.ints + v_.nodes[i].attr);
    chain c{-1, -1, -1, operand(i, 0), i};
    int at = c.last;
    if (is(at, cards::relu)) c.relu = at, at = operand(at, 0);
    if (at != c.last && users_.first[at] != 1) return;
    if (is(at, cards::add)) {
      const shape& dims = v_.nodes[at].dims;
      for (int k = 0; k < 2; ++k) {
        const int conv = operand(at, k), bias = operand(at, 1 - k);
        const shape& b = v_.nodes[bias].dims;
        if (is(conv, cards::conv2d) && v_.nodes[conv].dims == dims && b.rank == 1 && b.dims[0] == dims.dims[3])
          c.bias = bias, c.conv = conv;
      }
      if (c.conv < 0 || users_.first[c.conv] != 1) return;
    } else if (is(at, cards::conv2d)) {
      c.conv = at;
    } else {
      return;
    }
    const shape &conv = v_.nodes[c.conv].dims, &pooled = v_.nodes[i].dims;
    const bool side_by_side = window.sh == window.kh && window.sw == window.kw &&
                              pooled.dims[1] == conv.dims[1] / window.kh && pooled.dims[2] == conv.dims[2] / window.kw;
    const std::int64_t places = std::int64_t{pooled.dims[1]} * pooled.dims[2] * pooled.dims[3];
    const int taken = window.kh * window.kw;  // a window of one place has nothing to save
    if (!side_by_side || taken < 2 || taken > most_places || places > (1 << 27)) return;
    for (const int read : {operand(c.conv, 0), operand(c.conv, 1), c.bias})
      if (read >= 0 && written_.first[base_.first[read]] < i) return;
    for (const int inside : {c.conv, c.relu >= 0 ? operand(c.relu, 0) : -1, c.relu, c.last})
      if (inside >= 0 && (chain_of_.first[inside] >= 0 || v_.nodes[inside].controls != 0)) return;
    chain_of_.first[c.last] = chains_.count;  // it is found by the node that the pool and its gradients read
    chains_.push(c);
  }
  constexpr void find_backward(int i) {
    const node& n = v_.nodes[i];
    if (n.inputs != 2) return;
    if (n.op == &cards::max_pool_grad && chain_of_.first[operand(i, 0)] >= 0) {
      chain& c = chains_.first[chain_of_.first[operand(i, 0)]];
      if (c.pool_grad < 0 && n.controls == 0) c.pool_grad = i;
    } else if (n.op == &cards::relu_grad && chain_of_.first[operand(i, 1)] >= 0) {
      chain& c = chains_.first[chain_of_.first[operand(i, 1)]];
      if (c.relu >= 0 && c.relu_grad < 0 && n.controls == 0 && operand(i, 0) == c.pool_grad) c.relu_grad = i;
    }
  }
  // Returns whether only the chain reads what it computes.
  constexpr bool is_whole(const chain& c) const {
    const int known = 1 + (c.pool_grad >= 0 ? 1 : 0) + (c.relu_grad >= 0 ? 1 : 0);
    if (users_.first[c.last] != known) return false;
    return c.pool_grad < 0 || c.relu < 0 || (c.relu_grad >= 0 && users_.first[c.pool_grad] == 1);
  }
  constexpr void mark(int k) {
    const chain& c = chains_.first[k];
    for (const int i : {c.conv, c.last, c.relu >= 0 ? operand(c.relu, 0) : -1, c.pool_grad, c.relu_grad})
      if (i >= 0) role_.first[i] = dropped, chain_of_.first[i] = k;
    role_.first[c.pool] = last_of_chain, chain_of_.first[c.pool] = k;
    if (c.upstream() >= 0) role_.first[c.upstream()] = gradient;
  }
  // Finds readers of the convolution's gradient for which the pooled gradient and the bytes suffice.
  constexpr void find_readers(int i) {
    const node& n = v_.nodes[i];
    if (n.inputs == 0 || n.controls != 0) return;
    const int read = operand(i, n.inputs - 1);
    if (role_.first[read] != gradient) return;
    chain& c = chains_.first[chain_of_.first[read]];
    if (n.op == &cards::sum && c.bias >= 0 && n.dims == v_.nodes[c.bias].dims &&
        from_words<reduce_attr>(v_.ints + n.attr).mask == 7)
      role_.first[i] = bias_gradient, chain_of_.first[i] = chain_of_.first[read], ++c.sums;
    if (n.op == &cards::conv2d_filter && operand(i, 0) == operand(c.conv, 0) && operand(i, 1) == read)
      role_.first[i] = filter_gradient, chain_of_.first[i] = chain_of_.first[read], ++c.sums;
  }
  // ---- writing
  constexpr void write(graph& g, int i, int* map) {
    if (role_.first[i] == other) return emit(g, v_, i, map);
    chain& c = chains_.first[chain_of_.first[i]];
    const bool unseen = c.upstream() >= 0 && c.sums == users_.first[c.upstream()];
    switch (role_.first[i]) {
    case last_of_chain: return write_forward(g, c, map);
    case gradient:
      if (!unseen) write_gradient(g, i, cards::conv2d_unpool, c, {c.packed, map[operand(c.pool_grad, 1)]}, map);
      return;
    case filter_gradient:
      if (!unseen) return emit(g, v_, i, map);
      return write_gradient(g, i, cards::conv2d_pool_filter, c,
                            {map[operand(i, 0)], c.packed, map[operand(c.pool_grad, 1)]}, map);
    case bias_gradient:
      if (!unseen) return emit(g, v_, i, map);
      return write_gradient(g, i, cards::conv2d_pool_bias, c, {c.packed, map[operand(c.pool_grad, 1)]}, map);
    default: return;
    }
  }
  constexpr pooled_conv_attr attributes_of(const chain& c) const {
    const auto conv = from_words<window_attr>(v_.ints + v_.nodes[c.conv].attr);
    const auto window = from_words<window_attr>(v_.ints + v_.nodes[c.pool].attr);
    const shape& dims = v_.nodes[c.conv].dims;
    return {conv.kh,   conv.kw,   conv.sh,     conv.sw,      conv.same,
            window.kh, window.kw, c.relu >= 0, dims.dims[1], dims.dims[2]};
  }
  template <class Attributes>
  static constexpr void push(graph& g, node n, const card& op, std::initializer_list<int> operands,
                             const Attributes& a) {
    n.op = &op, n.first = g.edges.count, n.inputs = static_cast<int>(operands.size()), n.attr = g.ints.count;
    for (const int u : operands) g.edges.push(u);
    const auto words = to_words(a);
    n.attrs = static_cast<int>(words.size());
    g.ints.append(words.data(), n.attrs);
    g.nodes.push(n);
  }
  constexpr void write_forward(graph& g, chain& c, int* map) {
    const node &n = v_.nodes[c.pool], &conv = v_.nodes[c.conv];
    const int x = map[operand(c.conv, 0)], filters = map[operand(c.conv, 1)];
    const std::int64_t places = std::int64_t{n.dims.dims[1]} * n.dims.dims[2] * n.dims.dims[3];
    node packed = n;
    packed.name = -1, packed.controls = 0, packed.type = uint8;
    packed.dims = {n.dims.dims[0], static_cast<int>(pooled_bytes(places, conv.type))};
    if (c.bias >= 0)
      push(g, packed, cards::conv2d_pool, {x, filters, map[c.bias]}, attributes_of(c));
    else
      push(g, packed, cards::conv2d_pool, {x, filters}, attributes_of(c));
    c.packed = g.nodes.count - 1;
    node values = n;
    values.controls = 0;
    push(g, values, cards::pooled_values, {c.packed},
         pooled_values_attr{static_cast<int>(n.type), n.dims.dims[1], n.dims.dims[2], n.dims.dims[3]});
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e)
      g.edges.push(map[v_.edges[e]]), ++g.nodes[c.packed + 1].controls;
    map[c.pool] = g.nodes.count - 1;
  }
  constexpr void write_gradient(graph& g, int i, const card& op, const chain& c, std::initializer_list<int> operands,
                                int* map) {
    node n = v_.nodes[i];
    n.controls = 0;
    push(g, n, op, operands, attributes_of(c));
    map[i] = g.nodes.count - 1;
  }
};

}  // namespace detail

constexpr graph fuse_pools(const graph_parts& p) { return detail::pool_fusing(p).run(); }

}  // namespace gradus
