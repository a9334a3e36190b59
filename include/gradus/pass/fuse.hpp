// Fusion turns chains of elementwise ops into one sweep over memory, with a matrix product in front or a reduction at
// the end where there is one.
//
// An elementwise node joins its only reader if that is elementwise, of the same extents and computed in the same type.
// Groups are trees, hence convex. Each group becomes one node whose expression is the list of its formulas; equal
// chains of different layers have equal expressions, hence one kernel.
//
// A product that only a group reads is computed with it: the formulas are applied to its sums before they are stored. A
// sum or mean that is a group's only reader is computed from its numbers, which are then stored nowhere. In both cases
// the group must be a matrix for every operand: the operand varies along all rows or none, and along all columns or
// none.
//
// Rows of a table that are only multiplied by weights and summed, as those of an example's ids are, are added where
// they lie: gather, product and sum become one op.
#pragma once
#include "../ops/fused.hpp"
#include "../ops/gather.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Returns the type that an elementwise node is computed in. A comparison computes in its operands' type, a cast to
// float in float (its operand is converted when loaded), a cast to integers in its operand's (the result is converted
// when stored). float16 and bfloat16 are computed in float32.
constexpr dtype compute_type(const graph_view& v, const node& n) {
  const auto widened = [](dtype t) { return is_16_bit_float(t) ? float32 : t; };
  const dtype operand = widened(v.nodes[v.edges[n.first]].type), result = widened(n.type);
  if (n.op == &cards::cast)
    return is_float(result) || !is_float(operand) ? result == boolean ? operand : result : operand;
  if (n.type != boolean) return result;
  return operand == boolean ? float32 : operand;
}

// Sets the loops of a node of extents `dims` over its operands: neighbouring axes that all operands treat alike become
// one loop.
constexpr void collapse(expression& x, const shape& dims, const shape* operands) {
  int patterns[max_rank] = {};
  x.loops = 0;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims.dims[axis] == 1) continue;
    int pattern = 0;
    for (int k = 0; k < x.inputs; ++k) {
      const int at = axis - dims.rank + operands[k].rank;
      if (at >= 0 && operands[k].dims[at] != 1) pattern |= 1 << k;
    }
    if (x.loops != 0 && patterns[x.loops - 1] == pattern)
      x.extent[x.loops - 1] *= x.loops == 1 ? 1 : dims.dims[axis];  // the rows are not kept, and may be no int
    else
      patterns[x.loops] = pattern, x.extent[x.loops++] = dims.dims[axis];
  }
  if (x.loops == 0) patterns[0] = 0, x.extent[x.loops++] = 1;
  x.extent[0] = 0;
  for (int k = 0; k < x.inputs; ++k)
    for (int l = 0; l < x.loops; ++l)
      if (patterns[l] >> k & 1) x.varies[k] = static_cast<unsigned char>(x.varies[k] | 1 << l);
}
// Returns the extent of the outermost loop: the elements over the product of the inner extents.
constexpr std::int64_t rows_of(const expression& x, const shape& dims) {
  std::int64_t inner = 1;
  for (int l = 1; l < x.loops; ++l) inner *= x.extent[l];
  return inner == 0 ? 0 : gradus::count(dims) / inner;
}

// Does the same with exactly two loops: the axes before `split` are the rows. Returns false if an operand varies along
// some of the rows, or of the columns, and not along others.
constexpr bool collapse_to_matrix(expression& x, const shape& dims, int split, const shape* operands) {
  x.loops = 2, x.extent[0] = 0, x.extent[1] = 1;
  int known = 0;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (axis >= split) x.extent[1] *= dims.dims[axis];
    if (dims.dims[axis] == 1) continue;
    const int loop = axis < split ? 0 : 1;
    for (int k = 0; k < x.inputs; ++k) {
      const int at = axis - dims.rank + operands[k].rank;
      const int moves = at >= 0 && operands[k].dims[at] != 1 ? 1 << loop : 0;
      if ((known >> loop & 1) != 0 && (x.varies[k] & 1 << loop) != moves) return false;
      x.varies[k] = static_cast<unsigned char>(x.varies[k] | moves);
    }
    known |= 1 << loop;
  }
  return true;
}

