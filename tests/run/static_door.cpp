#include <gradus/ops/layer.hpp>
#include <gradus/pass/recompute.hpp>
#include <gradus/run/static_door.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/weight_decay.hpp>

#include <doctest/doctest.h>

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
