// This header decides whether a batch can be computed in parts: for microbatch (run/microbatch.hpp) when a program
// runs, for one_by_one (run/gradient_life.hpp) when it is compiled.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <limits>

#include "../ops/arrange.hpp"
#include "../ops/gather.hpp"
#include "../ops/reduce.hpp"
#include "../ops/softmax.hpp"
#include "../ops/state.hpp"
#include "rewrite.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A node that prevents a batch from being cut into parts.
struct uncut {
  enum reasons : int { none, rows, writes } why = none;
  int node = -1;
};
// Finds, in a training graph, a gradient that comes as rows, whose sum is no array; or an op that changes variables
// while the model computes, or after an update, and would do so in every part.
constexpr uncut find_uncut(const graph_view& v) {
  seq<char> updated(v.size, 0);  // by an update, or by an op after one
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    const bool own = n.op == &cards::apply || n.op == &cards::global_norm;
    bool after = false;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) after = after || updated[v.edges[e]] != 0;
    updated[i] = after || n.op == &cards::apply;
    if (n.op == &cards::apply && n.inputs == 3) return {uncut::rows, i};
    if ((n.op->is(trait::writes) && !own) || (after && !own && !n.op->is(trait::control))) return {uncut::writes, i};
  }
  return {};
}

// How a number depends on the examples that it was computed from. if_any is a comparison that is the same for every
// number of examples above 0.
enum batch_share : char { no_example, mean_of_examples, sum_of_examples, their_number, if_any, mixture };

// Returns the share of a node that has no entry for each example, from the shares of its operands. If the result is a
// mean, the mean of the parts' results is the result of the whole batch.
constexpr batch_share share_of(const node& n, bool of_each, const char* shares, const int* operands) {
  const auto at = [&](int k) { return static_cast<batch_share>(shares[operands[k]]); };
  if (of_each)
    return n.op == &cards::mean   ? mean_of_examples
           : n.op == &cards::sum  ? sum_of_examples
           : n.op == &cards::size ? their_number
                                  : mixture;
  bool none = true;
  for (int k = 0; k < n.inputs; ++k) none = none && at(k) == no_example;
  if (none) return no_example;
  if (n.op->is(trait::view) || n.op == &cards::neg || n.op == &cards::cast || n.op == &cards::mean ||
      n.op == &cards::sum || n.op == &cards::identity || n.op == &cards::broadcast_to)
    return at(0) != if_any || n.op == &cards::identity || n.op == &cards::broadcast_to || n.op->is(trait::view)
               ? at(0)
               : mixture;
  if (n.op == &cards::select && (at(0) == no_example || at(0) == if_any)) {
    const batch_share a = at(1), b = at(2);
    if (at(0) == if_any && (a == no_example || b == no_example)) return a == no_example ? b : a;
    return a == b ? a : a <= mean_of_examples && b <= mean_of_examples ? mean_of_examples : mixture;
  }
  if (n.inputs != 2) return mixture;
  const batch_share a = at(0), b = at(1);
  if (n.op == &cards::add || n.op == &cards::sub)
    return a == b ? a : a <= mean_of_examples && b <= mean_of_examples ? mean_of_examples : mixture;
  if (n.op == &cards::mul) return b == no_example ? a : a == no_example ? b : mixture;
  if (n.op == &cards::div)
    return b == no_example ? a : a == sum_of_examples && b == their_number ? mean_of_examples : mixture;
  return mixture;
}

// Whether a batched result has, for one example, numbers of others: in memory, where an input's examples do not stand
// one after another, or by what an op computes along the batch.
constexpr bool crosses_examples(const graph_view& v, const node& n, const int* from) {
  if (n.op == &placeholder_card) return before_batch(n.dims) != 1;
  if (n.inputs == 0) return false;
  const shape& x = v.nodes[from[0]].dims;
  if (!is_batched(x)) return false;
  if (n.op == &cards::reshape) return before_batch(x) != before_batch(n.dims);
  if (n.op == &cards::gather) return x.dims[0] < 0;
  if (n.op == &cards::concat) return x.dims[v.ints[n.attr]] < 0;
  if (n.op == &cards::softmax || n.op == &cards::log_softmax) return x.back() < 0;
  return false;
}