class fusing {
public:
  constexpr explicit fusing(const graph_parts& p) : p_(p), v_(p.view), g_(like(p)) {
    const int n = v_.size;
    users_ = seq<int>(n, 0), reader_ = seq<int>(n, -1), base_ = seq<int>(n, -1), written_ = seq<int>(n, n);
    root_ = seq<int>(n, -1), steps_ = seq<int>(n, 0), ins_ = seq<int>(n, 0), next_ = seq<int>(n, -1);
    head_ = seq<int>(n, -1), map_ = seq<int>(n, -1), local_ = seq<int>(n, -1), product_ = seq<int>(n, -1);
    sum_ = seq<int>(n, -1), split_ = seq<int>(n, 0), measured_ = seq<int>(n, -1);
    looked_up_ = seq<int>(n, -1);
    type_ = seq<dtype>(n, dtype::none);
  }
  constexpr graph run() {
    count_readers();
    for (int i = v_.size - 1; i >= 0; --i) join(i);
    for (int i = v_.size - 1; i >= 0; --i) extend(i);
    for (int i = 0; i < v_.size; ++i) write(i);
    for (int i = 0; i < v_.size; ++i)  // the readers and gates of a member refer to its group
      if (map_.first[i] < 0) map_.first[i] = map_.first[group_of(i)];
    carry(g_, p_, map_.first);
    return std::move(g_);
  }

private:
  const graph_parts& p_;
  const graph_view& v_;
  graph g_;
  seq<int> users_, reader_, base_;
  seq<int> written_;                           // the first write to this memory: a read must not be moved past it
  seq<int> root_, steps_, ins_, head_, next_;  // of groups: lists of members, in order of the graph
  seq<int> product_, sum_, split_;             // by root: the node in front of a group, and the one at its end
  seq<int> looked_up_;                         // of a sum of weighted rows, its product and its gather: the sum
  seq<int> measured_;                          // by size op: the node whose extents it reads
  seq<int> map_, local_;
  seq<dtype> type_;

  struct draft {
    expression x;
    int operand[max_operands] = {};
    shape dims[max_operands];
  };

  constexpr void count_readers() {
    int *base = base_.first, *written = written_.first;
    for (int i = 0; i < v_.size; ++i) {
      const node& n = v_.nodes[i];
      const int unread = n.op == &cards::size ? 1 : 0;
      for (int e = n.first + unread, end = n.first + n.inputs + n.controls; e < end; ++e) {
        add_reader(v_.edges[e], i);
        if (e >= n.first + n.inputs)
          ++users_.first[v_.edges[e]];  // what is waited for exists, and is fused into nothing
      }
      base[i] = n.op->is(trait::view | trait::writes) ? base[v_.edges[n.first]] : i;
      if (n.op->is(trait::writes) && written[base[i]] == v_.size) written[base[i]] = i;
    }
    for (int i = 0; i < p_.output_count; ++i) users_.first[p_.outputs[i].node] += 2;  // so that they exist in memory
    for (int i = 0; i < v_.size; ++i)
      if (v_.nodes[i].op == &cards::size) add_reader(measured_.first[i] = seen_by_size(i), i);
  }
  constexpr void add_reader(int of, int i) { ++users_.first[of], reader_.first[of] = i; }
  // A size op reads only extents. No number needs to be kept for it if something of the same extents, made before, is
  // kept anyway.
  constexpr int seen_by_size(int i) const {
    const int operand = v_.edges[v_.nodes[i].first];
    for (int u = operand;;) {
      const node& m = v_.nodes[u];
      if (users_.first[u] > 1 || m.op->is(trait::leaf)) return u;
      if (!m.op->is(trait::elementwise)) return operand;
      int next = -1;
      for (int e = m.first, end = e + m.inputs; e < end && next < 0; ++e)
        if (v_.nodes[v_.edges[e]].dims == m.dims) next = v_.edges[e];
      if (next < 0) return operand;
      u = next;
    }
  }
  // Returns whether the operands of node i have the same values at node `at`.
  constexpr bool may_move(int i, int at) const {
    const node& n = v_.nodes[i];
    bool may = n.controls == 0;
    for (int e = n.first, end = e + n.inputs; may && e < end; ++e) may = written_.first[base_.first[v_.edges[e]]] > at;
    return may;
  }
  constexpr void join(int i) {
    const node& n = v_.nodes[i];
    if (!n.op->is(trait::elementwise)) return;
    int *root = root_.first, *steps = steps_.first, *ins = ins_.first;
    const dtype t = compute_type(v_, n);
    const int r = users_.first[i] == 1 ? root[reader_.first[i]] : -1;
    const bool joins = r >= 0 && type_.first[r] == t && (n.type == t || n.type == boolean) && steps[r] < max_steps &&
                       ins[r] + n.inputs - 1 <= max_operands && v_.nodes[r].dims == n.dims && may_move(i, r);
    const int to = joins ? r : i;
    root[i] = to, ++steps[to], ins[to] += n.inputs - (joins ? 1 : 0), type_.first[i] = t;
    next_.first[i] = head_.first[to], head_.first[to] = i;
  }

