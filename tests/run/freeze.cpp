// one thread: nothing here runs at the same time
#include "models.hpp"

#include <gradus/run/freeze.hpp>
#include <gradus/testing/graph_equality.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>

using namespace gradus;

namespace {

// Every op that adds more than one node, with its gradient: operands of one expression must not both add nodes, or the
// compiler and the program number them differently.
constexpr model_spec every_formula(graph& g) {
  const value x = g.variable("x", {4, 6}), y = g.variable("y", {4, 6}), w = g.variable("w", {6, 6});
  const value label = g.placeholder("label", {4}, int32);
  value sum = g.constant(0);
  const auto take = [&](value v) { sum = sum + reduce_sum(v); };
  for (auto f :
       {relu, sigmoid, tanh, exp, log, log1p, sqrt, rsqrt, square, abs, erf, elu, gelu, softplus, softmax, log_softmax})
    take(f(x));
  take(leaky_relu(x)), take(pow(x, y)), take(maximum(x, y)), take(minimum(x, y)), take(squared_difference(x, y));
  take(x / y), take(select(greater(x, y), x, y)), take(reduce_max(x, {1})), take(reduce_mean(x, {0}));
  take(gather(x, label)), take(one_hot(label, 6) * x), take(transpose(x, {1, 0})), take(pad(x, {{1, 0}, {0, 2}}, 1));
  take(slice(x, {0, 1}, {2, -1})), take(concat({x, y}, 1)), take(causal_mask(w, -1)), take(matmul(x, w));
  take(matmul(x, y, {.transpose_b = true})), take(dropout(x, 0.5)), take(layer_norm(x)), take(batch_norm(x));
  take(multi_head_attention(reshape(x, {1, 4, 6}), {.heads = 2, .dropout_rate = 0.5}));
  const value image = reshape(x, {1, 4, 6, 1});
  take(conv2d(image, {.filters = 2})), take(max_pool(image)), take(avg_pool(image, {.padding = padding::same}));
  take(softmax_cross_entropy_with_logits(x, y)), take(sparse_softmax_cross_entropy(x, label));
  take(sigmoid_cross_entropy_with_logits(x, y)), take(weighted_cross_entropy_with_logits(x, y, 2)), take(l2_loss(x));
  take(losses::huber_loss(x, y)), take(losses::log_loss(x, y)), take(losses::hinge_loss(x, y));
  take(losses::cosine_distance(x, y, 1)), take(losses::mean_pairwise_squared_error(x, y));
  take(losses::absolute_difference(x, y, {.weights = 2.0, .reduction = losses::reduction::mean}));
  return {.loss = sum,
          .metrics = {{"mse", metrics::mean_squared_error(x, y)},
                      {"rmse", metrics::root_mean_squared_error(x, y)},
                      {"precision", metrics::precision(label, label)},
                      {"at", metrics::recall_at_thresholds(x, y, {0.2, 0.6})},
                      {"auc", metrics::auc(x, y, {.num_thresholds = 5})},
                      {"pr", metrics::auc(x, y,
                                          {.num_thresholds = 5,
                                           .curve = metrics::curve::pr,
                                           .summation_method = metrics::summation::careful_interpolation})}}};
}

// The laws hold after every pass, by the compiler's own word.
template <auto Build, build_options O, int... Stage>
constexpr bool lawful(std::integer_sequence<int, Stage...>) {
  return ((broken_law(detail::stage<Build, O, Stage>::value.parts()) == nullptr) && ...);
}
template <auto Build, build_options O>
constexpr bool all_lawful = lawful<Build, O>(std::make_integer_sequence<int, last_stage + 1>{});
static_assert(all_lawful<run_test::mlp, build_options{mode::train, gating::op, true, true}>);
static_assert(all_lawful<run_test::mlp, build_options{mode::train, gating::graph, false, false}>);
static_assert(all_lawful<run_test::mlp, build_options{mode::evaluate, gating::op, true, true}>);
static_assert(all_lawful<run_test::mlp, build_options{mode::predict, gating::none, false, true}>);

template <mode M, int Stage>
void same(const graph& from, const build_options& o) {
  constexpr build_options options{M, gating::op, true, true};
  const graph here = run_pass<Stage>(parts_of(from), o);
  CHECK(testing::explain_difference(parts_of(here), detail::stage<&every_formula, options, Stage>::value.parts()) ==
        "");
  CHECK(broken_law(parts_of(here)) == nullptr);
  if constexpr (Stage < last_stage) same<M, Stage + 1>(here, o);
}
template <mode M>
void same_everywhere() {
  constexpr build_options options{M, gating::op, true, true};
  const graph built = build_model(every_formula, M);
  const auto& frozen = detail::stage<&every_formula, options, 0>::value;
  CHECK(testing::explain_difference(parts_of(built), frozen.parts()) == "");
  REQUIRE(built.names.chars.count == frozen.size.names);
  CHECK(std::memcmp(built.names.chars.first, frozen.names, static_cast<std::size_t>(built.names.chars.count)) == 0);
  same<M, 1>(built, options);
  const graph ready = run_passes(built, options);
  const detail::program here = detail::plan(parts_of(ready), true);
  const auto view = view_of(here), there = frozen_model<&every_formula, options>::program.view();
  REQUIRE(view.call_count == there.call_count);
  REQUIRE(view.signature_count == there.signature_count);
  REQUIRE(view.slot_count == there.slot_count);
  for (int i = 0; i < view.signature_count; ++i) CHECK(view.signatures[i] == there.signatures[i]);
  for (int i = 0; i < view.slot_count; ++i) CHECK(view.slots[i] == there.slots[i]);
  for (int i = 0; i < view.slot_count; ++i) CHECK(view.lives[i] == there.lives[i]);
  for (int i = 0; i < ready.nodes.count; ++i) CHECK(view.places[i] == there.places[i]);
}

}  // namespace

