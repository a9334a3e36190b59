#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/fuse.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
template <auto Build>
constexpr graph fused() {
  graph g;
  decltype(Build){}(g);  // a copy: see ops/refusal.hpp
  return fuse(parts_of(g));
}
constexpr int many(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
constexpr bool lawful(const graph& g) { return broken_law(parts_of(g)) == nullptr; }

// (x + b), tanh, times 2: one sweep.
constexpr auto three_steps = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  g.add_output(output::fetch, "y", tanh(x + g.variable("b", {4})) * 2.0);
};
static_assert([] {
  const graph g = fused<three_steps>();
  if (many(g, cards::fused) != 1 || many(g, cards::add) + many(g, cards::tanh) + many(g, cards::mul) != 0 || !lawful(g))
    return false;
  const expression& x = g.expressions[0];
  return x.steps == 3 && x.inputs == 3 && x.op[0] == &cards::add && x.op[1] == &cards::tanh && x.op[2] == &cards::mul &&
         x.loops == 2 && x.extent[0] == 0 && x.extent[1] == 4 &&  // rows, columns
         x.varies[0] == 3 && x.varies[1] == 2 &&
         x.varies[2] == 0 &&  // x along both, the bias along columns, the 2 none
         x.arg[0][0] == 0 && x.arg[0][1] == 1 && x.arg[1][0] == 3 && x.arg[2][0] == 4 && x.arg[2][1] == 2;
}());

// ---- a product in front
// x w + b, tanh, and a residual: all behind the product.
constexpr auto layer = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  const value product = matmul(x, g.variable("w", {4, 4}));
  g.add_output(output::fetch, "y", tanh(product + g.variable("b", {4})) + x);
};
static_assert([] {
  const graph g = fused<layer>();
  if (many(g, cards::fused_matmul) != 1 || many(g, cards::fused) + many(g, cards::matmul) != 0 || !lawful(g))
    return false;
  const expression& x = g.expressions[0];
  return x.inputs == 3 && x.steps == 3 && x.loops == 2 && x.varies[0] == 3 && x.varies[1] == 2 && x.varies[2] == 3 &&
         x.op[0] == &cards::add && x.arg[0][0] == 0 && x.arg[0][1] == 1;
}());
// Leading axes are rows, also of many matrices.
constexpr auto scores = [](graph& g) {
  const value q = g.placeholder("q", {batch, 3, 5}), k = g.placeholder("k", {batch, 3, 5});
  g.add_output(output::fetch, "y", matmul(q, k, {.transpose_b = true}) * 0.5);
};
static_assert(many(fused<scores>(), cards::fused_matmul) == 1 && lawful(fused<scores>()));
// A product that two read, one that is fetched, one whose residual moves along some of the rows: apart.
constexpr auto two_read_product = [](graph& g) {
  const value y = matmul(g.placeholder("x", {batch, 3}), g.variable("w", {3, 3}));
  const value a = exp(y), b = sqrt(y);
  g.add_output(output::fetch, "a", a), g.add_output(output::fetch, "b", b);
};
static_assert(many(fused<two_read_product>(), cards::matmul) == 1);
constexpr auto fetched_product = [](graph& g) {
  const value y = matmul(g.placeholder("x", {batch, 3}), g.variable("w", {3, 3}));
  g.add_output(output::fetch, "a", exp(y)), g.add_output(output::fetch, "y", y);
};
static_assert(many(fused<fetched_product>(), cards::matmul) == 1);
constexpr auto position = [](graph& g) {
  const value y = matmul(g.placeholder("x", {batch, 5, 3}), g.variable("w", {3, 2}));
  g.add_output(output::fetch, "y", y + g.variable("position", {5, 2}));
};
static_assert(many(fused<position>(), cards::matmul) == 1 && many(fused<position>(), cards::fused) == 1);
// A product of a variable that is written before the chain's end stays where it is.
constexpr auto written_product = [](graph& g) {
  const value w = g.variable("w", {3, 3});
  const value y = matmul(g.placeholder("x", {batch, 3}), w);
  assign(w, g.placeholder("new", {3, 3}));
  g.add_output(output::fetch, "y", exp(y));
};
static_assert(many(fused<written_product>(), cards::matmul) == 1);

