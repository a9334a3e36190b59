#include "divided.hpp"
#include "windows.hpp"

#include <limits>

using namespace window_test;

namespace {
template <class T>
void check_pools(problem p, lcg& random, double tolerance) {
  p.out = p.in;
  const auto channels = static_cast<std::size_t>(p.in);
  std::vector<T> x(p.x_size());
  for (auto& v : x) v = static_cast<T>(random(6)) - T(3);  // many ties, some windows all negative
  const auto dy = random.reals<T>(p.y_size());
  std::vector<double> most(p.y_size(), -1e30), sum(p.y_size(), 0.0), inside(p.y_size(), 0.0);
  std::vector<std::size_t> first(p.y_size(), 0);
  p.each([&](std::size_t to, std::size_t from, std::size_t) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double v = x[from * channels + c];
      const std::size_t t = to * channels + c;
      if (v > most[t]) most[t] = v, first[t] = from * channels + c;
      sum[t] += v, inside[t] += 1;
    }
  });
  std::vector<double> max_grad(p.x_size(), 0.0), avg_grad(p.x_size(), 0.0), mean(p.y_size());
  for (std::size_t t = 0; t < most.size(); ++t) max_grad[first[t]] += dy[t], mean[t] = sum[t] / inside[t];
  p.each([&](std::size_t to, std::size_t from, std::size_t) {
    for (std::size_t c = 0; c < channels; ++c)
      avg_grad[from * channels + c] += dy[to * channels + c] / inside[to * channels + c];
  });
  graph g;
  const value vx = g.placeholder("x", {batch, p.h, p.w, p.in}, dtype_of<T>);
  const value vdy = g.placeholder("dy", {batch, p.oh(), p.ow(), p.in}, dtype_of<T>);
  const std::map<int, kernel_test::bytes> feeds{{vx.id, to_bytes(x)}, {vdy.id, to_bytes(dy)}};
  const auto get = [&](value v) { return from_bytes<T>(kernel_test::run(kernels, g, v, p.n, feeds)); };
  const pool_options o{{p.kh, p.kw}, {p.sh, p.sw}, p.same ? padding::same : padding::valid};
  const auto gradient_of = [&](value y) {
    gradient_value contribution;
    const char wanted = 1;
    backward b{g, y.id, vdy, &contribution, &wanted};
    g.nodes[y.id].op->gradient(b);
    return get(contribution.dense);
  };
  const value highest = max_pool(vx, o), average = avg_pool(vx, o);
  REQUIRE(highest.dims() == vdy.dims());
  CHECK(farthest(get(highest), most) == 0);
  CHECK(farthest(gradient_of(highest), max_grad) <= tolerance);
  CHECK(farthest(get(average), mean) <= tolerance);
  CHECK(farthest(gradient_of(average), avg_grad) <= tolerance);
}
}  // namespace

TEST_CASE("pools and their gradients agree with plain loops") {
  lcg random{4};
  for (int i = 0; i < 60; ++i) {
    const problem p = draw(random);
    check_pools<double>(p, random, 1e-13);
    check_pools<float>(p, random, 1e-5);
  }
}

TEST_CASE("in parts: the same bits; every number of a gradient is written") {
  using namespace divided_test;
  lcg random{5};
  for (int i = 0; i < 60; ++i) {
    problem p = draw(random);
    p.out = p.in;
    if (i % 10 == 0) p.n = 0;
    const auto x = random.reals<float>(p.x_size()), dy = random.reals<float>(p.y_size());
    const auto t = {float32, float32, float32};
    bool same = true;
    same_in_parts<&cards::max_pool, float>(p.lowered(), p.n, p.y_size(), t, {x.data()}, same);
    same_in_parts<&cards::avg_pool, float>(p.lowered(), p.n, p.y_size(), t, {x.data()}, same);
    const auto most =
        same_in_parts<&cards::max_pool_grad, float>(p.lowered(), p.n, p.x_size(), t, {x.data(), dy.data()}, same);
    const auto mean = same_in_parts<&cards::avg_pool_grad, float>(p.lowered(), p.n, p.x_size(), t, {dy.data()}, same);
    CHECK(same);
    // A number that no window sees is zero, not what was there.
    std::vector<bool> seen(p.x_size() / static_cast<std::size_t>(p.in), false);
    p.each([&](std::size_t, std::size_t from, std::size_t) { seen[from] = true; });
    for (std::size_t k = 0; k < p.x_size(); ++k)
      if (!seen[k / static_cast<std::size_t>(p.in)]) {
        CHECK(std::bit_cast<std::uint32_t>(most[k]) == 0);
        CHECK(std::bit_cast<std::uint32_t>(mean[k]) == 0);
      }
  }
}

TEST_CASE("a NaN that comes first stays, one that comes later is passed over; its gradient goes to the same place") {
  using namespace divided_test;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<int> dims{0, 1, 4, 1, 1, 2, 1, 1, 2, 1, 2, 0, 0};
  const std::vector<float> x{nan, 1, 1, nan}, dy{3, 5};
  const auto t = {float32, float32, float32};
  bool same = true;
  const auto y = same_in_parts<&cards::max_pool, float>(dims, 1, 2, t, {x.data()}, same);
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 1);
  CHECK(same_in_parts<&cards::max_pool_grad, float>(dims, 1, 4, t, {x.data(), dy.data()}, same) ==
        std::vector<float>{3, 0, 5, 0});
}
