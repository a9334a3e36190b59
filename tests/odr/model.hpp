// What both units share: a model, with everything that the compiler makes of it.
#pragma once
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  auto y = g.placeholder("y", {batch}, int32);
  auto hidden = tanh(dense(x, {.units = 6, .name = "hidden"}));
  auto logits = dense(hidden, {.units = 3, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, y));
  return model_spec{
      .loss = loss, .metrics = {{"accuracy", accuracy(logits, y)}}, .predictions = {{"class", argmax(logits)}}};
};

// Where the graph, its plan and its kernels lie, and what five steps give.
struct answer {
  const void *graph, *program, *kernels;
  float loss;
};
inline answer train() {
  using namespace gradus;
  using compiled = compiled_model<model, cpu<fast>, gating::op, false, true>;
  using optimizer = decltype(composed{adam{}});
  stepper<compiled, optimizer, cpu<fast>> s(compiled{}, optimizer{adam{.rate = 0.1}});
  s.allocate();
  s.initialize(7);
  auto& m = s.bound<mode::train>(2);
  s.placeholders<mode::train>([&](placeholder_info p) {
    if (p.type == int32) return;
    for (int i = 0; i < 8; ++i) reinterpret_cast<float*>(m.address(p.node))[i] = 0.1f * static_cast<float>(i);
  });
  for (int i = 0; i < 5; ++i) s.train_step();
  const runnable r = compiled{}.get<mode::train>();
  return {r.graph.view.nodes, r.program.calls, r.kernels, s.output_of<mode::train>(output::loss).as<float>()[0]};
}

answer one();
answer two();
