#include <gradus/graph/rules.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
struct scale_attr {
  int factor;
};
inline constexpr card scale_card{
    .name = "Scale", .operands = 2, .infer = [](inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }};
}  // namespace

TEST_CASE("a gradient rule sees operands, result and attributes, and says what each operand gets") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), w = g.variable("w", {3});
  const value y = g.add_with(scale_card, {x, w}, scale_attr{5});
  const value dy = g.constant(1, float32, {3});
  gradient_value got[2];
  const char wanted[] = {1, 0};
  backward b{g, y.id, dy, got, wanted};
  CHECK(b.operands() == 2);
  CHECK(b.in(0).id == x.id);
  CHECK(b.in(1).id == w.id);
  CHECK(b.out().id == y.id);
  CHECK(b.wants(0));
  CHECK_FALSE(b.wants(1));
  CHECK(b.attributes<scale_attr>().factor == 5);
  b.to(0, dy);
  b.to_rows(1, dy, x);
  CHECK((got[0] && !got[0].sparse() && got[0].dense.id == dy.id));
  CHECK((got[1] && got[1].sparse() && got[1].values.id == dy.id && got[1].indices.id == x.id));
}

TEST_CASE("a lowering sees shapes, types and attributes of one node") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}, int32), w = g.variable("w", {3});
  const value y = g.add_with(scale_card, {x, w}, scale_attr{5});
  const graph_view v = g.view();
  lowering l{v, v.nodes[y.id]};
  CHECK(l.out() == shape{batch, 3});
  CHECK(l.in(1) == shape{3});
  CHECK(l.in_type(0) == int32);
  CHECK(l.attributes<scale_attr>().factor == 5);
  CHECK(l.rows == 0);
}
