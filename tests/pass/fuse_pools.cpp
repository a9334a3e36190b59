#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/fuse_pools.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
constexpr int nodes_of(const graph& g, const card& op) {
  int n = 0;
  for (const node& k : g.nodes) n += k.op == &op;
  return n;
}
struct counts {
  int forward, filter, bias, dense, convolutions, pools;
  constexpr bool operator==(const counts&) const = default;
};
constexpr counts counts_of(const graph& g) {
  return {nodes_of(g, cards::conv2d_pool),      nodes_of(g, cards::conv2d_pool_filter),
          nodes_of(g, cards::conv2d_pool_bias), nodes_of(g, cards::conv2d_unpool),
          nodes_of(g, cards::conv2d),           nodes_of(g, cards::max_pool)};
}
constexpr bool lawful(const graph& g) { return broken_law(parts_of(g)) == nullptr; }

// What becomes of net(g, images), trained on the mean of its result; in mode predict, of the forward pass.
template <class Net>
constexpr counts fused(Net net, mode what = mode::train) {
  const auto model = [&](graph& g) {
    const value y = net(g, g.placeholder("x", {batch, 12, 12, 2}));
    return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", reduce_mean(y)}}};
  };
  graph g(what);
  build_into(g, model);
  if (what == mode::train) g = minimize(parts_of(g), {});
  const graph alive = remove_dead(parts_of(g));
  const graph all = fuse_pools(parts_of(alive));
  return lawful(all) ? counts_of(all) : counts{};
}
constexpr conv2d_options three{.filters = 4, .kernel_size = 3, .name = "c"};
constexpr counts untouched{0, 0, 0, 0, 1, 1};
}  // namespace

TEST_CASE("what is fused") {
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three))); }) == counts{1, 1, 1, 0, 0, 0});
  CHECK(fused([](graph&, value x) { return max_pool(conv2d(x, three)); }) == counts{1, 1, 1, 0, 0, 0});
  CHECK(fused([](graph& g, value x) {
          return max_pool(relu(conv2d(x, g.variable("w", {3, 3, 2, 5}))));
        }) == counts{1, 1, 0, 0, 0, 0});
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three))); }, mode::predict) ==
        counts{1, 0, 0, 0, 0, 0});
  // The gradient of a convolution that the layer below needs is made, and the others read it.
  CHECK(fused([](graph&, value x) {
          return max_pool(
              relu(conv2d(max_pool(relu(conv2d(x, three))), {.filters = 2, .kernel_size = 2, .name = "d"})));
        }) == counts{2, 1, 1, 1, 0, 0});
  // Nothing is differentiated: the filters are constants.
  CHECK(fused([](graph& g, value x) {
          return max_pool(conv2d(x, g.constant(1, float32, {3, 3, 2, 5}))) * g.variable("s", {5});
        }) == counts{1, 0, 0, 0, 0, 0});
  // Windows that do not reach the last row and column.
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three)), {.pool_size = 3}); }) ==
        counts{1, 1, 1, 0, 0, 0});
}

TEST_CASE("what stays as it is: another reader, overlapping or padded windows, a bias of another shape") {
  CHECK(fused([](graph&, value x) {
          const value h = relu(conv2d(x, three));
          return max_pool(h) + reduce_mean(h);
        }) == untouched);
  CHECK(fused([](graph&, value x) {
          const value h = conv2d(x, three);
          return max_pool(relu(h)) + reduce_mean(h);
        }) == untouched);
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three)), {.pool_size = 3, .strides = 2}); }) ==
        untouched);
  CHECK(fused([](graph&, value x) {  // as many windows as would lie side by side, and yet they overlap
          return max_pool(relu(conv2d(x, {.filters = 2, .kernel_size = 7, .name = "c"})),
                          {.pool_size = 3, .strides = 2});
        }) == untouched);
  CHECK(fused([](graph&, value x) {
          return max_pool(relu(conv2d(x, three)), {.pool_size = 3, .padding = padding::same});
        }) == untouched);
  CHECK(fused([](graph& g, value x) {
          return max_pool(relu(conv2d(x, g.variable("w", {3, 3, 2, 5})) + g.variable("b", {10, 10, 5})));
        }) == untouched);
  CHECK(fused([](graph&, value x) { return max_pool(tanh(conv2d(x, three))); }) == untouched);
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three)), {.pool_size = 1, .strides = 1}); }) ==
        untouched);  // a byte for each number would only be added
  CHECK(fused([](graph&, value x) { return max_pool(relu(conv2d(x, three)), {.pool_size = 9, .strides = 9}); }) ==
        untouched);  // more places than a byte and the kernel's stack are meant for
  CHECK(fused([](graph&, value x) {
          const value h = relu(conv2d(x, three));
          return max_pool(h) + max_pool(h);
        }).forward == 0);
  for (const int waits : {0, 1, 2})  // the sum with the bias, the relu or the convolution waits for another op
    CHECK(fused([waits](graph& g, value x) {
            const value n = g.variable("n", {}, {.init = zeros, .trainable = false});
            const value counts = assign_add(n, g.constant(1)), w = g.variable("w", {3, 3, 2, 5});
            const auto when = [&](bool it, auto make) {
              if (!it) return make();
              const auto s = g.control_dependencies({counts});
              return make();
            };
            const value c = when(waits == 2, [&] { return conv2d(x, w); });
            const value sum = when(waits == 0, [&] { return c + g.variable("b", {5}); });
            return max_pool(when(waits == 1, [&] { return relu(sum); }));
          }) == untouched);
}

TEST_CASE("what the model shows stays in memory") {
  const auto shown = [](bool show) {
    graph g(mode::predict);
    build_into(g, [&](graph& of) {
      const value h = relu(conv2d(of.placeholder("x", {batch, 12, 12, 2}), three)), y = max_pool(h);
      return model_spec{.loss = reduce_mean(y), .metrics = {}, .predictions = {{"h", show ? h : y}, {"y", y}}};
    });
    return fuse_pools(parts_of(g));
  };
  CHECK(counts_of(shown(true)).forward == 0);
  const graph seen = shown(false);
  CHECK(counts_of(seen).forward == 1);
  for (const output& o : seen.outputs)
    if (o.kind == output::prediction) CHECK(seen.nodes[o.node].op == &cards::pooled_values);
}

// By the compiler.
constexpr auto one = [](graph&, value x) { return max_pool(relu(conv2d(x, three))); };
static_assert(fused(one) == counts{1, 1, 1, 0, 0, 0});
