#include <gradus/ops/layer.hpp>
#include <gradus/pass/optimize.hpp>
#include <gradus/pass/recompute.hpp>
#include <gradus/run/static_door.hpp>
#include <gradus/update/accumulate.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/not_finite.hpp>
#include <gradus/update/rules/adagrad_da.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/weight_decay.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

using namespace gradus;

namespace {
constexpr auto model = [](graph& g) {
  return model_spec{.loss = reduce_mean(square(dense(g.placeholder("x", {batch, 2}), {.units = 1}))),
                    .metrics = {},
                    .predictions = {}};
};
}  // namespace

// What is refused, and in which words: tests/refuse/static_*.cpp.
static_assert(detail::static_policies_fit<static_batch<4>, adam>::value);
static_assert(detail::static_policies_fit<clip_by_global_norm, adam, static_batch<4>, recompute_marked>::value);
static_assert(detail::static_update_fits<static_batch<4>, adam, clip_by_global_norm>::value);
static_assert(detail::static_model_fits<model, static_batch<4>, adam>::value);

static_assert(
    detail::static_door_opens<static_batch<4>, adam, one_by_one, clip_by_global_norm, slots<bfloat16>>::value);
static_assert(detail::static_door_opens<static_batch<1>, adam, release_gradients, slots<bfloat16>>::value);
static_assert(detail::static_door_opens<static_batch<1>, ftrl, slots<bfloat16>>::value);
static_assert(detail::computes_variable_from_slots<decltype(chain{weight_decay{0.01}, ftrl{.rate = 0.1}})>);
static_assert(!detail::computes_variable_from_slots<decltype(chain{adam{}, lookahead{}})>);
static_assert(detail::static_model_fits<model, static_batch<4>, adam, one_by_one>::value);

// Which policies exclude release_gradients, and which the slots of 16 and 8 bits; the sentences are those of
// tests/refuse/static_release_*.cpp and static_slots_*.cpp.
static_assert(detail::needs_norm_of_all<adam, clip_by_global_norm>);
static_assert(detail::needs_norm_of_all<adam, dynamic_loss_scale>);
static_assert(detail::needs_norm_of_all<adam, static_loss_scale>);
static_assert(detail::needs_norm_of_all<adam, not_finite::skip>);
static_assert(detail::needs_norm_of_all<adam, not_finite::raise>);
static_assert(!detail::needs_norm_of_all<adam, clip_by_value>);
static_assert(!detail::needs_norm_of_all<adam, exponential_moving_average>);
static_assert(!detail::needs_norm_of_all<adam, not_finite::pass>);
static_assert(detail::gates_graph<adam, gate_graph>);
static_assert(!detail::gates_graph<adam, gate_op>);
static_assert(!detail::gates_graph<adam, gate_none>);

static_assert(detail::updates_numbers<adam>);
static_assert(detail::updates_numbers<adam, clip_by_global_norm, exponential_moving_average>);
static_assert(!detail::updates_numbers<adam, accumulate>);
static_assert(!detail::updates_numbers<adam, dynamic_loss_scale>);
static_assert(!detail::updates_numbers<adam, static_loss_scale>);
static_assert(!detail::updates_numbers<lamb>);
static_assert(!detail::updates_numbers<adam, clip_by_norm>);
static_assert(!detail::slots_may_be_codes<ftrl>);
static_assert(!detail::slots_may_be_codes<adagrad_da>);
static_assert(detail::slots_may_be_codes<adam>);

TEST_CASE("gradients are released, and a norm is that of the sums, as policies say") {
  constexpr build_options kept = detail::static_options<mode::train, adam, static_batch<4>>;
  constexpr build_options each =
      detail::static_options<mode::train, one_by_one, adam, clip_by_global_norm, static_batch<4>>;
  constexpr build_options released = detail::static_options<mode::train, adam, release_gradients, static_batch<4>>;
  CHECK(!kept.release);
  CHECK(!kept.one_by_one);
  CHECK(each.release);
  CHECK(each.one_by_one);
  CHECK(!each.needs_norm);
  CHECK(released.release);
  CHECK(!released.one_by_one);
}

TEST_CASE("policies in any order say what a model is compiled for") {
  constexpr build_options o = detail::static_options<mode::train, recompute_marked, static_batch<4>,
                                                     clip_by_global_norm, gradus::adam, gate_graph>;
  CHECK(o.recompute == recompute_marked::segments);
  CHECK(o.gate == gating::graph);
  CHECK(o.needs_norm);
  CHECK(o.reuse);
}

namespace {
constexpr auto with_table = [](graph& g) {
  const auto rows = embedding(g.placeholder("ids", {batch, 3}, int32), {.input_dim = 9, .output_dim = 2});
  return model_spec{.loss = reduce_mean(square(rows)), .metrics = {}, .predictions = {}};
};
constexpr auto with_statistics = [](graph& g) {
  const auto h = batch_norm(dense(g.placeholder("x", {batch, 2}), {.units = 2}));
  return model_spec{.loss = reduce_mean(square(h)), .metrics = {}, .predictions = {}};
};
constexpr auto with_a_counter = [](graph& g) {
  const auto seen = g.variable("seen", {}, {.init = zeros, .trainable = false});
  const auto h = dense(g.placeholder("x", {batch, 2}), {.units = 1});
  return model_spec{
      .loss = reduce_mean(square(h)) + 0.0f * assign_add(seen, g.constant(1.0f)), .metrics = {}, .predictions = {}};
};
constexpr auto with_a_train_op = [](graph& g) {
  const value loss = reduce_mean(square(dense(g.placeholder("x", {batch, 2}), {.units = 1})));
  return model_spec{.loss = loss, .train_op = minimize(loss)};
};
constexpr auto with_a_sum = [](graph& g) {
  const auto h = dense(g.placeholder("x", {batch, 2}), {.units = 1});
  return model_spec{.loss = reduce_sum(square(h)), .metrics = {}, .predictions = {}};
};
template <auto Build>
std::string refusal_of() {
  using fit = detail::static_model_fits<Build, static_batch<4>, adam, one_by_one>;
  constexpr auto& stage = fit::examined::value;
  return {stage.refusal, static_cast<std::size_t>(stage.size.refusal)};
}
}  // namespace

TEST_CASE("one_by_one names what a model has that it cannot train, and the remedy") {
  const auto says = [](const std::string& text, std::initializer_list<const char*> all) {
    INFO(text);
    for (const char* words : all) CHECK(text.find(words) != std::string::npos);
  };
  CHECK(refusal_of<model>().empty());
  says(refusal_of<with_table>(), {"one_by_one: the gradient of a variable [9, 2] comes as rows", "use accumulate{}"});
  says(refusal_of<with_statistics>(),
       {"one_by_one: ", "several examples at once", "leave one_by_one out", "layer_norm"});
  says(refusal_of<with_a_counter>(), {"one_by_one: the model changes a variable", "leave one_by_one out, or the "});
  says(refusal_of<with_a_train_op>(), {"one_by_one: the model has a train op of its own", "leave its updates"});
  says(refusal_of<with_a_sum>(), {"one_by_one: Sum []", "the loss must be their mean", "use reduce_mean"});
}
