// The plan defines where every tensor is in memory, which calls a step makes, and which kernels they need.
//
// A tensor has a slot: how many bytes it takes, and from which node to which it holds a value. Once the batch is known,
// slots are laid out (lay_out_slots): those that are alive together are apart, others may share memory. The gradient of
// a variable is in the gradient arena at the variable's offset, so that norms, updates and all-reduces work on one
// array; or, where each update comes right after its gradient (pass/release.hpp), in a slot as any other tensor.
#pragma once
#include "../base/build.hpp"

#include <algorithm>

#include "../ops/state.hpp"
#include "fuse.hpp"

namespace gradus::inline GRADUS_BUILD {

struct node_place {
  enum regions : int { nowhere, slot, variable, gradient };
  int region = nowhere, index = -1;
  constexpr bool operator==(const node_place&) const = default;
};

// A slot holds a value between two nodes: the one that writes it, and the last that reads it. Nodes whose results
// replace their operands in memory share one slot.
struct slot_lifetime {
  static constexpr int forever = 1 << 30;
  int first = -1, last = forever;  // first = -1: always, as inputs and constants do
  constexpr bool always() const { return first < 0; }
  constexpr bool meets(const slot_lifetime& o) const { return first <= o.last && o.first <= last; }
  constexpr bool operator==(const slot_lifetime&) const = default;
};

namespace detail {
// One call of a kernel. args[first ...] are nodes: the result, then the operands.
struct call {
  int node, signature, first, count;
  std::int64_t rows;  // negative: times the batch
};

struct program {
  seq<call> calls;
  seq<signature> signatures;
  seq<int> args;
  seq<node_place> places;    // of every node
  seq<std::int64_t> slots;   // bytes; negative: per example
  seq<slot_lifetime> lives;  // of each slot
  seq<int> variables;        // nodes, trainable ones first
  int trainable = 0;
};
}  // namespace detail

// These are the parts of a program that a runner reads.
struct program_view {
  const detail::call* calls = nullptr;
  int call_count = 0;
  const detail::signature* signatures = nullptr;
  int signature_count = 0;
  const int* args = nullptr;
  int arg_count = 0;
  const node_place* places = nullptr;
  const std::int64_t* slots = nullptr;
  const slot_lifetime* lives = nullptr;
  int slot_count = 0;
  const int* variables = nullptr;
  int variable_count = 0, trainable = 0;
};
constexpr program_view view_of(const detail::program& p) {
  return {p.calls.first,     p.calls.count,     p.signatures.first, p.signatures.count, p.args.first,
          p.args.count,      p.places.first,    p.slots.first,      p.lives.first,      p.slots.count,
          p.variables.first, p.variables.count, p.trainable};
}

namespace detail {

// Where the number of a lowered expression is while signatures are compared: after the extents that its op lowers.
inline constexpr int expression_place = 7;

constexpr unsigned hash_of(const node& n, const lowering& l) {
  unsigned h = mix(static_cast<unsigned>(n.op->name.size() * 64 + static_cast<unsigned char>(n.op->name[0])),
                   static_cast<unsigned>(n.type));
  const int* d = l.dims;  // few statements: clang counts them
  for (int i = 0; i < 8; i += 4)
    h = ((((h ^ static_cast<unsigned>(d[i])) * 2654435761u ^ static_cast<unsigned>(d[i + 1])) * 2246822519u ^
          static_cast<unsigned>(d[i + 2])) *
             3266489917u ^
         static_cast<unsigned>(d[i + 3])) *
        668265263u,
    h ^= h >> 15;
  return h ^ h >> 16;
}
constexpr bool same_kernel(const signature& s, const node& n, const lowering& l, const graph_view& v) {
  if (s.op != n.op || s.types[0] != n.type) return false;
  static_assert(max_extents % 4 == 0);
  const int *a = s.dims, *b = l.dims;
  for (int i = 0; i < max_extents; i += 4)
    if (a[i] != b[i] || a[i + 1] != b[i + 1] || a[i + 2] != b[i + 2] || a[i + 3] != b[i + 3]) return false;
  for (int i = 1; i < max_types && !n.op->is(trait::expression); ++i)
    if (s.types[i] != (i <= n.inputs ? v.nodes[v.edges[n.first + i - 1]].type : dtype::none)) return false;
  return true;
}

// Returns the bytes of a tensor; negative: per example. Tensors end on a cache line once the batch is known.
constexpr std::int64_t bytes_of(const node& n) {
  return gradus::count(n.dims) * static_cast<std::int64_t>(size_of(n.type));
}

// Returns whether a sweep in place is no slower than one from memory to other memory. It is slower if short rows end
// within a register: a partial store there delays the next row's load, 5 ns each (on a Zen 5 with AVX-512).
constexpr bool is_fast_in_place(const expression& x) {
  const int row = x.extent[x.loops - 1];
  return x.loops == 1 || repeats_by_rows(x) || (row > 0 && row % 16 == 0) || row > 256;
}

class planning {
public:
  constexpr planning(const graph_parts& p, bool reuse, bool release)
      : p_(p), v_(p.view), reuse_(reuse), release_(release) {
    const int n = v_.size, capacity = table_size(n);
    base_ = seq<int>(n, -1), last_ = seq<int>(n, -1);
    table_ = seq<int>(capacity, -1);
    mask_ = static_cast<unsigned>(capacity - 1);
    out_.places = seq<node_place>(n, node_place{});
    out_.calls.reserve(n);
    out_.args.reserve(n + v_.edge_count);
  }
  constexpr program run() {
    variables();
    lifetimes();
    for (int i = 0; i < v_.size; ++i) place(i);
    for (signature& s : out_.signatures)  // the formula is enough; the number would keep graphs from sharing kernels
      if (s.op->is(trait::expression)) s.dims[expression_place] = 0;
    return std::move(out_);
  }

private:
  const graph_parts& p_;
  const graph_view& v_;
  bool reuse_, release_;
  program out_;
  seq<int> base_, last_, table_;
  unsigned mask_ = 0;

