// Reverse-mode differentiation: a graph that computes the gradients beside what it computed before.
//
// As tf.gradients of TensorFlow 1.15, step by step: ops between xs and ys, visited from ys in first-in first-out order,
// contributions added in order of arrival. Total derivatives: an x that depends on another x lets gradients through.
#pragma once
#include <span>

#include "../ops/arrange.hpp"
#include "../ops/reduce.hpp"

namespace gradus {

// How contributions to one gradient are added. All three are a left fold in order of arrival here, so that values do
// not depend on the choice; it is kept for programs that name it.
enum class aggregation : int { add_n = 0, experimental_tree = 1, experimental_accumulate_n = 2 };
enum class unconnected : int { none, zero };

struct gradients_options {
  std::span<const value> grad_ys{};  // upstream gradients; none: ones
  std::string_view name = "gradients";
  bool colocate_gradients_with_ops = false;
  bool gate_gradients = false;  // all gradients of one op before any of them is used (GATE_OP)
  aggregation aggregation_method = aggregation::add_n;
  std::span<const value> stop_gradients{};
  unconnected unconnected_gradients = unconnected::none;
};

namespace detail {

class differentiation {
public:
  constexpr differentiation(graph& g, std::span<const value> ys, std::span<const value> xs, const gradients_options& o)
      : g_(g), o_(o), n_(g.nodes.count), between_(n_, 0), pending_(n_, 0), head_(n_, -1), tail_(n_, -1) {
    mark(ys, xs);
    seed(ys);
    run();
  }
  // The gradient of x: empty (None) if nothing reached it.
  constexpr gradient_value of(value x) {
    gradient_value v = aggregate(x.id);
    if (!v && o_.unconnected_gradients == unconnected::zero) v.dense = broadcast_to(g_.constant(0, x.type()), x.dims());
    return v;
  }

private:
  struct contribution {
    gradient_value v;
    int next;
  };
  enum : char { reached = 1, inner = 2, stopped = 4, wanted_ = 8, queued = 16 };

  graph& g_;
  const gradients_options& o_;
  int n_;
  seq<char> between_;
  seq<int> pending_, head_, tail_;
  seq<contribution> pool_;
  seq<int> queue_;

  constexpr void mark(std::span<const value> ys, std::span<const value> xs) {
    char* flag = between_.first;
    const node* nodes = g_.nodes.first;
    const int* edges = g_.edges.first;
    for (const value& x : xs) flag[x.id] |= reached | wanted_;
    for (int i = 0; i < n_; ++i) {
      const node& n = nodes[i];
      if (!is_float(n.type)) {
        flag[i] = 0;
        continue;
      }
      char r = flag[i];
      for (int e = n.first, end = e + n.inputs; e < end; ++e) r |= flag[edges[e]] & reached;
      flag[i] = r;
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

  constexpr void seed(std::span<const value> ys) {
    if (!o_.grad_ys.empty() && o_.grad_ys.size() != ys.size())
      return g_.refuse("gradients: ", static_cast<int>(o_.grad_ys.size()), " grad_ys for ", static_cast<int>(ys.size()),
                       " ys");
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const value y = ys[i];
      if (!is_float(y.type()))
        return g_.refuse("gradients: y \"", g_.name_of(y.id), "\" must be float32 or float64, got ", y.type());
      if ((between_[y.id] & inner) == 0) continue;
      value dy = o_.grad_ys.empty() ? value{} : o_.grad_ys[i];
      if (!dy) dy = broadcast_to(g_.constant(1, y.type()), y.dims());
      if (dy.type() != y.type() || !(dy.dims() == y.dims()))
        return g_.refuse("gradients: grad_y must be like its y: ", y.type(), " ", y.dims(), ", got ", dy.type(), " ",
                         dy.dims());
      contribute(y.id, {.dense = dy});
    }
    for (const value& y : ys)
      if ((between_[y.id] & (inner | queued)) == inner && pending_[y.id] == 0)
        between_[y.id] |= queued, queue_.push(y.id);
  }

  constexpr void contribute(int id, const gradient_value& v) {
    pool_.push({v, -1});
    const int at = pool_.count - 1;
    (head_.first[id] < 0 ? head_.first[id] : pool_.first[tail_.first[id]].next) = at, tail_.first[id] = at;
  }

  constexpr value densify(const gradient_value& v, const shape& dims) {
    return v.sparse() ? rows_to_dense(v.values, v.indices, dims) : v.dense;
  }

  constexpr gradient_value aggregate(int id) {
    if (id >= n_ || head_.first[id] < 0) return {};
    const int first = head_.first[id];
    if (pool_.first[first].next < 0) return pool_.first[first].v;
    bool all_sparse = true;
    for (int c = first; c >= 0; c = pool_[c].next) all_sparse = all_sparse && pool_[c].v.sparse();
    gradient_value sum = pool_[first].v;
    const shape dims = g_.nodes[id].dims;
    for (int c = pool_[first].next; c >= 0; c = pool_[c].next) {
      const gradient_value v = pool_[c].v;
      if (all_sparse) {  // IndexedSlices are joined, not merged
        const value values[2] = {sum.values, v.values}, indices[2] = {sum.indices, v.indices};
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
        out.first[k] = {}, wants.first[k] = (between_.first[from[k]] & inner) != 0 ? 1 : 0;
      const gradient_value dy = stop || n.inputs == 0 ? gradient_value{} : aggregate(id);
      if (dy && !n.op->is(trait::blocks)) {
        if (n.op->gradient == nullptr) return g_.refuse("gradients: no gradient is defined for ", n.op->name);
        backward b{g_, id, densify(dy, n.dims), out.first, wants.first};
        const int before = g_.nodes.count;
        n.op->gradient(b);
        for (int k = before; o_.colocate_gradients_with_ops && k < g_.nodes.count; ++k) g_.nodes[k].device = n.device;
      }
      int given = 0;
      for (int k = 0; k < n.inputs; ++k) {
        if (wants.first[k] == 0) continue;
        const int u = g_.edges.first[n.first + k];
        const gradient_value& v = out.first[k];
        if (v) {
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

// For each x the sum over ys of dy/dx, contracted with grad_ys; empty (None) where no y depends on it.
constexpr seq<gradient_value> gradients(graph& g, std::span<const value> ys, std::span<const value> xs,
                                        const gradients_options& o = {}) {
  const auto scope = g.name_scope(o.name);
  detail::differentiation d(g, ys, xs, o);
  seq<gradient_value> result;
  for (const value& x : xs) result.push(d.of(x));
  return result;
}

}  // namespace gradus
