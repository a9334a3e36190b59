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

namespace {
// The middle layers of `deep` in two regions; the second in two that lie in it, and one tensor of its inside is read
// from outside.
template <bool Marks>
constexpr auto chosen = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 32}), label = g.placeholder("y", {batch, 4});
  const auto layers = [](value h, int n) {
    for (int i = 0; i < n; ++i) h = dropout(tanh(dense(h, {.units = 32})), 0.1);
    return h;
  };
  const auto region = [](value h, auto f) {
    if constexpr (Marks) return recomputed(h, f);
    return f(h);
  };
  auto h = region(dense(x, {.units = 32, .name = "in"}), [&](value a) { return layers(a, 4); });
  value inside{};
  h = region(h, [&](value a) {
    inside = sigmoid(region(a, [&](value b) { return layers(b, 2); }));
    return region(inside, [&](value b) { return layers(b, 2); });
  });
  h = layers(h, 2) + inside;
  return model_spec{.loss = reduce_mean(squared_difference(dense(h, {.units = 4, .name = "out"}), label)),
                    .metrics = {},
                    .predictions = {}};
};
graph before_it(const graph& built) {
  const build_options o{mode::train, gating::op, false, true};
  const graph a = run_pass<1>(parts_of(built), o), b = run_pass<2>(parts_of(a), o), c = run_pass<3>(parts_of(b), o);
  return run_pass<4>(parts_of(c), o);
}
int how_many(const graph& g, std::string_view op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op->name == op ? 1 : 0;
  return n;
}
}  // namespace

TEST_CASE("what is marked is there twice, the marks are gone, and the rest is as it was") {
  const graph plain = before_it(build_model(chosen<false>, mode::train)),
              marked = before_it(build_model(chosen<true>, mode::train)),
              twice = recompute_segments(parts_of(marked), recompute_marked::segments);
  CHECK(how_many(marked, "Identity") == how_many(plain, "Identity") + 8);
  CHECK(how_many(twice, "Identity") == how_many(plain, "Identity"));
  CHECK(how_many(plain, "Tanh") == 10);
  CHECK(how_many(twice, "Tanh") == 18);
  CHECK(how_many(twice, "Sigmoid") == 1);  // its result is read from outside
  for (int i = 0; i < twice.nodes.count; ++i)
    for (int e = twice.nodes[i].first, end = e + twice.nodes[i].inputs + twice.nodes[i].controls; e < end; ++e)
      REQUIRE(twice.edges[e] < i);
  const graph untouched = recompute_segments(parts_of(plain), recompute_marked::segments);
  CHECK(untouched.nodes.count == plain.nodes.count);
  CHECK(untouched.edges.count == plain.edges.count);
}

TEST_CASE("regions that the model marks: the same bits in less memory") {
  const result unmarked = run(model<0>{chosen<false>}), plain = run(model<0>{chosen<true>}),
               marked = run(model<1>{chosen<true>});
  CHECK(plain.calls == unmarked.calls);  // without the policy a mark is nothing
  CHECK(plain.memory.activations == unmarked.memory.activations);
  CHECK(marked.state == plain.state);
  CHECK(run(model<3>{chosen<true>}).state == plain.state);
  CHECK(marked.calls > plain.calls);
  CHECK(marked.memory.activations < plain.memory.activations * 3 / 4);
  CHECK(run(compiled_model<chosen<true>, cpu<fast>, gating::op, false, true, dtype::none, false, 1>{}).state ==
        plain.state);
  CHECK(run(free_model<1>{chosen<true>}, threads{.count = 2}).state == plain.state);
}