// ---- a reduction at the end
constexpr auto mean_of_squares = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 4});
  g.add_output(output::fetch, "loss", reduce_mean(square(x - y)));
};
static_assert([] {
  const graph g = fused<mean_of_squares>();
  return many(g, cards::fused_reduction) == 1 && many(g, cards::fused) + many(g, cards::mean) == 0 && lawful(g) &&
         g.expressions[0].steps == 2 && g.expressions[0].varies[0] == 2 /* one row */;
}());
constexpr auto sums = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4, 5});
  g.add_output(output::fetch, "rows", reduce_sum(exp(x), {1, 2})),
      g.add_output(output::fetch, "columns", reduce_sum(sqrt(x), {0, 1}));
  g.add_output(output::fetch, "middle", reduce_sum(log(x), {1})),
      g.add_output(output::fetch, "most", reduce_max(abs(x)));
};
static_assert(many(fused<sums>(), cards::fused_reduction) == 2 && many(fused<sums>(), cards::sum) == 1 &&
              many(fused<sums>(), cards::fused) == 2 && lawful(fused<sums>()));
constexpr auto integers = [](graph& g) {
  g.add_output(output::fetch, "y", reduce_sum(square(g.placeholder("x", {batch}, int32))));
};
static_assert(many(fused<integers>(), cards::sum) == 1);
// A result that two read stays in memory; so does one that is fetched.
constexpr auto two_readers = [](graph& g) {
  const value x = g.placeholder("x", {batch});
  const value a = exp(x), b = sqrt(a), c = log(a);
  g.add_output(output::fetch, "b", b), g.add_output(output::fetch, "c", c);
};
static_assert(many(fused<two_readers>(), cards::fused) == 3);
constexpr auto fetched = [](graph& g) {
  const value a = exp(g.placeholder("x", {batch}));
  g.add_output(output::fetch, "a", a), g.add_output(output::fetch, "b", sqrt(a));
};
static_assert(many(fused<fetched>(), cards::fused) == 2);
// Other extents, another type: not one sweep.
constexpr auto other_extents = [](graph& g) {
  const value x = g.placeholder("x", {batch, 3}), row = g.placeholder("row", {3});
  g.add_output(output::fetch, "y", x + exp(row));
};
static_assert(many(fused<other_extents>(), cards::fused) == 2);
constexpr auto other_type = [](graph& g) {
  const value x = g.placeholder("x", {batch}, float64);
  g.add_output(output::fetch, "y", sqrt(cast(exp(x), float32)));
};
static_assert([] {
  const graph g = fused<other_type>();
  return many(g, cards::fused) == 2 && g.expressions[1].operand_type[0] == float64 &&
         g.expressions[1].type == float32 && lawful(g);
}());
// Comparisons compute in their operands' type and join a select of the same.
constexpr auto comparison = [](graph& g) {
  const value x = g.placeholder("x", {batch});
  g.add_output(output::fetch, "y", leaky_relu(x, 0.1));
};
static_assert([] {
  const graph g = fused<comparison>();
  return many(g, cards::fused) == 1 && g.expressions[0].steps == 3 && lawful(g);
}());
// Long chains are cut where an expression is full.
constexpr auto long_chain = [](graph& g) {
  value x = g.placeholder("x", {batch});
  for (int i = 0; i < 30; ++i) x = sqrt(x);
  g.add_output(output::fetch, "y", x);
};
static_assert([] {
  const graph g = fused<long_chain>();
  int steps = 0;
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::fused) steps += g.expressions[g.ints[g.nodes[i].attr]].steps;
  return many(g, cards::fused) == 3 && steps == 30 && lawful(g);
}());
// Equal chains of different layers are one expression.
constexpr auto equal_layers = [](graph& g) {
  value x = g.placeholder("x", {batch, 4});
  for (int i = 0; i < 5; ++i) x = dense(x, {.units = 4, .activation = tanh});
  g.add_output(output::fetch, "y", x);
};
static_assert([] {
  const graph g = fused<equal_layers>();
  return many(g, cards::fused_matmul) == 5 && g.expressions.count == 1 && lawful(g);
}());
// A read of a variable that is written stays where it is: it must not move behind the write with its reader.
constexpr auto written = [](graph& g) {
  const value w = g.variable("w", {2}), view = reshape(w, {1, 2});
  const value before = exp(w), before_view = exp(view);
  assign(w, g.placeholder("x", {2}));
  g.add_output(output::fetch, "a", sqrt(before)), g.add_output(output::fetch, "b", sqrt(before_view));
};
static_assert(many(fused<written>(), cards::fused) == 4);
// What an op of the same shape only waits for is there, and not in its expression.
template <bool IsProduct>
constexpr auto waited = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 4});
  const value first = IsProduct ? matmul(x, g.variable("w", {4, 4})) : exp(x);
  const auto wait = g.control_dependencies({first});
  g.add_output(output::fetch, "y", sqrt(y));
};
static_assert([] {
  const graph g = fused<waited<false>>(), product = fused<waited<true>>();
  return lawful(g) && many(g, cards::fused) == 2 && lawful(product) && many(product, cards::matmul) == 1 &&
         many(product, cards::fused) == 1;
}());
// Axes that all operands treat alike become one loop; extents of 1 vanish.
constexpr auto axes = [](graph& g) {
  const value x = g.placeholder("x", {batch, 5, 1, 6, 7}), y = g.placeholder("y", {5, 1, 1, 7});
  g.add_output(output::fetch, "y", x + y);
};
static_assert([] {
  const graph g = fused<axes>();
  const expression& x = g.expressions[0];  // batch | 5 | 6 | 7
  return x.loops == 4 && x.extent[1] == 5 && x.extent[2] == 6 && x.extent[3] == 7 && x.varies[0] == 15 &&
         x.varies[1] == 10 && lawful(g);
}());
constexpr auto no_axes = [](graph& g) { g.add_output(output::fetch, "y", exp(g.placeholder("x", {1, 1}))); };
static_assert(fused<no_axes>().expressions[0].loops == 1);
}  // namespace

