// draws at compile time: the sizes of everything
// costs: 300
// The compiled step and the interpreter give the same bits where sizes are one, two or three: a kernel that knows its
// extents has ways of its own for few numbers. Sizes are drawn by the commit.
#include "../run/models.hpp"

#include <doctest/doctest.h>

using namespace run_test;

#ifndef GRADUS_DRAW
#define GRADUS_DRAW 1
#endif

namespace {

// One of `most` numbers from 1 on, another for each `which`.
consteval int drawn(int which, int most) {
  std::uint64_t x = GRADUS_DRAW;
  for (int i = 0; i <= which; ++i) x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u, x ^= x >> 29;
  return static_cast<int>(x >> 33) % most + 1;
}

constexpr auto pixels = [](graph& g) {
  constexpr int side = 3 + drawn(0, 4), channels = drawn(1, 3);
  auto image = g.placeholder("image", {batch, side, side, channels});
  auto label = g.placeholder("label", {batch}, int32);
  auto x = relu(conv2d(image, {.filters = drawn(2, 3), .kernel_size = drawn(3, 3), .padding = padding::same}));
  x = max_pool(batch_norm(x), {.pool_size = 2, .strides = drawn(4, 2)});
  x = tanh(conv2d(x, {.filters = drawn(5, 2), .kernel_size = drawn(6, 2), .strides = 1}));
  auto logits = dense(flatten(x), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"p", softmax(logits)}}};
};
constexpr auto letters = [](graph& g) {
  constexpr int time = drawn(7, 4), heads = drawn(8, 2), width = heads * drawn(9, 3);
  auto token = g.placeholder("token", {batch, time}, int32);
  auto next = g.placeholder("next", {batch, time}, int32);
  auto x = embedding(token, {.input_dim = 11, .output_dim = width});
  x = x + multi_head_attention(layer_norm(x), {.heads = heads});
  x = x + dense(gelu(dense(layer_norm(x), {.units = drawn(10, 4), .name = "up"})), {.units = width, .name = "down"});
  auto logits = dense(layer_norm(x), {.units = 11, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)),
                    .metrics = {},
                    .predictions = {{"logits", logits}}};
};

template <auto Build>
void same_numbers() {
  CAPTURE(GRADUS_DRAW);
  const auto update = composed{adam{.rate = 0.01}};
  for (const std::int64_t batch_size : {1, 2, 7}) {
    CAPTURE(batch_size);
    CHECK(train(compiled_model<Build, cpu<fast>, gating::op, false, true>{}, batch_size, update, serial{}) ==
          train(interpreted_model<cpu<fast>, ops<>, gating::op, false, true>{Build}, batch_size, update, serial{}));
  }
}

}  // namespace

TEST_CASE("small images: same numbers") { same_numbers<pixels>(); }
TEST_CASE("short texts of few numbers: same numbers") { same_numbers<letters>(); }