  // ---- a product in front, a reduction at the end
  constexpr void extend(int i) {
    const node& n = v_.nodes[i];
    if (n.op == &cards::matmul)
      take_product(i, n);
    else if (n.op == &cards::sum || n.op == &cards::mean)
      take_sum(i, n);
  }
  constexpr bool computes_floats(int r) const { return is_float(type_.first[r]) && v_.nodes[r].type == type_.first[r]; }
  constexpr void take_product(int i, const node& n) {
    if (users_.first[i] != 1) return;
    const int r = root_.first[reader_.first[i]];
    if (r < 0 || product_.first[r] >= 0 || sum_.first[r] >= 0 || type_.first[r] != n.type || !computes_floats(r) ||
        !(v_.nodes[r].dims == n.dims) || !may_move(i, r) || gradus::count(n.dims) == 0)
      return;
    draft d = gather(r, i);
    if (d.x.inputs <= max_operands && collapse_to_matrix(d.x, n.dims, n.dims.rank - 1, d.dims)) product_.first[r] = i;
  }
  constexpr void take_sum(int i, const node& n) {
    const int r = v_.edges[n.first];
    if (root_.first[r] != r || users_.first[r] != 1 || product_.first[r] >= 0 || !computes_floats(r) || n.controls != 0)
      return;
    const node& last = v_.nodes[r];
    lowering l{v_, n};
    n.op->lower(l);
    if (l.dims[1] == 3) return take_rows(i, n, r);
    if (l.dims[1] > 2 || (l.dims[1] == 1 && l.dims[0] == 0) || gradus::count(last.dims) == 0) return;
    for (int m = head_.first[r]; m >= 0; m = next_.first[m])
      if (!may_move(m, i)) return;
    const int mask = from_words<reduce_attr>(v_.ints + n.attr).mask;
    int split = 0;
    if (l.dims[1] == 2)
      while ((mask >> split & 1) == (mask & 1)) ++split;
    draft d = gather(r, -1);
    if (collapse_to_matrix(d.x, last.dims, split, d.dims))
      sum_.first[r] = i, sum_.first[i] = r, split_.first[r] = split;
  }
  // Takes a sum of rows by weights: r is the product of a gather [..., k, width] and of weights [..., k, 1]. The sum
  // over k must be one chain for each column, which it is for less than 256 rows (docs/arithmetic.md).
  constexpr void take_rows(int i, const node& n, int r) {
    const node& product = v_.nodes[r];
    if (n.op != &cards::sum || product.op != &cards::mul || steps_.first[r] != 1) return;
    const int rows = v_.edges[product.first], weights = v_.edges[product.first + 1];
    const node& gather = v_.nodes[rows];
    const shape &dims = product.dims, &by = v_.nodes[weights].dims;
    const int last = dims.rank - 1;
    if (gather.op != &cards::gather || users_.first[rows] != 1 || !(gather.dims == dims) || by.rank != dims.rank)
      return;
    bool fits = from_words<reduce_attr>(v_.ints + n.attr).mask == 1 << (last - 1) && by.dims[last] == 1 &&
                dims.dims[last] > 0 && dims.dims[last - 1] > 0 && dims.dims[last - 1] < 256 &&
                v_.nodes[v_.edges[gather.first]].dims.rank == 2;
    for (int axis = 0; axis < last; ++axis) fits = fits && by.dims[axis] == dims.dims[axis];
    if (fits && may_move(rows, i) && may_move(r, i))
      looked_up_.first[i] = looked_up_.first[r] = looked_up_.first[rows] = i;
  }
  // Returns the group of a node that is not written itself.
  constexpr int group_of(int i) const {
    const int r = root_.first[i] >= 0 ? root_.first[i] : root_.first[reader_.first[i]];
    return sum_.first[r] >= 0 ? sum_.first[r] : r;
  }

