// This pass takes less memory for more time: activations of the forward pass are not kept, and are computed again when
// the backward pass needs them (Chen et al. 2016, "Training deep nets with sublinear memory cost", arXiv:1604.06174).
//
// recompute<N>{} chooses the activations by itself. A model that marks them, because its author knows where the memory
// is used, takes recompute_marked{}:
//
//   for (int i = 0; i < 12; ++i) h = gradus::recomputed(h, [&](auto x) { return block(x); });
#pragma once
#include "../base/contract.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/recomputed.hpp"
#include "../ops/state.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

// Cuts the forward pass into about `Segments` segments of equal memory, at places where a single tensor leads from one
// side to the other: between layers, between residual blocks. That tensor is kept; the tensors inside a segment are
// computed once more when the backward pass reaches it, except those of the last segment, which are still in memory
// then. The bits are the same; the square root of the number of layers is a good number of segments. As
// torch.utils.checkpoint.checkpoint_sequential, but nothing is marked in the model. Only a plan that shares memory
// gains: with `threads` every tensor has its own.
template <int Segments>
struct recompute {
  static_assert(Segments >= 2, "gradus: recompute<N> needs two segments or more; the last is never computed again.");
  using policy_for = kind::recomputation;
  static constexpr int segments = Segments;
};

// Computes again what the model marks by `recomputed`, and nothing else. The bits are the same.
struct recompute_marked {
  using policy_for = kind::recomputation;
  static constexpr int segments = 1;
};

namespace detail {

struct recompute_nothing {
  using policy_for = kind::recomputation;
  static constexpr int segments = 0;
};

class recomputing {
public:
  constexpr recomputing(const graph_parts& p, int segments)
      : p_(p), v_(p.view), segments_(segments), base_(v_.size, -1), segment_(v_.size, -1), flags_(v_.size, 0) {}

  constexpr graph run() {
    classify();
    if (segments_ == recompute_marked::segments)
      find_marked();
    else
      cut();
    mark_needed();
    graph g = like(p_);
    seq<int> map(v_.size, -1), again(v_.size, -1);
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      if (is_mark(n)) {  // it has served its purpose
        map[i] = map[v_.edges[n.first]];
        continue;
      }
      if (!is(i, backward_node)) {
        emit(g, v_, i, map.first);
        continue;
      }
      for (int e = n.first, end = e + n.inputs; e < end; ++e)
        if (const int u = v_.edges[e]; forgotten(u) && again[u] < 0) repeat(g, segment_[u], map, again);
      emit(g, v_, i, map.first);
      int* const edge = g.edges.first + g.nodes[map[i]].first;
      for (int k = 0; k < n.inputs; ++k)
        if (const int u = v_.edges[n.first + k]; forgotten(u)) edge[k] = again[u];
    }
    carry(g, p_, map.first);
    return g;
  }

private:
  enum : char { backward_node = 1, copies = 2, constant_part = 4, kept_node = 8, needed = 16 };
  const graph_parts& p_;
  const graph_view& v_;
  int segments_;
  seq<int> base_, segment_;
  seq<char> flags_;
  seq<int> begins_, ends_;  // of segments, in nodes
  int last_ = 0;            // this segment and those after it are not computed again

  constexpr bool is(int i, char flag) const { return (flags_.first[i] & flag) != 0; }
  constexpr bool forgotten(int u) const {
    return is(u, copies) && !is(u, kept_node) && segment_.first[u] >= 0 && segment_.first[u] < last_;
  }
  constexpr std::int64_t weight(int i) const {
    const node& n = v_.nodes[i];
    if (is(i, backward_node | constant_part) || n.op->is(trait::leaf | trait::view | trait::writes | trait::control))
      return 0;
    const std::int64_t c = gradus::count(n.dims);
    return (c < 0 ? -c : 0) * static_cast<std::int64_t>(size_of(n.type));
  }

