#include <gradus/graph/law.hpp>
#include <gradus/ops/layer_norm.hpp>
#include <gradus/pass/autodiff.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace gradus;

namespace {
constexpr bool refuses(const shape& x, const shape& gamma) {
  graph g;
  g.keeps_refusal = true;
  const value scale = g.variable("gamma", gamma);
  normalize_rows(g.placeholder("x", x), 1e-5, &scale, nullptr);
  return !g.refusal.empty();
}
static_assert(!refuses({batch, 4}, {4}) && !refuses({batch, 3, 4}, {4}));
static_assert(refuses({batch, 4}, {5}));
}  // namespace

TEST_CASE("gradients have the operands' extents") {
  graph g;
  const value x = g.placeholder("x", {batch, 3, 4}), gamma = g.variable("gamma", {4}), beta = g.variable("beta", {4});
  const value y = normalize_rows(x, 1e-5, &gamma, &beta);
  CHECK(y.dims() == shape{batch, 3, 4});
  const std::array<value, 1> loss{reduce_sum(y)};
  const std::array<value, 3> at{x, gamma, beta};
  const auto d = gradients(g, loss, at);
  CHECK(d[0].dense.dims() == shape{batch, 3, 4});
  CHECK(d[1].dense.dims() == shape{4});
  CHECK(d[2].dense.dims() == shape{4});
  CHECK(broken_law(parts_of(g)) == nullptr);
}
