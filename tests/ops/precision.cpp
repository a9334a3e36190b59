#include <gradus/ops/precision.hpp>

#include <doctest/doctest.h>
#include <gradus/pass/autodiff.hpp>

#include "compute.hpp"
#include "refusal.hpp"

using namespace ops_test;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), y = reduce_precision(x, bfloat16);
  return y.dims() == x.dims() && y.type() == float32 && reduce_precision(cast(x, float64), float16).type() == float64 &&
         g.refusal.empty();
}());

TEST_CASE("values and gradients are those of the 16-bit type, in the tensor's own") {
  for (const dtype to : {bfloat16, float16}) {
    const std::vector<float> x{1.0f + 0x1p-9f, -0.1f, 3e38f, 1e-30f, 70000.0f},
        dy{0.3f, 1e-9f, 1, -1.0f - 0x1p-12f, 1e6f};
    graph g;
    const value a = g.placeholder("x", {5}), b = g.placeholder("dy", {5}), y = reduce_precision(a, to);
    const auto d = gradients(g, std::span(&y, 1), std::span(&a, 1), {.grad_ys = std::span(&b, 1)});
    const auto got = compute<float>(g, y, {{"x", x}, {"dy", dy}}),
               slope = compute<float>(g, d[0].dense, {{"x", x}, {"dy", dy}});
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(got[i] == (to == bfloat16 ? static_cast<float>(bfloat(x[i])) : static_cast<float>(half(x[i]))));
      CHECK(slope[i] == (to == bfloat16 ? static_cast<float>(bfloat(dy[i])) : static_cast<float>(half(dy[i]))));
    }
  }
}

TEST_CASE("what it refuses") {
  refusal_test::check<[](graph& g) { reduce_precision(g.placeholder("x", {2}), float32); }>(
      "reduce_precision: expected bfloat16 or float16, got float32");
  refusal_test::check<[](graph& g) { reduce_precision(g.placeholder("x", {2}, int32), float16); }>(
      "ReducePrecisionFloat16: takes float32 or float64, got int32; use cast (x[2])");
}
