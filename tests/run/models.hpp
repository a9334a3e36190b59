// Three models of every kind of layer, and a run of them that ends in bytes: losses, variables, mirrors, outputs.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/adam.hpp>

#include <cstring>
#include <vector>

namespace run_test {
using namespace gradus;

inline constexpr auto mlp = [](graph& g) {
  auto x = g.placeholder("x", {batch, 13});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = tanh(dense(x, {.units = 16, .name = "hidden"}));
  auto r = h + sigmoid(dense(h, {.units = 16}));
  auto logits = dense(r, {.units = 5, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  return model_spec{.loss = loss,
                    .metrics = {{"accuracy", metrics::accuracy(label, argmax(logits))}},
                    .predictions = {{"p", softmax(logits)}}};
};
inline constexpr auto convnet = [](graph& g) {
  auto image = g.placeholder("image", {batch, 8, 8, 3});
  auto label = g.placeholder("label", {batch}, int32);
  auto x = relu(conv2d(image, {.filters = 6, .padding = padding::same}));
  x = max_pool(batch_norm(x), {.pool_size = 2, .strides = 2});
  x = leaky_relu(conv2d(x, {.filters = 5, .kernel_size = 2, .strides = 1}));
  x = dropout(avg_pool(x, {.pool_size = 2, .strides = 1}), 0.25);
  auto logits = dense(flatten(x), {.units = 5, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"p", softmax(logits)}}};
};
inline constexpr auto gpt = [](graph& g) {
  constexpr int time = 6, width = 16, letters = 11;
  auto token = g.placeholder("token", {batch, time}, int32);
  auto next = g.placeholder("next", {batch, time}, int32);
  auto x = embedding(token, {.input_dim = letters, .output_dim = width});
  x = x + g.variable("position", {time, width}, {.init = random_normal(0, 0.02f)});
  x = x + multi_head_attention(layer_norm(x), {.heads = 2, .dropout_rate = 0.1});
  x = x + dense(gelu(dense(layer_norm(x), {.units = 32, .name = "up"})), {.units = width, .name = "down"});
  auto logits = dense(layer_norm(x), {.units = letters, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, next));
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"logits", logits}}};
};

struct numbers {
  std::uint32_t state = 1;
  std::uint32_t operator()(std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 9) % below;
  }
};
template <class Stepper, mode M>
void fill(Stepper& s, std::int64_t batch_size, std::uint32_t seed) {
  auto& m = s.template bound<M>(batch_size);
  numbers draw{seed};
  s.template placeholders<M>([&](placeholder_info p) {
    const auto n = static_cast<std::size_t>(count(resolve(p.dims, batch_size)));
    std::byte* to = m.address(p.node);
    for (std::size_t i = 0; i < n; ++i) {
      if (p.type == float32)
        reinterpret_cast<float*>(to)[i] = static_cast<float>(draw(2001)) / 1000.0f - 1.0f;
      else
        reinterpret_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(draw(p.name == "label" ? 5 : 11));
    }
  });
}

using bytes = std::vector<std::byte>;
inline void take(bytes& to, const tensor_view& v) { to.insert(to.end(), v.data, v.data + v.size_bytes()); }

// Six steps of Adam and an evaluation; everything that must not depend on how it was run.
template <class Optimizer, class Executor, class Model>
bytes train(Model model, std::int64_t batch_size, Optimizer update, const Executor& executor = {}) {
  stepper<Model, Optimizer, cpu<fast>, Executor> s(std::move(model), std::move(update), executor);
  s.template declare<mode::evaluate>();
  s.allocate();
  s.initialize(7);
  bytes out;
  for (std::uint32_t i = 0; i < 6; ++i) {
    fill<decltype(s), mode::train>(s, batch_size, i + 1);
    s.train_step();
    take(out, s.template output_of<mode::train>(output::loss));
  }
  for (std::size_t i = 0; i < s.variables().size(); ++i) {
    take(out, s.variables().view(i));
    for (std::size_t k = 0; s.variables().info(i).trainable && k < Optimizer::mirror_count; ++k)
      take(out, s.variables().mirror_view(k, i));
  }
  fill<decltype(s), mode::evaluate>(s, batch_size, 99);
  s.template forward<mode::evaluate>();
  take(out, s.template output_of<mode::evaluate>(output::loss));
  take(out, s.template output_of<mode::evaluate>(output::prediction));
  return out;
}

}  // namespace run_test
