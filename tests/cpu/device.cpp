#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>

using namespace gradus;

namespace {
constexpr card unknown_card{"Unknown", 1};
// What a graph of another shared library has, if that library hides its symbols: the same card at another address.
constexpr card hidden_card = cards::matmul;
}

TEST_CASE("the registry knows the built-in ops, and says what to do about others") {
  using registry = cpu<fast>::registry<>;
  CHECK((registry::find(&cards::matmul).run != nullptr));
  CHECK((registry::find(&cards::add).run == nullptr));  // a formula, part of a fused sweep
  CHECK((registry::find(&cards::add).chunk[cpu<fast>::type_index(int32)] != nullptr));
  CHECK((registry::find(&cards::exp).chunk[cpu<fast>::type_index(int32)] == nullptr));  // not defined for integers
  CHECK_THROWS_WITH_AS(registry::find(&unknown_card), doctest::Contains("the interpreter has no kernel for Unknown"),
                       unimplemented);
  CHECK_THROWS_WITH_AS(registry::find(&hidden_card), doctest::Contains("let the shared library that builds a graph"),
                       unimplemented);
}

TEST_CASE("kernels of the longest ops are found once the program has added one, and all of them by a name") {
  using registry = cpu<fast>::registry<>;
#if GRADUS_KERNELS_BY_USE
  CHECK_THROWS_WITH_AS(registry::find(&cards::depthwise_conv2d), doctest::Contains("in the file that adds it"),
                       unimplemented);
  CHECK_THROWS_WITH_AS(registry::find(&cards::remember), doctest::Contains("by its function"), unimplemented);
#endif
  graph g;
  const value images = g.placeholder("images", {batch, 4, 4, 2});
  const value y = depthwise_conv2d(images, {.kernel_size = 3});
  CHECK((y.dims() == shape{batch, 2, 2, 2}));
  CHECK((registry::find(&cards::depthwise_conv2d).run != nullptr));
  CHECK((registry::find(&cards::depthwise_conv2d_filter).run != nullptr));  // its gradient
  CHECK((cpu<portable>::registry<>::find(&cards::conv2d).run != nullptr));  // of another arithmetic all are there

  CHECK((registry::named("LayerNorm") == &cards::layer_norm));
  for (const card* op : {&cards::conv2d, &cards::max_pool_grad, &cards::attention_mix, &cards::remember,
                         &cards::cached_mix, &cards::layer_norm_grads})
    CHECK((registry::find(op).run != nullptr));
  CHECK((registry::named("Unknown") == nullptr));
}
