#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_layout.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/lamb.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {

constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 2});
  const auto out = dense(tanh(dense(x, {.units = 5, .name = "hidden"})), {.units = 2, .name = "out"});
  return model_spec{
      .loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out * 2 + 1}}};
};
using train = detail::placed_graph<frozen_model<model, detail::static_options<mode::train, adam>>>;
using forward = detail::placed_graph<frozen_model<model, detail::static_options<mode::predict, adam>>>;
using device = cpu<portable>;
constexpr std::int64_t examples = 7;
constexpr auto layout = detail::lay_out<train, forward, device, composed<adam>>(examples);

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + device::alignment - 1) / device::alignment * device::alignment;
}

}  // namespace

// Weights of 3x5, 5, 5x2 and 2 floats, each on a line of its own; then gradients and two mirrors alike.
static_assert(train::program.trainable == 4);
static_assert(layout.trainable_bytes == rounded(60) + rounded(20) + rounded(40) + rounded(8));
static_assert(layout.gradients == layout.trainable_bytes);
static_assert(layout.mirrors == 2 * layout.trainable_bytes);
static_assert(layout.mirror(1) - layout.mirror(0) == layout.trainable_bytes);
// Inputs follow, one memory for training and prediction; predictions find the trained variables.
static_assert(layout.offset<train>(train::find_placeholder("x")) ==
              layout.offset<forward>(forward::find_placeholder("x")));
static_assert(layout.offset<train>(train::program.variables[train::find_variable("out/bias")]) ==
              layout.offset<forward>(forward::program.variables[forward::find_variable("out/bias")]));
static_assert(train::find_placeholder("z") == -1 && train::find_variable("hidden") == -1);
static_assert(train::find_output(output::prediction, "out") == -1 &&
              forward::find_output(output::prediction, "out") >= 0);
static_assert(train::trains<float>() && !train::trains<double>());
// Two tables, whose gradients are rows: a rule that measures every row has room for the larger as a dense one.
namespace {
constexpr auto tables = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch}, int32);
  const auto a = embedding(ids, {.input_dim = 9, .output_dim = 2}),
             b = embedding(ids, {.input_dim = 4, .output_dim = 3});
  return model_spec{.loss = reduce_mean(square(a)) + reduce_mean(square(b)), .metrics = {}, .predictions = {}};
};
template <class Rule, mode M>
using placed_tables = detail::placed_graph<frozen_model<tables, detail::static_options<M, Rule>>>;
template <class Rule>
constexpr auto layout_of_tables =
    detail::lay_out<placed_tables<Rule, mode::train>, placed_tables<Rule, mode::predict>, device, composed<Rule>>(3);
}  // namespace
static_assert(layout.dense_bytes == 0 && layout_of_tables<adam>.dense_bytes == 0);
static_assert(layout_of_tables<lamb>.dense_bytes == 9 * 2 * 4);
static_assert(layout_of_tables<lamb>.dense >= layout_of_tables<lamb>.scratch &&
              layout_of_tables<lamb>.bytes >= layout_of_tables<lamb>.dense + 9 * 2 * 4);

TEST_CASE_TEMPLATE("tensors are aligned, inside, and do not meet what outlives them", G, train, forward) {
  for (int i = 0; i < G::graph.size.nodes; ++i) {
    const node& n = G::graph.nodes[i];
    if (G::program.places[i].region == node_place::nowhere) continue;
    const std::size_t at = layout.template offset<G>(i);
    const std::size_t bytes = static_cast<std::size_t>(G::count(i, examples)) * size_of(n.type);
    CHECK(at % device::alignment == 0);
    CHECK(at + bytes <= layout.bytes);
    if (n.op->is(trait::leaf))
      CHECK(at + bytes <= layout.scratch);
    else if (G::program.places[i].region == node_place::slot)
      CHECK(at >= layout.scratch);
    for (int k = 0; k < i; ++k) {
      if (!n.op->is(trait::leaf) || !G::graph.nodes[k].op->is(trait::leaf)) continue;
      const std::size_t other = layout.template offset<G>(k);
      CHECK((other + static_cast<std::size_t>(G::count(k, examples)) * size_of(G::graph.nodes[k].type) <= at ||
             at + bytes <= other));
    }
  }
}

TEST_CASE("mirrors are named as in a checkpoint on the heap") {
  for (const mirror& m : {mirror{"m", "Adam", 0}, mirror{"v", "Adam", 1}, mirror{"z", "Long", 1234567890}}) {
    const detail::mirror_name<64> name("scope/w", m);
    CHECK(std::string_view(name) == checkpoint_name("scope/w", m));
  }
  constexpr auto kept = detail::kept_variables<train>(layout);
  constexpr std::size_t longest = detail::longest_mirror_name<composed<adam>>(kept);
  static_assert(longest >= std::string_view("hidden/kernel/Adam_18446744073709551615").size());
  CHECK(kept[0].name == "hidden/kernel");
  CHECK(kept[0].bytes == 60);
  CHECK(kept[0].trainable);
}

TEST_CASE("a loop of the compiler goes beyond a fold's limit, in order") {
  int next = 0;
  bool in_order = true;
  detail::for_each_below<300>([&]<int I> { in_order = in_order && I == next++; });
  CHECK(in_order);
  CHECK(next == 300);
  detail::for_each_below<0>([&]<int> { FAIL("there is nothing below 0"); });
}