// Returns whether this is the size of axes without the batch.
constexpr bool is_known_size(const graph_view& v, const node& n) {
  if (n.op != &cards::size) return false;
  const shape& x = v.nodes[v.edges[n.first]].dims;
  for (int k = 0; k < x.rank; ++k)
    if (x.dims[k] < 0 && (v.ints[n.attr] >> k & 1) != 0) return false;
  return true;
}

// Returns the number of a scalar constant, infinity for every other node.
constexpr double constant_number(const graph_view& v, const node& n) {
  if (n.op != &constant_card || n.attrs != 2) return std::numeric_limits<double>::infinity();
  return std::bit_cast<double>(std::array<int, 2>{v.ints[n.attr], v.ints[n.attr + 1]});
}

// Returns whether this is the number of examples (or of all their elements), no multiple of it.
constexpr bool is_number_itself(const graph_view& v, int id, const char* shares) {
  if (shares[id] != their_number) return false;
  while (v.nodes[id].op == &cards::cast || v.nodes[id].op == &cards::identity) id = v.edges[v.nodes[id].first];
  return v.nodes[id].op == &cards::size;
}

// Returns whether this is maximum(n, 1), or a comparison as n > 0 or n >= 1, of the number n of examples: it differs
// from n, or from true, only where there are none.
constexpr bool guards_against_none(const graph_view& v, const node& n, const char* shares) {
  const card &over = cards::greater, &from = cards::greater_equal, &under = cards::less, &to = cards::less_equal;
  const bool compares = n.op == &cards::equal || n.op == &cards::not_equal || n.op == &over || n.op == &from ||
                        n.op == &under || n.op == &to;
  if (n.op != &cards::maximum && !compares) return false;
  for (int k = 0; k < 2; ++k) {
    const double c = constant_number(v, v.nodes[v.edges[n.first + 1 - k]]);
    const bool holds_1 = n.op == &cards::maximum || n.op == (k == 0 ? &from : &to) || n.op == (k == 0 ? &under : &over);
    if (is_number_itself(v, v.edges[n.first + k], shares) && (c < 1 || (c == 1 && holds_1))) return true;
  }
  return false;
}

// Returns, for a model before it is differentiated, the first node that mixes examples, -1 if none does. Such a node
// computes something for each example from something of all examples, or makes a loss that is no mean over them: a sum,
// a maximum, a quotient of two sums. `of_predictions`: those for each example among what predictions are computed from.
constexpr int find_mixing(const graph_parts& p, bool of_predictions = false) {
  const graph_view& v = p.view;
  seq<char> shares(v.size, no_example), counts(v.size, 0);  // counts: the loss (the predictions) are computed from it
  int loss = -1;
  for (int i = 0; i < p.output_count; ++i)
    if (p.outputs[i].kind == (of_predictions ? output::prediction : output::loss))
      loss = p.outputs[i].node, counts[loss] = 1;
  for (int i = v.size - 1; i >= 0; --i)
    for (int e = v.nodes[i].first, end = e + v.nodes[i].inputs; counts[i] != 0 && e < end; ++e) counts[v.edges[e]] = 1;
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    const int* from = v.edges + n.first;
    bool of_each = false, of_all = false;
    for (int k = 0; k < n.inputs; ++k)
      of_each = of_each || is_batched(v.nodes[from[k]].dims),
      of_all = of_all || (shares[from[k]] != no_example &&
                          ((shares[from[k]] != their_number && shares[from[k]] != if_any) || counts[i] != 0));
    if (is_batched(n.dims)) {
      if ((of_all || crosses_examples(v, n, from)) && (!of_predictions || counts[i] != 0)) return i;
    } else {
      shares[i] = is_known_size(v, n)                        ? no_example
                  : !guards_against_none(v, n, shares.first) ? share_of(n, of_each, shares.first, from)
                  : n.op == &cards::maximum                  ? their_number
                                                             : if_any;
      if (shares[i] == mixture && counts[i] != 0 && !of_predictions) return i;
    }
  }
  return !of_predictions && loss >= 0 && shares[loss] > mean_of_examples ? loss : -1;
}

}  // namespace gradus::detail
