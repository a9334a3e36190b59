#include <gradus/graph/law.hpp>
#include <gradus/ops/attention.hpp>
#include <gradus/pass/autodiff.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace gradus;

namespace {
constexpr auto attended = [](graph& g) {
  const value packed = g.placeholder("packed", {batch, 5, 24});
  g.add_output(output::fetch, "y", self_attention(packed, {.heads = 2, .causal = true}));
};
static_assert([] {
  graph g;
  attended(g);
  return g.nodes[g.outputs[0].node].dims == shape{batch, 5, 8} && broken_law(parts_of(g)) == nullptr;
}());
constexpr bool refuses(const shape& dims, int heads) {
  graph g;
  g.keeps_refusal = true;
  self_attention(g.placeholder("packed", dims), {.heads = heads});
  return !g.refusal.empty();
}
static_assert(!refuses({batch, 5, 24}, 2) && !refuses({batch, 5, 24}, 8));
static_assert(refuses({batch, 5, 25}, 1) && refuses({batch, 5, 24}, 3) && refuses({batch, 5, 24}, 0) &&
              refuses({5, 24}, 2) && refuses({batch, 5, 3 * 129}, 1));
}  // namespace

TEST_CASE("the gradient has the operand's extents") {
  graph g;
  const value packed = g.placeholder("packed", {batch, 5, 24});
  const value y = self_attention(packed, {.heads = 2});
  const std::array<value, 1> loss{reduce_sum(y)};
  const std::array<value, 1> at{packed};
  const auto dx = gradients(g, loss, at);
  CHECK(dx[0].dense.dims() == shape{batch, 5, 24});
  CHECK(broken_law(parts_of(g)) == nullptr);
}
