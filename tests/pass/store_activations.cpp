// What is stored in 16 bits, by the graph that the pass gives; what it does to gradients: tests/train/activations.cpp.
#include <gradus/pass/store_activations.hpp>

#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/freeze.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
struct counts {
  int stored = 0, read = 0;  // casts to bfloat16, and back
  bool operator==(const counts&) const = default;
};
// Of the training graph of a model, behind the passes that come before this one.
template <class Model>
counts count_casts(Model model, mode what = mode::train) {
  graph g = build_model(model, what);
  REQUIRE(g.refusal.empty());
  for (int stage = 1; stage <= 4; ++stage) {
    const graph last = std::move(g);
    g = stage == 1   ? run_pass<1>(parts_of(last), {.what = what})
        : stage == 3 ? merge_common(parts_of(last))
                     : remove_dead(parts_of(last));
  }
  const graph stored = store_activations(parts_of(g));
  counts c;
  int more = 0;  // nodes beside views, which each reader may have again
  for (int i = 0; i < g.nodes.count; ++i) more -= g.nodes[i].op->is(trait::view) ? 0 : 1;
  for (int i = 0; i < stored.nodes.count; ++i) {
    more += stored.nodes[i].op->is(trait::view) ? 0 : 1;
    if (const node& n = stored.nodes[i]; n.op == &cards::cast) {
      c.stored += n.type == bfloat16 ? 1 : 0;
      c.read += n.type == float32 ? 1 : 0;
      CHECK((n.type == float32) == (n.scope == graph::gradient_scope));
    }
  }
  CHECK(more == c.stored + c.read);
  CHECK(stored.outputs.count == g.outputs.count);
  return c;
}
// Layers of `units` each, with f between.
template <class F>
auto chain_of(int units, int layers, F f) {
  return [=](graph& g) {
    const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
    auto h = x;
    for (int i = 0; i < layers; ++i) h = f(dense(h, {.units = units}));
    const auto out = dense(h, {.units = 1});
    return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {}};
  };
}
}  // namespace

TEST_CASE("a layer's result is stored once, and read by the gradient of what follows and by its own") {
  const auto rectified = [](value h) { return relu(h); };
  CHECK(count_casts(chain_of(32, 3, rectified)) == counts{3, 6});
  CHECK(count_casts(chain_of(32, 3, [](value h) { return tanh(h); })) == counts{3, 6});
  CHECK(count_casts(chain_of(32, 3, [](value h) { return sigmoid(h); })) == counts{3, 6});
  CHECK(count_casts(chain_of(31, 3, rectified)) == counts{});  // too small
}
TEST_CASE("what is read through a reshape is stored too") {
  const auto in_sequence = [](auto f) {
    return [=](graph& g) {
      auto h = g.placeholder("x", {batch, 4, 8});
      for (int i = 0; i < 3; ++i) h = f(dense(h, {.units = 16}));
      return model_spec{.loss = reduce_mean(square(dense(h, {.units = 1}))), .metrics = {}, .predictions = {}};
    };
  };
  CHECK(count_casts(in_sequence([](value h) { return relu(h); })) == counts{3, 6});
  CHECK(count_casts(in_sequence([](value h) {
          return relu(reshape(h, {batch, h.dims()[2], h.dims()[1]}));
        })).stored == 3);
  // The forward pass makes the view, and its gradient reads it.
  CHECK(count_casts(in_sequence([](value h) {
          return reshape(tanh(h), {batch, h.dims()[2], h.dims()[1]});
        })).stored == 3);
  // A result that the program reads stays as it is, also where it reads a view of it.
  CHECK(count_casts([](graph& g) {
          const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
          const auto h = relu(dense(x, {.units = 32})), k = relu(dense(h, {.units = 32}));
          g.add_output(output::fetch, "h", reshape(h, {batch, 4, 8}));
          return model_spec{
              .loss = reduce_mean(squared_difference(dense(k, {.units = 1}), y)), .metrics = {}, .predictions = {}};
        }) == counts{1, 2});
}
TEST_CASE("what exact numbers are needed of stays, and a graph without gradients is as it was") {
  CHECK(count_casts(chain_of(32, 3, [](value h) { return softmax(h); })).stored == 0);
  CHECK(count_casts(chain_of(32, 3, [](value h) { return h * h; })) == counts{3, 3});
  CHECK(count_casts(chain_of(32, 3, [](value h) { return relu(h); }), mode::predict) == counts{});
  // A factor's gradient reads h: it is kept, and nothing is gained by a copy.
  const auto squared = [](graph& g) {
    const auto x = g.placeholder("x", {batch, 64}), y = g.placeholder("y", {batch, 1});
    const auto h = relu(dense(x, {.units = 64})), k = relu(dense(h, {.units = 64}));
    const auto out = dense(k, {.units = 1});
    return model_spec{
        .loss = reduce_mean(squared_difference(out, y)) + 0.1 * reduce_mean(h * out), .metrics = {}, .predictions = {}};
  };
  CHECK(count_casts(squared) == counts{1, 2});
}
