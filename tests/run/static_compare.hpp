// A static stepper beside one on the heap: equal loss and equal state, bit for bit, after every step.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/stepper.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace static_test {
using namespace gradus;

// 8x8 images: a convolution, a pool, two dense layers.
inline constexpr auto images = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8, 8, 1}), y = g.placeholder("y", {batch, 3});
  auto h = relu(conv2d(x, {.filters = 4, .kernel_size = 3, .padding = padding::same, .name = "conv"}));
  h = reshape(max_pool(h, {.pool_size = 2, .strides = 2}), {batch, 64});
  const auto out = dense(tanh(dense(h, {.units = 6, .name = "hidden"})), {.units = 3, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)),
                    .metrics = {{"error", metrics::mean(abs(out - y))}},
                    .predictions = {{"out", out}, {"bias", identity(g.variable("seen", {2}, {.local = true})) + 1}}};
};
// Where every sum is a chain, whether of one example or of several: no product of one row has at most 16 columns and 8
// or more terms (docs/arithmetic.md).
inline constexpr auto layers = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 7}), y = g.placeholder("y", {batch, 3});
  const auto h = tanh(dense(x, {.units = 6, .name = "hidden"}));
  const auto out = dense(h, {.units = 3, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
// Random numbers, and a gradient that reaches one variable twice.
inline constexpr auto noisy = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 3});
  const auto w = g.variable("w", {4, 4});
  const auto h = dropout(tanh(matmul(tanh(matmul(x, w)), w)), 0.25);
  const auto out = dense(h, {.units = 3, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)) + 0.01 * reduce_mean(square(w)),
                    .metrics = {},
                    .predictions = {{"out", out}}};
};

struct remembered {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> values;
  bool operator==(const remembered&) const = default;
};
template <class Stepper>
remembered remember(Stepper& s) {
  state_list list;
  s.remembers(list);
  remembered all;
  for (const auto& e : list.entries()) {
    all.names.push_back(e.name + " " + std::string(name_of(e.type)) + " " + to_text(e.dims));
    all.values.emplace_back(e.bytes.begin(), e.bytes.end());
  }
  return all;
}
inline void draw(std::span<float> x, random_stream& stream) {
  for (float& v : x) v = static_cast<float>(stream.below(2048)) / 1024 - 1;  // exact
}

// Feeds both the same batches; the heap's is s.batch_size examples.
template <class Static, class Heap>
void step_both(Static& s, Heap& h, random_stream& stream) {
  auto& m = h.template bound<mode::train>(Static::batch_size);
  draw(s.template input<"x">(), stream), draw(s.template input<"y">(), stream);
  h.template placeholders<mode::train>([&](const placeholder_info& p) {
    const auto put = [&](auto values) { std::memcpy(m.address(p.node), values.data(), values.size_bytes()); };
    p.name == "x" ? put(std::span<float>(s.template input<"x">())) : put(std::span<float>(s.template input<"y">()));
  });
  s.step(), h.train_step();
}
// Settings: of the stepper on the heap.
template <auto Build, class Arithmetic, class Static, class Settings, class... Update>
void same_bits(Static& s, int steps, const Settings& settings, Update... policies) {
  using update = composed<Update...>;
  using model = compiled_model<Build, cpu<Arithmetic>, gating::op, update::needs_norm, true>;
  stepper<model, update, cpu<Arithmetic>, serial, Settings> h(model{}, update(policies...), serial{}, settings);
  h.allocate();
  h.initialize(5), s.initialize(5);
  random_stream stream{.seed = 3};
  for (int i = 0; i < steps; ++i) {
    CAPTURE(i);
    step_both(s, h, stream);
    const float mine = s.loss(), wanted = h.template output_of<mode::train>(output::loss).template as<float>()[0];
    REQUIRE(std::memcmp(&mine, &wanted, sizeof mine) == 0);
    REQUIRE(remember(s) == remember(h));
  }
}
}  // namespace static_test
