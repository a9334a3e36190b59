// The model of tests/edge/c_header.cpp. tests/run/c_header.cpp holds model.h, beside this file, to what c_header writes
// of it.
#pragma once
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>

inline constexpr auto exported_model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 6, 6, 1});
  auto h = conv2d(x, {.filters = 3, .padding = padding::same, .name = "conv", .activation = relu});
  h = max_pool(h);
  h = dense(reshape(h, {batch, 27}), {.units = 6, .name = "hidden", .activation = tanh});
  const auto y = softmax(dense(h, {.units = 4, .name = "logits"}));
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
