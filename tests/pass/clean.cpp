#include <gradus/ops/layer.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/minimize.hpp>

#include <gradus/graph/law.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace gradus;

namespace {
constexpr int many(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
template <auto Build>
constexpr graph merged() {
  graph g;
  decltype(Build){}(g);  // a copy: see ops/refusal.hpp
  return merge_common(parts_of(g));
}
constexpr auto equal_chains = [](graph& g) {  // before: two of each; after: one of each
  const value x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch, 2});
  const value a = tanh(x * 2.0), b = tanh(x * 2.0), c = tanh(y * 2.0), d = tanh(x * 3.0);
  g.add_output(output::fetch, "sum", a + b + c + d);
};
static_assert([] {
  const graph g = merged<equal_chains>();
  return many(g, constant_card) == 2 && many(g, cards::mul) == 3 && many(g, cards::tanh) == 3 &&
         many(g, cards::add) == 3 && broken_law(parts_of(g)) == nullptr;
}());
// The sum of a + b is now the sum of one node with itself.
static_assert([] {
  const graph g = merged<equal_chains>();
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::add) return g.edges[g.nodes[i].first] == g.edges[g.nodes[i].first + 1];
  return false;
}());

constexpr auto what_differs = [](graph& g) {  // nothing here is equal
  const value x = g.placeholder("x", {2, 2}), w = g.variable("w", {2, 2}), v = g.variable("v", {2, 2});
  value sum = matmul(x, w) + matmul(x, w, {.transpose_b = true});
  sum = sum + cast(cast(x, float64), float32);
  sum = sum + reduce_sum(x, {0}) + reduce_sum(x, {1});
  sum = sum + w + v;
  sum = sum + g.constant(1) + cast(g.constant(1, float64), float32);
  g.add_output(output::fetch, "sum", sum);
};
static_assert([] {
  graph g;
  what_differs(g);
  return merged<what_differs>().nodes.count == g.nodes.count;
}());
constexpr auto named = [](graph& g) {  // a name is a promise: it can be fetched
  const value x = g.placeholder("x", {2});
  const value a = identity(x, "first"), b = identity(x, "second");
  g.add_output(output::fetch, "a", a), g.add_output(output::fetch, "b", b);
};
static_assert(many(merged<named>(), cards::identity) == 2);

// A read before a write, and the same read after it, through every way to see a variable.
constexpr auto reads_and_writes = [](graph& g) {
  const value w = g.variable("w", {2});
  const value view = reshape(w, {1, 2});
  const value before = exp(w), before_view = exp(view);
  const value next = assign_add(w, before);
  const value after = exp(w), after_view = exp(view), of_result = exp(next);
  assign(w, after);
  const value last = exp(next);
  for (value v : {before, before_view, after, after_view, of_result, last}) g.add_output(output::fetch, "v", v);
};
static_assert(many(merged<reads_and_writes>(), cards::exp) == 6);
constexpr auto random_numbers = [](graph& g) {  // two draws are two streams
  const value a = random_uniform(g, {2}), b = random_uniform(g, {2});
  g.add_output(output::fetch, "a", a + b);
};
static_assert(many(merged<random_numbers>(), cards::random_uniform) == 2);
constexpr auto two_biases = [](graph& g) {
  const value x = g.placeholder("x", {batch, 3});
  const value y = x + g.variable("a", {3});
  g.add_output(output::loss, "loss", reduce_mean(square(y + g.variable("b", {3}))));
};
// Equal gradients of two variables: each keeps its own, for each has a place of its own in the gradient arena.
static_assert([] {
  graph g;
  two_biases(g);
  const graph m = minimize(parts_of(g), {});
  const graph d = remove_dead(parts_of(m)), c = merge_common(parts_of(d));
  int seen[2] = {-1, -1}, n = 0;
  for (int i = 0; i < c.nodes.count; ++i)
    if (c.nodes[i].op == &cards::apply) seen[n++] = c.edges[c.nodes[i].first + 1];
  return n == 2 && seen[0] != seen[1] && broken_law(parts_of(c)) == nullptr;
}());

constexpr auto half_dead = [](graph& g) {
  const value x = g.placeholder("x", {2}), unused = g.placeholder("unused", {2}), w = g.variable("w", {2});
  const value y = exp(x);
  tanh(square(unused));
  const value kept = assign_add(w, log(x));
  const value waited_for = sqrt(x);
  const value last = g.group({waited_for}, "last");
  g.add_output(output::fetch, "y", y), g.add_output(output::fetch, "last", last);
  (void)kept;
};
static_assert([] {
  graph g;
  half_dead(g);
  const graph d = remove_dead(parts_of(g)), e = remove_dead(parts_of(g), true);
  return many(d, placeholder_card) == 2 && many(d, variable_card) == 1 && many(d, cards::exp) == 1 &&
         many(d, cards::sqrt) == 1 && many(d, cards::tanh) == 0 && many(d, cards::square) == 0 &&
         many(d, cards::assign_add) == 0 && many(d, cards::log) == 0 && many(e, cards::assign_add) == 1 &&
         many(e, cards::log) == 1 && many(e, cards::tanh) == 0 && broken_law(parts_of(d)) == nullptr &&
         broken_law(parts_of(e)) == nullptr;
}());
}  // namespace

TEST_CASE("the same at run time") {
  CHECK(merged<equal_chains>().nodes.count == 2 + 2 + 3 + 3 + 3);
  CHECK(many(merged<reads_and_writes>(), cards::exp) == 6);
}
