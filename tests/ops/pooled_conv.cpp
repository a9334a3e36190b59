// Extents and what kernels are told; the numbers are in tests/cpu/pooled_conv.cpp.
#include <gradus/ops/pooled_conv.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

namespace {
// 13x12 images of 3 channels, filters of 3x4, in steps of 2 and 1, padded: 7x12 places; a pool of 2x3 sees 6x12.
constexpr detail::pooled_conv_attr attributes{3, 4, 2, 1, 1, 2, 3, 1, 7, 12};
struct made {
  graph g;
  value x, w, b, packed, values, dy;
  explicit made(dtype t) {
    x = g.placeholder("x", {batch, 13, 12, 3}, t), w = g.variable("w", {3, 4, 3, 5}, {.type = t});
    b = g.variable("b", {5}, {.type = t});
    packed = g.add_with(cards::conv2d_pool, {x, w, b}, attributes);
    values = g.add_with(cards::pooled_values, {packed}, detail::pooled_values_attr{static_cast<int>(t), 3, 4, 5});
    dy = g.placeholder("dy", {batch, 3, 4, 5}, t);
  }
  std::vector<int> lowered(value v) const {
    const graph_view view = g.view();
    lowering l{view, g.nodes[v.id]};
    l.n.op->lower(l);
    return {l.dims, l.dims + max_extents};
  }
};
}  // namespace

TEST_CASE("extents of what is made forward and backward") {
  for (const dtype t : {float32, float64}) {
    made m(t);
    const int each = t == float32 ? 5 : 9;  // of a number and its byte
    CHECK(m.packed.type() == uint8);
    CHECK(m.packed.dims() == shape{batch, 3 * 4 * 5 * each});
    CHECK(m.values.type() == t);
    CHECK(m.values.dims() == shape{batch, 3, 4, 5});
    const value filters = m.g.add_with(cards::conv2d_pool_filter, {m.x, m.packed, m.dy}, attributes);
    const value bias = m.g.add_with(cards::conv2d_pool_bias, {m.packed, m.dy}, attributes);
    const value conv = m.g.add_with(cards::conv2d_unpool, {m.packed, m.dy}, attributes);
    CHECK(filters.dims() == shape{3, 4, 3, 5});
    CHECK(bias.dims() == shape{5});
    CHECK(conv.dims() == shape{batch, 7, 12, 5});
    for (const value v : {filters, bias, conv}) CHECK(v.type() == t);

    const std::vector<int> whole{0, 13, 12, 3, 7, 12, 5, 3, 4, 2, 1, 1, 1, 2, 3, 1};
    CHECK(m.lowered(m.packed) == whole);
    CHECK(m.lowered(filters) == whole);
    const auto of_conv = m.lowered(conv);
    CHECK(m.lowered(bias) == of_conv);
    for (const int i : {4, 5, 6, 13, 14, 15})
      CHECK(of_conv[static_cast<std::size_t>(i)] == whole[static_cast<std::size_t>(i)]);
  }
}