  // Finds the nodes that may be computed twice: they have no effect, and read nothing that this graph writes before its
  // updates. `constant_part`: the same for every batch, such as a mask; computing it again is not worth it, and
  // segments share it.
  constexpr void classify() {
    seq<char> written(v_.size, 0);
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      base_.first[i] = n.op->is(trait::view | trait::writes) ? base_.first[v_.edges[n.first]] : i;
      if (n.op->is(trait::writes) && !n.op->is(trait::session)) written.first[base_.first[i]] = 1;
    }
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      bool copy = !n.op->is(trait::leaf | trait::keeps | trait::writes | trait::session | trait::control);
      bool same = n.op != &placeholder_card && gradus::count(n.dims) >= 0;
      for (int e = n.first, end = e + n.inputs; e < end; ++e) {
        copy = copy && written.first[base_.first[v_.edges[e]]] == 0;
        same = same && is(v_.edges[e], constant_part);
      }
      char f = 0;
      if (n.scope == graph::gradient_scope)
        f = backward_node;
      else if (same)
        f = constant_part;
      else if (copy)
        f = copies;
      flags_.first[i] = f;
    }
  }

  // Finds the cuts. A cut is after node i if its tensor is the only one that the rest of the forward pass reads.
  constexpr void cut() {
    seq<int> until(v_.size, -1), ends(v_.size, 0);
    std::int64_t total = 0, before = 0;
    for (int i = 0; i < v_.size; ++i) {
      total += weight(i);
      if (is(i, backward_node)) continue;
      const node& n = v_.nodes[i];
      for (int e = n.first, end = e + n.inputs; e < end; ++e) until.first[base_.first[v_.edges[e]]] = i;
    }
    for (int i = 0; i < v_.size; ++i)
      if (counts(i) && until.first[i] > i) ++ends.first[until.first[i]];
    int alive = 0, segment = 0;
    begins_.push(0);
    for (int i = 0; i < v_.size; ++i) {
      if (is(i, backward_node)) continue;
      segment_.first[i] = segment, before += weight(i);
      if (counts(i) && until.first[i] > i) ++alive;
      alive -= ends.first[i];
      const int b = base_.first[i];
      if (alive != 1 || !counts(b) || until.first[b] <= i || segment + 1 >= segments_) continue;
      if (before * segments_ < total * (segment + 1)) continue;
      flags_.first[b] = static_cast<char>(flags_.first[b] | kept_node);
      ends_.push(i + 1), begins_.push(i + 1), ++segment;
    }
    last_ = segment;
    ends_.push(v_.size);
    keep_memory();
  }
  // Keeps the nodes whose memory is that of a kept tensor.
  constexpr void keep_memory() {
    for (int i = 0; i < v_.size; ++i)
      if (is(base_.first[i], kept_node)) flags_.first[i] = static_cast<char>(flags_.first[i] | kept_node);
  }
  constexpr void keep(int i) {
    flags_.first[base_.first[i]] = static_cast<char>(flags_.first[base_.first[i]] | kept_node);
  }
  // A segment is what is between the marks of a region. A node that is read from outside of it is kept, except a result
  // that is marked as forgotten: that mark is the segment's last node.
  constexpr void find_marked() {
    int depth = 0;
    seq<char> free(v_.size, 0);
    for (int i = 0; i < v_.size; ++i) {
      if (is(i, backward_node)) continue;
      if (is_mark(v_.nodes[i])) {
        const border at = from_words<mark_attr>(v_.ints + v_.nodes[i].attr).at;
        if (at == border::begin && depth++ == 0) {
          begins_.push(i + 1);
          continue;
        }
        if (at != border::begin && depth > 0 && --depth == 0) {
          free.first[i] = at == border::forgotten_end;
          ends_.push(i + free.first[i]);
          if (free.first[i] != 0) segment_.first[i] = begins_.count - 1;
        }
      }
      if (depth > 0) segment_.first[i] = begins_.count - 1;
    }
    if (ends_.count < begins_.count) ends_.push(v_.size);
    last_ = begins_.count;
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      if (is(i, backward_node)) continue;
      for (int e = n.first, end = e + n.inputs; e < end; ++e)
        if (const int u = v_.edges[e];
            segment_.first[u] >= 0 && segment_.first[u] != segment_.first[i] && free.first[u] == 0)
          keep(u);
    }
    for (int i = 0; i < p_.output_count; ++i) keep(p_.outputs[i].node);
    keep_memory();
  }
  constexpr bool counts(int i) const {
    return !is(i, backward_node | constant_part) && !v_.nodes[i].op->is(trait::leaf | trait::view | trait::writes);
  }

  constexpr void mark_needed() {
    for (int i = v_.size - 1; i >= 0; --i) {
      if (!is(i, backward_node) && !is(i, needed)) continue;
      const node& n = v_.nodes[i];
      for (int e = n.first, end = e + n.inputs; e < end; ++e)
        if (const int u = v_.edges[e]; forgotten(u) && (is(i, backward_node) || segment_.first[u] == segment_.first[i]))
          flags_.first[u] = static_cast<char>(flags_.first[u] | needed);
    }
  }
  constexpr void repeat(graph& g, int segment, const seq<int>& map, seq<int>& again) {
    for (int i = begins_[segment]; i < ends_[segment]; ++i) {
      if (!is(i, needed) || !forgotten(i)) continue;
      if (is_mark(v_.nodes[i])) {
        const int u = v_.edges[v_.nodes[i].first];
        again.first[i] = again.first[u] >= 0 ? again.first[u] : map.first[u];
        continue;
      }
      node n = v_.nodes[i];
      const int from = n.first, words = n.attr;
      n.first = g.edges.count, n.controls = 0, n.name = -1;
      for (int e = from, end = from + n.inputs; e < end; ++e) {
        const int u = v_.edges[e];
        g.edges.push(again.first[u] >= 0 ? again.first[u] : map.first[u]);
      }
      n.attr = g.ints.count;
      g.ints.append(v_.ints + words, n.attrs);
      g.nodes.push(n);
      again.first[i] = g.nodes.count - 1;
    }
  }
};

}  // namespace detail

// The pass works on a training graph, after it was merged and before it is fused. segments is 1 for marked segments.
constexpr graph recompute_segments(const graph_parts& p, int segments) {
  return detail::recomputing(p, segments).run();
}

}  // namespace gradus
