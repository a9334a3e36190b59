// The model of tests/edge/c_header.cpp. tests/run/c_header.cpp holds model.h, beside this file, to what c_header writes
// of it.
#pragma once
#include <gradus/ops/frozen.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>

inline constexpr gradus::frozen_conv2d_weights<3, 3, 1, 2> exported_body{
    .codes = {127, -3, 0, 64, -127, 12, 9, 127, 33, -90, -64, 1, 5, 77, 100, -127, -20, 44},
    .scales = {0.01f, 0.004f},
    .bias = {0.25f, -0.125f}};

inline constexpr auto exported_model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 6, 6, 1});
  auto h = frozen_conv2d<exported_body>(x, {.padding = padding::same, .activation = relu});
  h = conv2d(h, {.filters = 3, .padding = padding::same, .name = "conv", .activation = relu});
  h = max_pool(h);
  h = dense(reshape(h, {batch, 27}), {.units = 6, .name = "hidden", .activation = tanh});
  const auto y = softmax(dense(h, {.units = 4, .name = "logits"}));
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