  // ---- writing
  // Makes the expression of group r, with its operands, each once; `product` comes first if there is one.
  constexpr draft gather(int r, int product) const {
    draft d;
    expression& x = d.x;
    const auto add = [&](int u) {
      int j = 0;
      while (j < x.inputs && d.operand[j] != u) ++j;
      if (j == x.inputs) d.dims[j] = v_.nodes[u].dims, x.operand_type[j] = v_.nodes[u].type, d.operand[x.inputs++] = u;
    };
    x.type = type_.first[r], x.result_type = v_.nodes[r].type;
    if (product >= 0) add(product);
    for (int m = head_.first[r]; m >= 0; m = next_.first[m]) {
      const node& k = v_.nodes[m];
      for (int e = k.first, end = e + k.inputs; e < end; ++e)
        if (root_.first[v_.edges[e]] != r) add(v_.edges[e]);
    }
    return d;
  }
  constexpr void list_steps(int r, draft& d) {
    expression& x = d.x;
    for (int m = head_.first[r]; m >= 0; m = next_.first[m]) {
      const node& k = v_.nodes[m];
      x.op[x.steps] = k.op;
      for (int e = 0; e < k.inputs; ++e) {
        const int u = v_.edges[k.first + e];
        int j = 0;
        if (root_.first[u] != r)
          while (d.operand[j] != u) ++j;
        x.arg[x.steps][e] = static_cast<unsigned char>(root_.first[u] == r ? x.inputs + local_.first[u] : j);
      }
      local_.first[m] = x.steps++;
    }
  }
  // Returns the number of the expression. There are few distinct ones, so a linear search is enough.
  constexpr int number_of(const expression& x) {
    int at = 0;
    const auto& all = g_.expressions;
    while (at < all.count && !(all[at].steps == x.steps && all[at].op[0] == x.op[0] && all[at] == x)) ++at;
    if (at == all.count) g_.expressions.push(x);
    return at;
  }
  constexpr void write_rows(int i) {
    const node &n = v_.nodes[i], &product = v_.nodes[v_.edges[n.first]];
    const int rows = v_.edges[product.first], weights = v_.edges[product.first + 1];
    node fused = n;
    fused.op = &cards::gathered_sum, fused.first = g_.edges.count, fused.inputs = 3, fused.attrs = 0;
    for (int e = v_.nodes[rows].first, end = e + 2; e < end; ++e) g_.edges.push(map_.first[v_.edges[e]]);
    g_.edges.push(map_.first[weights]);
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e) g_.edges.push(map_.first[v_.edges[e]]);
    g_.nodes.push(fused);
    map_.first[rows] = map_.first[v_.edges[n.first]] = map_.first[i] = g_.nodes.count - 1;
  }
  constexpr void write(int i) {
    const node& n = v_.nodes[i];
    if (looked_up_.first[i] >= 0) {
      if (looked_up_.first[i] == i) write_rows(i);
      return;
    }
    const bool reduces = root_.first[i] < 0 && sum_.first[i] >= 0;
    if (root_.first[i] < 0 && !reduces) {
      if (n.op == &cards::matmul && is_taken(i)) return;
      emit(g_, v_, i, map_.first);
      if (n.op == &cards::size) g_.edges[g_.nodes[map_.first[i]].first] = map_.first[measured_.first[i]];
      return;
    }
    const int r = reduces ? sum_.first[i] : i;
    if (!reduces && (root_.first[i] != i || sum_.first[i] >= 0)) return;
    const node& last = v_.nodes[r];
    const int product = product_.first[r];
    draft d = gather(r, product);
    list_steps(r, d);
    node fused = n;
    fused.first = g_.edges.count, fused.inputs = d.x.inputs, fused.attr = g_.ints.count;
    int from = 0;
    if (product >= 0) {
      const node& m = v_.nodes[product];
      fused.op = &cards::fused_matmul, fused.inputs = d.x.inputs + 1, from = 1;
      collapse_to_matrix(d.x, last.dims, last.dims.rank - 1, d.dims);
      for (int e = m.first; e < m.first + 2; ++e) g_.edges.push(map_.first[v_.edges[e]]);
      g_.ints.append(v_.ints + m.attr, m.attrs);
    } else if (reduces) {
      fused.op = &cards::fused_reduction;
      collapse_to_matrix(d.x, last.dims, split_.first[r], d.dims);
      lowering l{v_, n};
      n.op->lower(l);
      const bool two = l.dims[1] == 2;
      g_.ints.push(two ? l.dims[2] : 1), g_.ints.push(two ? l.dims[3] : l.dims[2]);
      g_.ints.push(two && l.dims[0] != 0 ? 1 : 0), g_.ints.push(n.op == &cards::mean ? 1 : 0);
    } else {
      fused.op = &cards::fused;
      collapse(d.x, last.dims, d.dims);
    }
    g_.ints.push(number_of(d.x));
    fused.attrs = g_.ints.count - fused.attr;
    for (int k = from; k < d.x.inputs; ++k) g_.edges.push(map_.first[d.operand[k]]);
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e) g_.edges.push(map_.first[v_.edges[e]]);
    g_.nodes.push(fused);
    map_.first[i] = g_.nodes.count - 1;
  }
  constexpr bool is_taken(int matmul) const {
    const int r = users_.first[matmul] == 1 ? root_.first[reader_.first[matmul]] : -1;
    return r >= 0 && product_.first[r] == matmul;
  }
};

}  // namespace detail

constexpr graph fuse(const graph_parts& p) { return detail::fusing(p).run(); }

}  // namespace gradus
