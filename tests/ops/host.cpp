#include "refusal.hpp"

#include <gradus/ops/host.hpp>

using namespace gradus;
using refusal_test::check;

namespace {
void scale(std::span<float> y, std::span<const float> x, std::span<const std::int32_t> by) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * static_cast<float>(by[0]);
}
void scale_gradient(std::span<float> dx, std::span<const float> dy, std::span<const float>,
                    std::span<const std::int32_t> by) {
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] * static_cast<float>(by[0]);
}
}  // namespace

// The signature of the function is the op's: operands, dtypes; extents are the first operand's, or given.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), n = g.placeholder("n", {}, int32);
  const value y = host_call<&scale>({x, n}), z = host_call<&scale>({x, n}, {batch});
  return y.dims() == shape{batch, 3} && y.type() == float32 && z.dims() == shape{batch} &&
         g.nodes[y.id].op == &host_op<&scale> && host_op<&scale>.operands == 2 && host_op<&scale>.is(trait::blocks);
}());
// With a gradient function the gradient is an op of the same kind: dy, then the operands.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), n = g.placeholder("n", {}, int32),
              dy = g.placeholder("dy", {batch, 3});
  const value y = host_call<&scale, &scale_gradient, nullptr>({x, n});
  gradient_value to[2];
  const char wanted[2] = {1, 1};
  backward b{g, y.id, dy, to, wanted};
  g.nodes[y.id].op->gradient(b);
  const node& n0 = g.nodes[to[0].dense.id];
  return !to[1] && n0.op == &host_op<&scale_gradient> && n0.dims == x.dims() && g.edges[n0.first] == dy.id &&
         g.edges[n0.first + 1] == x.id && g.edges[n0.first + 2] == n.id &&
         !host_op<&scale, &scale_gradient>.is(trait::blocks);
}());

TEST_CASE("what host calls refuse") {
  check<[](graph& g) {
    host_call<&scale>({g.placeholder("x", {3}), g.placeholder("n", {})});
  }>("HostCall: operand 1 of the host function is a span of int32, got float32 (x[3], n[])");
  check<[](graph& g) { host_call<&scale>({g.placeholder("x", {3})}); }>("HostCall: takes 2 operands, got 1");
  check<[](graph& g) { check_between(g.placeholder("x", {3}, int32), 0, 1); }>(
      "CheckBetween: takes float32 or float64, got int32 (x[3], [], [])");
}
