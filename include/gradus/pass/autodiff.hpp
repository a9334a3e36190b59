// Reverse-mode differentiation makes a graph that computes the gradients besides what it computed before.
//
// It follows tf.gradients of TensorFlow 1.15 step by step: it takes the ops between xs and ys, visits them from ys in
// first-in first-out order, and adds contributions in order of arrival. Derivatives are total: an x that depends on
// another x passes gradients on. Integers and bools pass none: a y of such a dtype gives None to every x but itself.
#pragma once
#include "../base/build.hpp"

#include <span>

#include "../ops/arrange.hpp"
#include "../ops/reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

// How contributions to one gradient are added (tf.AggregationMethod). All three are a left fold in order of arrival
// here, so values do not depend on the choice; it is kept for programs that name it. TensorFlow's EXPERIMENTAL_TREE is
// such a fold too; its ADD_N adds the same list in the same order, eight terms to a pass. Sparse contributions are
// joined, not merged; where one is dense all become dense.
enum class aggregation : int { add_n = 0, experimental_tree = 1, experimental_accumulate_n = 2 };
// The gradient of an x that no y depends on (tf.UnconnectedGradients): none, or zeros like x.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ reports enumerators of a scoped enum as shadowing the namespace
enum class unconnected : int { none, zero };
#pragma GCC diagnostic pop

struct gradients_options {
  // The upstream gradients, one per y and of its shape. An empty entry, or no list, stands for ones.
  std::span<const value> grad_ys{};
  std::string_view name = "gradients";
  bool colocate_gradients_with_ops = false;  // each backward op, and each sum, is on its forward op's device
  bool gate_gradients = false;               // all gradients of one op are there before any of them is used (GATE_OP)
  aggregation aggregation_method = aggregation::add_n;
  // These tensors are held constant, with all other results of their ops.
  std::span<const value> stop_gradients{};
  unconnected unconnected_gradients = unconnected::none;
};

namespace detail {

class differentiation {
public:
  constexpr differentiation(graph& g, std::span<const value> ys, std::span<const value> xs, const gradients_options& o)
      : g_(g), o_(o), n_(g.nodes.count), between_(n_, 0), pending_(n_, 0), head_(n_, -1), tail_(n_, -1) {
    if (!fits(ys, xs)) return;
    mark(ys, xs);
    if (!seed(ys)) return;
    run();
  }
  // Returns the gradient of x, which is empty (None) if nothing reached it.
  constexpr gradient_value of(value x) {
    if (x.g != &g_) return {};
    const int before = g_.nodes.count;
    gradient_value v = aggregate(x.id);
    colocate(before, x.id);
    if (!v && o_.unconnected_gradients == unconnected::zero) v.dense = broadcast_to(g_.constant(0, x.type()), x.dims());
    return v;
  }

private:
  struct contribution {
    gradient_value v;
    int next;
  };
  // flows: gradients can pass from readers of this result. reached: the node is an x, or depends on one by such
  // results.
  // trains: what comes here by no gradient that is stopped on purpose. Numbers of 16 bits count only then, so that a
  // gradient that would end in a cast to them is found.
  enum : char { flows = 1, reached = 2, inner = 4, stopped = 8, queued = 16, trains = 32 };

  graph& g_;
  const gradients_options& o_;
  int n_;
  seq<char> between_;
  seq<int> pending_, head_, tail_;
  seq<contribution> pool_;
  seq<int> queue_;