  constexpr void variables() {
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < v_.size; ++i) {
        const node& n = v_.nodes[i];
        if (n.op != &variable_card) continue;
        const bool trains = from_words<variable_attr>(v_.ints + n.attr).trainable != 0;
        if (trains != (pass == 0)) continue;
        out_.places.first[i] = {node_place::variable, out_.variables.count};
        out_.variables.push(i);
      }
      if (pass == 0) out_.trainable = out_.variables.count;
    }
  }

  constexpr void lifetimes() {
    const node* nodes = v_.nodes;
    const int* edges = v_.edges;
    int *base = base_.first, *last = last_.first;
    for (int i = 0; i < v_.size; ++i) {
      const node& n = nodes[i];
      base[i] = n.op->is(trait::view | trait::writes) ? base[edges[n.first]] : i;
      for (int e = n.first, end = e + n.inputs; e < end; ++e) last[base[edges[e]]] = i;
      if (n.op == &cards::apply && n.inputs == 2 && !release_) {  // its gradient is beside the variable
        const int grad = edges[n.first + 1];
        out_.places.first[grad] = {node_place::gradient, out_.places.first[base[edges[n.first]]].index};
      }
    }
    for (int i = 0; i < p_.output_count; ++i) last[base[p_.outputs[i].node]] = slot_lifetime::forever;
  }

  // Returns the slot of node i: a new one, or that of an operand of its size that nothing reads afterwards. An
  // elementwise result may replace such an operand, since its kernels read a place before they write it.
  constexpr int slot_of(int i) {
    const node& n = v_.nodes[i];
    slot_lifetime life;
    if (reuse_ && !n.op->is(trait::leaf)) {
      life.first = i;
      if (n.inputs != 0 || last_.first[i] >= 0) life.last = last_.first[i] < i ? i : last_.first[i];
    }
    if (const int k = slot_in_place(i); k >= 0) {
      out_.lives.first[k].last = life.last;
      return k;
    }
    out_.slots.push(bytes_of(n)), out_.lives.push(life);
    return out_.slots.count - 1;
  }
  constexpr int slot_in_place(int i) const {
    const node& n = v_.nodes[i];
    if (!reuse_ || n.op != &cards::fused || !is_fast_in_place(v_.expressions[expression_of(n, v_.ints)])) return -1;
    for (int e = n.first, end = e + n.inputs; e < end; ++e) {
      const int k = base_.first[v_.edges[e]];
      const node_place& place = out_.places.first[k];
      if (last_.first[k] == i && place.region == node_place::slot && !out_.lives.first[place.index].always() &&
          v_.nodes[k].type == n.type && count(v_.nodes[k].dims) == count(n.dims))
        return place.index;
    }
    return -1;
  }

