// What a kernel of a fused node is told, lowered from graphs that pass/fuse.hpp made.
#include <gradus/ops/fused.hpp>
#include <gradus/pass/plan.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
template <auto Build>
constexpr detail::signature lowered(const card& op) {
  graph g;
  Build(g);
  const graph fused = fuse(parts_of(g));
  const detail::program p = detail::plan(parts_of(fused));
  for (int i = 0; i < p.signatures.count; ++i)
    if (p.signatures[i].op == &op) return p.signatures[i];
  return {};
}
constexpr auto layer = [](graph& g) {
  const value x = g.placeholder("x", {batch, 3});
  g.add_output(output::fetch, "y",
               tanh(matmul(x, g.variable("w", {5, 3}), {.transpose_b = true}) + g.variable("b", {5})));
};
// A product's own extents, then the formulas: no number of an expression, so that graphs share kernels.
static_assert([] {
  const detail::signature s = lowered<layer>(cards::fused_matmul);
  return s.op == &cards::fused_matmul && s.dims[0] == 1 && s.dims[1] == batch && s.dims[2] == 3 && s.dims[3] == 5 &&
         s.dims[4] == 0 && s.dims[5] == 1 && s.dims[detail::expression_place] == 0 && s.formula.steps == 2;
}());
template <int... Axes>
constexpr auto added = [](graph& g) {
  g.add_output(output::fetch, "y", reduce_sum(exp(g.placeholder("x", {batch, 3, 4})), {Axes...}));
};
constexpr bool reduces(const detail::signature& s, int rows, int columns, int sums_rows) {
  return s.op == &cards::fused_reduction && s.dims[0] == rows && s.dims[1] == columns && s.dims[2] == sums_rows &&
         s.dims[3] == 0 && s.formula.loops == 2;
}
static_assert(reduces(lowered<added<2>>(cards::fused_reduction), 3 * batch, 4, 0));
static_assert(reduces(lowered<added<1, 2>>(cards::fused_reduction), batch, 12, 0));
static_assert(reduces(lowered<added<0>>(cards::fused_reduction), batch, 12, 1));
static_assert(reduces(lowered<added<0, 1, 2>>(cards::fused_reduction), 1, 12 * batch, 0));
}  // namespace

TEST_CASE("the same at run time") {
  CHECK(reduces(lowered<added<0, 1>>(cards::fused_reduction), 3 * batch, 4, 1));
  CHECK(lowered<layer>(cards::fused_matmul).dims[3] == 5);
}