  constexpr bool ours(std::span<const value> list, std::string_view what) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].g != &g_ || list[i].id < 0 || list[i].id >= n_) {
        g_.refuse("gradients: ", what, " ", static_cast<int>(i), " is no tensor of this graph");
        return false;
      }
    return true;
  }
  constexpr bool fits(std::span<const value> ys, std::span<const value> xs) {
    const int method = static_cast<int>(o_.aggregation_method), none = static_cast<int>(o_.unconnected_gradients);
    if (method < 0 || method > 2)
      g_.refuse("gradients: invalid aggregation_method ", method,
                "; expected add_n, experimental_tree or experimental_accumulate_n");
    else if (none < 0 || none > 1)
      g_.refuse("gradients: invalid unconnected_gradients ", none, "; expected none or zero");
    else
      return ours(ys, "y") && ours(xs, "x") && ours(o_.stop_gradients, "the stop gradient");
    return false;
  }

  constexpr void mark(std::span<const value> ys, std::span<const value> xs) {
    char* flag = between_.first;
    const node* nodes = g_.nodes.first;
    const int* edges = g_.edges.first;
    for (const value& x : xs) flag[x.id] = is_float(nodes[x.id].type) ? flows | trains : flows;
    for (const value& s : o_.stop_gradients) flag[s.id] |= stopped;
    for (int i = 0; i < n_; ++i) {
      const node& n = nodes[i];
      char r = flag[i];
      const char from = n.op->is(trait::blocks) ? flows : flows | trains;
      for (int e = n.first, end = e + n.inputs; e < end; ++e) r |= flag[edges[e]] & from;
      if ((r & flows) == 0) continue;
      const bool ends = (flag[i] & stopped) != 0 || !(is_float(n.type) || is_16_bit_float(n.type));
      const bool goes = !ends && (r & trains) != 0;
      flag[i] = static_cast<char>(reached | (goes || is_float(n.type) ? flows : 0) | (goes ? trains : 0));
    }
    int newest = -1;
    for (const value& y : ys)
      if ((flag[y.id] & reached) != 0) flag[y.id] |= inner, newest = y.id > newest ? y.id : newest;
    for (int i = newest; i >= 0; --i) {
      if ((flag[i] & inner) == 0) continue;
      const node& n = nodes[i];
      for (int e = n.first, end = e + n.inputs; e < end; ++e) {
        const int u = edges[e];
        if ((flag[u] & reached) != 0) flag[u] |= inner, ++pending_.first[u];
      }
    }
    for (const value& s : o_.stop_gradients) flag[s.id] |= stopped;
    for (const value& x : xs) {  // an x that depends on no other x needs no visit
      const node& n = nodes[x.id];
      bool fed = false;
      for (int e = n.first, end = e + n.inputs; e < end; ++e) fed |= (flag[edges[e]] & inner) != 0;
      if (!fed) flag[x.id] |= stopped;
    }
  }

  constexpr bool seed(std::span<const value> ys) {
    if (!o_.grad_ys.empty() && o_.grad_ys.size() != ys.size()) {
      g_.refuse("gradients: ", static_cast<int>(o_.grad_ys.size()), " grad_ys for ", static_cast<int>(ys.size()),
                " ys");
      return false;
    }
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const value y = ys[i];
      value dy = o_.grad_ys.empty() ? value{} : o_.grad_ys[i];
      if (dy && dy.g != &g_) {
        g_.refuse("gradients: grad_y ", static_cast<int>(i), " is no tensor of this graph");
        return false;
      }
      if (dy && (dy.type() != y.type() || !(dy.dims() == y.dims()))) {
        g_.refuse("gradients: grad_y must be like its y: ", y.type(), " ", y.dims(), ", got ", dy.type(), " ",
                  dy.dims());
        return false;
      }
      if ((between_[y.id] & inner) == 0) continue;
      if (!dy) dy = broadcast_to(g_.constant(1, y.type()), y.dims());
      contribute(y.id, {.dense = dy});
    }
    for (const value& y : ys)
      if ((between_[y.id] & (inner | queued)) == inner && pending_[y.id] == 0)
        between_[y.id] |= queued, queue_.push(y.id);
    return true;
  }

  constexpr void contribute(int id, const gradient_value& v) {
    pool_.push({v, -1});
    const int at = pool_.count - 1;
    (head_.first[id] < 0 ? head_.first[id] : pool_.first[tail_.first[id]].next) = at, tail_.first[id] = at;
  }

  static constexpr value widened(value indices, dtype to) { return indices.type() == to ? indices : cast(indices, to); }
  constexpr value densify(const gradient_value& v, const shape& dims) {
    return v.sparse() ? rows_to_dense(v.values, v.indices, dims) : v.dense;
  }

  // Puts the nodes that were added since `before` on the device of node id, if the options ask for it.
  constexpr void colocate(int before, int id) {
    if (!o_.colocate_gradients_with_ops) return;
    for (int k = before; k < g_.nodes.count; ++k) g_.nodes[k].device = g_.nodes[id].device;
  }

  constexpr gradient_value aggregate(int id) {
    if (id < 0 || id >= n_ || head_.first[id] < 0) return {};
    const int first = head_.first[id];
    if (pool_.first[first].next < 0) return pool_.first[first].v;
    // Rows of a batch and rows of known number cannot be joined.
    const auto is_batched_at = [&](int c) { return g_.nodes[pool_[c].v.values.id].dims.dims[0] < 0; };
    bool all_sparse = true;
    for (int c = first; c >= 0; c = pool_[c].next)
      all_sparse = all_sparse && pool_[c].v.sparse() && is_batched_at(c) == is_batched_at(first);
    gradient_value sum = pool_[first].v;
    const shape dims = g_.nodes[id].dims;
    for (int c = pool_[first].next; c >= 0; c = pool_[c].next) {
      const gradient_value v = pool_[c].v;
      if (all_sparse) {  // IndexedSlices are joined, not merged
        const dtype wide = sum.indices.type() == v.indices.type() ? v.indices.type() : int64;
        const value values[2] = {sum.values, v.values},
                    indices[2] = {widened(sum.indices, wide), widened(v.indices, wide)};
        sum.values = concat(g_, values, 2, 0);
        sum.indices = concat(g_, indices, 2, 0);
      } else {
        const value so_far = densify(sum, dims), more = densify(v, dims);
        sum = {.dense = add(so_far, more)};
      }
    }
    pool_[first] = {sum, -1}, tail_[id] = first;
    return sum;
  }

  constexpr void refuse_op(std::string_view op) {
    g_.refuse("gradients: no gradient is defined for ", op, op.ends_with("Grad") ? ", a second derivative" : "",
              "; compute it from ops that have one, or hold it constant by stop_gradient");
  }
  constexpr void run() {
    seq<gradient_value> out;
    seq<char> wants;
    for (int at = 0; at < queue_.count; ++at) {
      const int id = queue_.first[at];
      const node n = g_.nodes.first[id];
      const bool stop = (between_.first[id] & stopped) != 0;
      out.reserve(n.inputs), wants.reserve(n.inputs);
      const int* from = g_.edges.first + n.first;
      for (int k = 0; k < n.inputs; ++k)
        out.first[k] = {}, wants.first[k] = (between_.first[from[k]] & (inner | flows)) == (inner | flows) ? 1 : 0;
      const int before = g_.nodes.count;
      const gradient_value dy = stop || n.inputs == 0 ? gradient_value{} : aggregate(id);
      if (dy && !n.op->is(trait::blocks) && is_float(n.type)) {
        if (n.op->gradient == nullptr) return refuse_op(n.op->name);
        backward b{g_, id, densify(dy, n.dims), out.first, wants.first};
        n.op->gradient(b);
      }
      colocate(before, id);
      int given = 0;
      for (int k = 0; k < n.inputs; ++k) {
        const int u = g_.edges.first[n.first + k];
        if ((between_.first[u] & inner) == 0) continue;
        const gradient_value& v = out.first[k];
        if (!v && dy && wants.first[k] != 0 && is_16_bit_float(g_.nodes[u].type) && !n.op->is(trait::blocks) &&
            (between_.first[u] & trains) != 0)
          return g_.refuse("gradients: none passes a cast to ", g_.nodes[u].type,
                           ", and what is in front of it would not be trained; use reduce_precision, which rounds and "
                           "has a gradient, or stop_gradient around the result");
        if (v && wants.first[k] != 0) {
          const node* nodes = g_.nodes.first;
          if (v.dense.id >= 0 && !(nodes[v.dense.id].dims == nodes[u].dims))
            return g_.refuse("gradients: ", n.op->name, " gave ", v.dense.dims(), " for an operand of ", nodes[u].dims);
          contribute(u, v), ++given;
        }
        if (--pending_.first[u] == 0) queue_.push(u);
      }
      if (o_.gate_gradients && given > 1) {
        g_.gates.push(given);
        for (int k = 0; k < n.inputs; ++k)
          if (wants[k] != 0 && out[k]) g_.gates.push(out[k].sparse() ? out[k].values.id : out[k].dense.id);
      }
    }
  }
};

}  // namespace detail

// Returns, for each x, the sum over ys of dy/dx, contracted with grad_ys; it is empty (None) where no y depends on x.
constexpr detail::seq<gradient_value> gradients(graph& g, std::span<const value> ys, std::span<const value> xs,
                                                const gradients_options& o = {}) {
  const auto scope = g.name_scope(detail::layer_name(o));
  detail::differentiation d(g, ys, xs, o);
  detail::seq<gradient_value> result;
  for (const value& x : xs) result.push(d.of(x));
  return result;
}

}  // namespace gradus
