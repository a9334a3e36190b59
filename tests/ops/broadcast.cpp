#include <gradus/ops/broadcast.hpp>

#include "refusal.hpp"

#include "compute.hpp"

using namespace gradus;
using ops_test::compute;
using refusal_test::check;

static_assert([] {
  const auto fits = [](const shape& a, const shape& b, const shape& both) {
    shape out, back;
    return detail::broadcast(a, b, out) && out == both && detail::broadcast(b, a, back) && back == both;
  };
  shape out;
  return fits({2, 3}, {3}, {2, 3}) && fits({2, 1}, {3}, {2, 3}) && fits({}, {4}, {4}) &&
         fits({batch, 1}, {1, 5}, {batch, 5}) && fits({1}, {batch}, {batch}) && !detail::broadcast({2}, {3}, out) &&
         !detail::broadcast({batch}, {3}, out) && !detail::broadcast({batch}, {2 * batch}, out);
}());
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 4, 6});
  return reshape(x, {batch, 24}).dims() == shape{batch, 24} &&
         reshape(x, {4 * batch, 6}).dims() == shape{4 * batch, 6} && reshape(x, x.dims()).id == x.id &&
         sum_to(x, {6}).dims() == shape{6} && sum_to(x, {4, 1}).dims() == shape{4, 1} &&
         sum_to(x, x.dims()).id == x.id && broadcast_to(g.constant(1), {batch, 2}).dims() == shape{batch, 2} &&
         g.refusal.empty();
}());

TEST_CASE("sums over axes, against plain loops; sum_to undoes broadcasting") {
  ops_test::draw random;
  const auto x = random.between<double>(-1, 1, 3 * 4 * 5);
  graph g;
  const value v = g.placeholder("x", {batch, 4, 5}, float64);
  for (int mask = 0; mask < 8; ++mask) {
    CAPTURE(mask);
    const auto y = compute<double>(g, detail::reduce(cards::sum, v, mask, false), {{v, x}});
    std::vector<double> expected((mask & 1 ? 1u : 3u) * (mask & 2 ? 1u : 4u) * (mask & 4 ? 1u : 5u), 0.0);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 4; ++j)
        for (std::size_t k = 0; k < 5; ++k) {
          const std::size_t a = mask & 1 ? 0 : i, b = mask & 2 ? 0 : j, c = mask & 4 ? 0 : k;
          expected[(a * (mask & 2 ? 1u : 4u) + b) * (mask & 4 ? 1u : 5u) + c] += x[(i * 4 + j) * 5 + k];
        }
    REQUIRE(y.size() == expected.size());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(ops_test::near(y[i], expected[i], 1e-14));
  }
  const auto rows = compute<double>(g, sum_to(broadcast_to(g.constant({1, 2}, {2, 1}, float64), {3, 2, 4}), {2, 1}));
  CHECK(rows == std::vector<double>{12, 24});
}

TEST_CASE("zeros_like and ones_like: shape and dtype of another, none of its numbers, no gradient") {
  for (const dtype type : {float32, float64, int32, int64}) {
    graph g;
    const value x = g.placeholder("x", {batch, 2}, type), zero = zeros_like(x), one = ones_like(x);
    CHECK(zero.dims() == x.dims());
    CHECK(one.type() == type);
    session s{g};
    const auto check = [&]<class T>(T number) {
      const std::vector<T> fed(6, number);
      const auto r = s.run({zero, one}, {{"x", const_tensor_view(std::span<const T>(fed), extents{3, 2})}});
      for (const T v : r[0].as<T>()) CHECK(v == 0);
      for (const T v : r[1].as<T>()) CHECK(v == 1);
      CHECK(r[0].dims == extents{3, 2});
    };
    if (type == float32) check(std::numeric_limits<float>::quiet_NaN());
    if (type == float64) check(std::numeric_limits<double>::quiet_NaN());
    if (type == int32) check(std::int32_t{7});
    if (type == int64) check(std::int64_t{7});
  }
  graph g;
  const value w = g.variable("w", {2});
  const std::array sums{reduce_sum(ones_like(w) + zeros_like(w))}, to{w};
  CHECK(!gradients(g, sums, to)[0].dense);
}
TEST_CASE("views change no number") {
  graph g;
  const value v = g.placeholder("x", {batch, 2, 2});
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(compute<float>(g, reshape(v, {2 * batch, 2}), {{v, x}}) == x);
  CHECK(compute<float>(g, identity(v), {{v, x}}) == x);
  CHECK(compute<float>(g, stop_gradient(v), {{v, x}}) == x);
}

TEST_CASE("what views and sums refuse") {
  check<[](graph& g) {
    reshape(g.placeholder("x", {batch, 4}), {batch, 5});
  }>("Reshape: cannot see [batch, 4] as [batch, 5]: the number of elements differs (x[batch, 4])");
  check<[](graph& g) { broadcast_to(g.placeholder("x", {2}), {3}); }>("BroadcastTo: cannot broadcast to [3] (x[2])");
}
