#include "run_graph.hpp"

#include <gradus/cpu/arrange.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace gradus;
using kernel_test::lcg;
using kernel_test::places;
using kernel_test::to_shape;
using kernel_test::total;

namespace {
// Builds with one operand of these extents; axis `batched` is given as batch extent.
template <class T, class Build>
std::vector<T> apply(const std::vector<int>& dims, int batched, int batch_size, const std::vector<T>& x, Build build) {
  graph g;
  const value v = g.placeholder("x", to_shape(dims, batched, batch_size), dtype_of<T>);
  const value y = build(v);
  return kernel_test::from_bytes<T>(
      kernel_test::run(arrange_ops{}, g, y, batch_size, {{v.id, kernel_test::to_bytes(x)}}));
}
detail::transpose_attr to_perm(const std::vector<int>& p) {
  detail::transpose_attr a{};
  std::copy(p.begin(), p.end(), a.perm);
  return a;
}
template <class T>
void check_transposes(lcg& random) {
  for (int rank = 0; rank <= 5; ++rank) {
    std::vector<int> perm(static_cast<std::size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    do {
      std::vector<int> dims;
      for (int i = 0; i < rank; ++i) dims.push_back(1 + static_cast<int>(random(4)));
      const int batched = rank == 0 ? -1 : static_cast<int>(random(static_cast<std::uint32_t>(rank) + 1)) - 1;
      if (batched >= 0) dims[static_cast<std::size_t>(batched)] = 2 * (1 + static_cast<int>(random(2)));
      const auto x = kernel_test::counting<T>(total(dims));
      const auto y =
          apply<T>(dims, batched, 2, x, [&](value v) { return v.g->add_with(cards::transpose, {v}, to_perm(perm)); });
      std::vector<int> out;
      for (int p : perm) out.push_back(dims[static_cast<std::size_t>(p)]);
      bool same = y.size() == x.size();
      places(out, [&](const std::vector<int>& to) {
        std::vector<int> from(to.size());
        for (std::size_t i = 0; i < to.size(); ++i) from[static_cast<std::size_t>(perm[i])] = to[i];
        same = same && y[kernel_test::at(out, to)] == x[kernel_test::at(dims, from)];
      });
      CHECK(same);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}
}  // namespace

TEST_CASE("transpose: every permutation of up to five axes, against indices") {
  lcg random;
  check_transposes<float>(random);
  check_transposes<double>(random);
  check_transposes<std::uint8_t>(random);
  check_transposes<std::int32_t>(random);
}

TEST_CASE("slice and pad: random boxes, against indices") {
  lcg random{7};
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(random(6));
    const int batched = rank == 0 ? -1 : static_cast<int>(random(static_cast<std::uint32_t>(rank) + 1)) - 1;
    std::vector<int> dims, begin, size;
    detail::box_attr cut{}, frame{};
    for (int i = 0; i < rank; ++i) {
      const int n = i == batched ? 6 : 1 + static_cast<int>(random(4));
      const bool whole = i == batched || random(3) == 0;
      begin.push_back(whole ? 0 : static_cast<int>(random(static_cast<std::uint32_t>(n) + 1)));
      size.push_back(whole ? n : static_cast<int>(random(static_cast<std::uint32_t>(n - begin.back()) + 1)));
      dims.push_back(n);
      cut.low[i] = begin.back(), cut.high[i] = i == batched ? -2 : size.back();
      frame.low[i] = begin.back(), frame.high[i] = n - begin.back() - size.back();
    }
    const auto x = kernel_test::counting<float>(total(dims));
    const auto y = apply<float>(dims, batched, 3, x, [&](value v) { return v.g->add_with(cards::slice, {v}, cut); });
    REQUIRE(y.size() == total(size));
    bool same = true;
    places(size, [&](const std::vector<int>& to) {
      auto from = to;
      for (std::size_t i = 0; i < to.size(); ++i) from[i] += begin[i];
      same = same && y[kernel_test::at(size, to)] == x[kernel_test::at(dims, from)];
    });
    CHECK(same);

    auto framed = std::vector<float>(total(dims), -5);
    places(size, [&](const std::vector<int>& from) {
      auto to = from;
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += begin[i];
      framed[kernel_test::at(dims, to)] = y[kernel_test::at(size, from)];
    });
    const auto z = apply<float>(size, batched, 3, y, [&](value v) {
      return v.g->add_with(cards::pad, {v, v.g->constant(-5)}, frame);
    });
    CHECK(z == framed);
  }
}

TEST_CASE("slice by begin and size, and the pieces of split") {
  const auto x = kernel_test::counting<std::int64_t>(24);
  using list = std::vector<std::int64_t>;
  CHECK(apply<std::int64_t>({2, 3, 4}, 0, 2, x, [](value v) {
          return slice(v, {0, 1, 2}, {-1, 1, -1});
        }) == list{6, 7, 18, 19});
  CHECK(apply<std::int64_t>({4, 6}, -1, 1, x, [](value v) { return split<3>(v, 1)[1]; }) ==
        list{2, 3, 8, 9, 14, 15, 20, 21});
  CHECK(apply<std::int64_t>({2, 2, 6}, 1, 2, x, [](value v) { return split<2>(v, -1)[1]; }) ==
        list{3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23});
}

TEST_CASE("concat and stack, of few and of many") {
  graph g;
  const value a = g.placeholder("a", {batch, 2}), b = g.placeholder("b", {batch, 1}),
              c = g.placeholder("c", {batch, 2});
  const std::map<int, kernel_test::bytes> feeds{{a.id, kernel_test::to_bytes<float>({1, 2, 3, 4})},
                                                {b.id, kernel_test::to_bytes<float>({5, 6})},
                                                {c.id, kernel_test::to_bytes<float>({7, 8, 9, 10})}};
  const auto get = [&](value y) {
    return kernel_test::from_bytes<float>(kernel_test::run(arrange_ops{}, g, y, 2, feeds));
  };
  CHECK(get(concat({a, b}, 1)) == std::vector<float>{1, 2, 5, 3, 4, 6});
  CHECK(get(concat({b, a, b}, -1)) == std::vector<float>{5, 1, 2, 5, 6, 3, 4, 6});
  const value down = concat({a, c}, 0);
  CHECK(down.dims() == shape{2 * batch, 2});
  CHECK(get(down) == std::vector<float>{1, 2, 3, 4, 7, 8, 9, 10});
  const value deep = stack({a, c}, -1);
  CHECK(deep.dims() == shape{batch, 2, 2});
  CHECK(get(deep) == std::vector<float>{1, 7, 2, 8, 3, 9, 4, 10});
  CHECK(get(stack({a, c})) == std::vector<float>{1, 2, 3, 4, 7, 8, 9, 10});

  detail::seq<value> many;
  std::vector<float> expected;
  for (int row = 0; row < 2; ++row)
    for (int i = 0; i < 40; ++i) expected.push_back(row == 0 ? 5.0f : 6.0f);
  for (int i = 0; i < 40; ++i) many.push(b);
  CHECK(get(detail::concat(g, many.first, many.count, 1)) == expected);
}

TEST_CASE("causal_mask keeps the lower triangle of every matrix; range counts") {
  const auto x = kernel_test::counting<float>(18);
  const auto y = apply<float>({2, 3, 3}, 0, 2, x, [](value v) { return causal_mask(v, -1); });
  CHECK(y == std::vector<float>{0, -1, -1, 3, 4, -1, 6, 7, 8, 9, -1, -1, 12, 13, -1, 15, 16, 17});
  graph g;
  CHECK(kernel_test::from_bytes<double>(kernel_test::run(arrange_ops{}, g, range(g, 4, float64), 1, {})) ==
        std::vector<double>{0, 1, 2, 3});
}

TEST_CASE("a batch of no examples is no work") {
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  for (const value y : {transpose(x, {1, 0}), slice(x, {0, 1}, {-1, 2}), pad(x, {{0, 0}, {1, 1}}), concat({x, x}, 1)})
    CHECK(kernel_test::run(arrange_ops{}, g, y, 0, {{x.id, {}}}).empty());
}