  constexpr void place(int i) {
    const node& n = v_.nodes[i];
    node_place& here = out_.places.first[i];
    if (n.op->is(trait::view | trait::writes))
      here = out_.places.first[base_.first[i]];
    else if (!n.op->is(trait::control) && here.region == node_place::nowhere)
      here = {node_place::slot, slot_of(i)};
    if (n.op->is(trait::view | trait::leaf | trait::control)) return;
    lowering l{v_, n};
    if (n.op->lower != nullptr) n.op->lower(l);
    if (n.op->is(trait::expression)) l.dims[expression_place] = expression_of(n, v_.ints);
    if (n.op == &cards::fused) l.rows = rows_of(v_.expressions[l.dims[expression_place]], n.dims);
    out_.calls.push({i, signature_of(n, l), out_.args.count, n.inputs + 1, l.rows});
    out_.args.push(i);
    for (int e = n.first, end = e + n.inputs; e < end; ++e) out_.args.push(v_.edges[e]);
  }

  constexpr int signature_of(const node& n, const lowering& l) {
    unsigned at = hash_of(n, l) & mask_;
    for (; table_.first[static_cast<int>(at)] >= 0; at = (at + 1) & mask_)
      if (same_kernel(out_.signatures.first[table_.first[static_cast<int>(at)]], n, l, v_))
        return table_.first[static_cast<int>(at)];
    signature s;
    s.op = n.op, s.types[0] = n.type;
    for (int i = 0; i < max_extents; ++i) s.dims[i] = l.dims[i];
    if (n.op->is(trait::expression))
      s.formula = v_.expressions[l.dims[expression_place]];
    else
      for (int i = 1; i < max_types && i <= n.inputs; ++i) s.types[i] = v_.nodes[v_.edges[n.first + i - 1]].type;
    table_.first[static_cast<int>(at)] = out_.signatures.count;
    out_.signatures.push(s);
    return out_.signatures.count - 1;
  }
};

// With `reuse` a tensor's memory is used again after its last reader, which is right for one thread, because it runs
// calls in order. Without it every tensor has its own memory, as concurrent calls need. With `release` gradients have
// slots.
constexpr program plan(const graph_parts& p, bool reuse = true, bool release = false) {
  return planning(p, reuse, release).run();
}

}  // namespace detail

// Lays out the slots that do not live always: sets offsets[k] of each, from `base` on, and returns the end. The largest
// comes first, each at the lowest place that fits between those alive with it; in practice the size is that of what is
// alive at once at the worst moment, seldom a few per cent more. size(k) returns the bytes of slot k, rounded up to its
// alignment. `order` has room for 2 n numbers.
template <class Size, class Offsets, class Order>
constexpr std::size_t lay_out_slots(const slot_lifetime* lives, int n, Size size, std::size_t base, Offsets& offsets,
                                    Order& order) {
  const auto at = [](auto& x, int k) -> auto& { return x[static_cast<std::size_t>(k)]; };
  int count = 0, placed = 0;
  for (int k = 0; k < n; ++k)
    if (!lives[k].always()) at(order, count++) = k;
  if (count != 0)
    std::sort(&at(order, 0), &at(order, 0) + count, [&](int a, int b) {
      const std::size_t x = size(a), y = size(b);
      return x != y ? x > y : a < b;
    });
  std::size_t end = base;
  for (int i = 0; i < count; ++i) {
    const int k = at(order, i);
    const std::size_t bytes = size(k);
    std::size_t here = base;
    for (int j = n; j < n + placed; ++j) {  // these are in order of their offsets
      const int o = at(order, j);
      if (at(offsets, o) >= here + bytes) break;
      if (lives[o].meets(lives[k]) && at(offsets, o) + size(o) > here) here = at(offsets, o) + size(o);
    }
    at(offsets, k) = here;
    int j = n + placed++;
    for (; j > n && at(offsets, at(order, j - 1)) > here; --j) at(order, j) = at(order, j - 1);
    at(order, j) = k;
    if (here + bytes > end) end = here + bytes;
  }
  return end;
}

}  // namespace gradus