TEST_CASE("passes that must know the backward pass refuse a train op of the model's own") {
  graph g;
  const value w = g.variable("w", {}), loss = square(w);
  g.add_output(output::loss, "loss", loss);
  g.add_output(output::update, "train_op", g.add(cards::apply, {w, w * 2.0}));
  const auto refuses = [&](const build_options& o) {
    try {
      run_pass<1>(parts_of(g), o);
    } catch (const invalid_argument& e) {
      return std::string(e.what()).find("has a train op of its own, and recompute and activations") !=
             std::string::npos;
    }
    return false;
  };
  constexpr auto changes_nothing = [](const graph_parts& p) constexpr { return detail::thaw(p); };
  static constexpr detail::rewriting knows{changes_nothing, true}, does_not{changes_nothing};
  CHECK(refuses({.recompute = 2}));
  CHECK(refuses({.recompute = recompute_marked::segments}));
  CHECK(refuses({.rewrite = &knows}));
  CHECK(refuses({.rewrite = &detail::both_passes<does_not, knows>}));
  CHECK(refuses({.rewrite = &detail::both_passes<knows, does_not>}));
  CHECK(!refuses({.rewrite = &does_not}));
  CHECK(!refuses({}));
  CHECK(!refuses({.what = mode::evaluate, .recompute = 2}));
}

TEST_CASE(
    "the compiler and the program build one graph and one plan of every formula, in every mode, after every pass") {
  same_everywhere<mode::train>();
  same_everywhere<mode::evaluate>();
  same_everywhere<mode::predict>();
}

TEST_CASE("a pass that breaks a law is told at run time") {
#if !defined(NDEBUG)
  graph g = build_model([](graph& h) { return model_spec{.loss = reduce_sum(h.variable("w", {2}))}; }, mode::train);
  g.nodes[0].name = -1;
  std::string said;
  try {
    run_passes(g, {});
  } catch (const internal& e) {
    said = e.what();
  }
  CHECK(said == "pass 1 broke a law of graphs: placeholders and variables have names; please report the model");
#endif
}

TEST_CASE("a model that is refused at run time says why") {
  const auto refusal = [](auto build, mode m) -> std::string {
    try {
      run_passes(build_model(build, m), {.what = m});
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal([](graph& g) { return model_spec{.loss = g.placeholder("x", {})}; }, mode::train) ==
        "the model has no trainable variables");
  CHECK(refusal([](graph&) { return model_spec{}; }, mode::train) ==
        "the model has no loss: return model_spec{.loss = ...}");
  CHECK(refusal([](graph& g) { return model_spec{.loss = g.variable("w", {2})}; }, mode::evaluate) ==
        "the loss must be a scalar, got [2]; reduce_mean it");
  CHECK(refusal(
            [](graph& g) {
              g.variable("w", {2});
              return model_spec{.loss = g.constant(1)};
            },
            mode::train) ==
        "no gradients provided for any variable: the loss does not depend on them, or only through labels, integers or "
        "stop_gradient");
}
