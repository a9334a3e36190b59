#include <gradus/pass/recompute.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../run/models.hpp"

using namespace run_test;

namespace {
constexpr auto deep = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 32}), label = g.placeholder("y", {batch, 4});
  auto h = dense(x, {.units = 32, .name = "in"});
  for (int i = 0; i < 12; ++i) h = dropout(tanh(dense(h, {.units = 32})), 0.1);
  return model_spec{.loss = reduce_mean(squared_difference(dense(h, {.units = 4, .name = "out"}), label)),
                    .metrics = {},
                    .predictions = {}};
};
constexpr auto residual = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 16}), label = g.placeholder("y", {batch, 4});
  auto h = dense(x, {.units = 16, .name = "in"});
  for (int i = 0; i < 8; ++i) h = h + dense(relu(dense(h, {.units = 64})), {.units = 16});
  return model_spec{.loss = reduce_mean(squared_difference(dense(h, {.units = 4, .name = "out"}), label)),
                    .metrics = {},
                    .predictions = {}};
};
using descent = decltype(composed{adam{}});
template <int Segments>
using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, true, dtype::none, false, Segments>;
template <int Segments>
using free_model = interpreted_model<cpu<fast>, ops<>, gating::op, false, false, dtype::none, false, Segments>;

struct result {
  bytes state;
  memory_use memory;
  std::size_t calls = 0;
};
template <class Model, class Executor = serial>
result run(Model m, const Executor& executor = {}) {
  stepper<Model, descent, cpu<fast>, Executor> s(std::move(m), descent{adam{.rate = 0.01}}, executor);
  s.allocate();
  s.initialize(3);
  result r;
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill<decltype(s), mode::train>(s, 33, i + 1);
    s.train_step();
    take(r.state, s.template output_of<mode::train>(output::loss));
  }
  for (std::size_t i = 0; i < s.variables().size(); ++i) take(r.state, s.variables().view(i));
  r.memory = s.memory(), r.calls = s.template bound<mode::train>(33).call_count();
  return r;
}
}  // namespace

TEST_CASE("a deep network in segments: the same bits in less memory, for at most one more forward pass") {
  const result plain = run(model<0>{deep}), some = run(model<4>{deep});
  CHECK(some.state == plain.state);
  CHECK(some.calls > plain.calls);
  CHECK(some.calls < 2 * plain.calls);
  CHECK(some.memory.activations < plain.memory.activations * 3 / 4);
  const result blocks = run(model<0>{residual}), fewer = run(model<3>{residual});
  CHECK(fewer.state == blocks.state);
  CHECK(fewer.memory.activations < blocks.memory.activations * 3 / 4);
}

TEST_CASE("compiled and on threads: the same bits") {
  const result plain = run(model<0>{deep});
  CHECK(run(compiled_model<deep, cpu<fast>, gating::op, false, true, dtype::none, false, 4>{}).state == plain.state);
  CHECK(run(free_model<4>{deep}, threads{.count = 2}).state == plain.state);
}

TEST_CASE("other layers, other cuts: the same bits; what cannot be cut stays as it is") {
  const auto with = [](auto build) { CHECK(run(model<5>{build}).state == run(model<0>{build}).state); };
  with(mlp), with(convnet), with(gpt);
  const auto tiny = [](graph& g) {
    const auto x = g.placeholder("x", {batch, 3});
    return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1}))), .metrics = {}, .predictions = {}};
  };
  CHECK(run(model<9>{tiny}).state == run(model<0>{tiny}).state);
}