// ---- rows of a table, weighted and summed
enum class but : int { nothing, rows_are_read, many_rows, other_axis, other_weights };
template <but What>
constexpr auto weighted_rows = [](graph& g) {
  constexpr int each = What == but::many_rows ? 256 : 3;
  const value ids = g.placeholder("ids", {batch, each}, int32),
              w = g.placeholder("w", {batch, each, What == but::other_weights ? 4 : 1});
  const value rows = gather(g.variable("table", {9, 4}), ids);
  g.add_output(output::fetch, "y", reduce_sum(rows * w, {What == but::other_axis ? 2 : 1}));
  if (What == but::rows_are_read) g.add_output(output::fetch, "rows", rows);
};
static_assert([] {
  const graph g = fused<weighted_rows<but::nothing>>();
  if (many(g, cards::gathered_sum) != 1 || many(g, cards::gather) + many(g, cards::mul) + many(g, cards::fused) != 0 ||
      many(g, cards::sum) != 0 || !lawful(g))
    return false;
  const node& n = g.nodes[g.nodes.count - 1];
  const int* from = g.edges.first + n.first;
  return n.op == &cards::gathered_sum && n.dims == shape{batch, 4} && g.nodes[from[0]].op == &variable_card &&
         g.nodes[from[1]].type == int32 && g.nodes[from[2]].dims == shape{batch, 3, 1};
}());
template <but What>
constexpr bool keeps_the_gather =
    many(fused<weighted_rows<What>>(), cards::gather) == 1 &&
    many(fused<weighted_rows<What>>(), cards::gathered_sum) == 0 && lawful(fused<weighted_rows<What>>());
static_assert(keeps_the_gather<but::rows_are_read>);  // something else needs them in memory
static_assert(keeps_the_gather<but::many_rows>);      // their sum may be a tree
static_assert(keeps_the_gather<but::other_axis> && keeps_the_gather<but::other_weights>);

TEST_CASE("the same at run time") {
  CHECK(fused<three_steps>().expressions[0].steps == 3);
  CHECK(lawful(fused<layer>()));
  CHECK(lawful(fused<sums>()));
  CHECK(fused<equal_layers>().expressions.count == 1);
  CHECK(lawful(fused<written>()));
  CHECK(lawful(fused<waited<false>>()));
}
